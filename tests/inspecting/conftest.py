# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The command that is tested."""

import pytest

from t5wild.inspecting import main as main_lib


@pytest.fixture
def inspect(capsys, monkeypatch):
  """Runs the command; returns (exit code, what it printed)."""
  monkeypatch.setenv('COLUMNS', '200')

  def run(*arguments):
    code = main_lib.main(['inspect', *map(str, arguments)])
    printed = capsys.readouterr()
    return code, printed.out + printed.err

  return run
