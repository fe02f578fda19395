# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Tasks of T5X's GPU recipes are registered, or say what they lack."""

import importlib
import importlib.util

import pytest

seqio = pytest.importorskip('seqio')
_NAME = 't5wild.tasks.t5x_gpu'


def test_the_tasks_are_there_or_the_mend_is_told():
  if importlib.util.find_spec('t5') is None:
    with pytest.raises(ImportError, match='pip install t5'):
      importlib.import_module(_NAME)
    return
  importlib.import_module(_NAME)
  names = seqio.TaskRegistry.names()
  assert {'the_pile_span_corruption', 'glue_mnli_v2'} <= set(names)
