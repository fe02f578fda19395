# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Tasks of T5X's GPU recipes are registered, without the `t5` package."""

import importlib

import pytest

seqio = pytest.importorskip('seqio')


def test_the_tasks_are_there():
  importlib.import_module('t5wild.tasks.t5x_gpu')
  names = set(seqio.TaskRegistry.names())
  assert {'the_pile_span_corruption', 'glue_mnli_v2'} <= names
