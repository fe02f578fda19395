# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Folders in a message: each once, and shortly."""

import pytest

from t5wild.gin_config import folder_names


@pytest.mark.parametrize(
    ('folders', 'text'),
    [
        (['', '/s', '/g'], "'/w/r', '/s', '/g'"),
        # A recipe in the working directory, as migrate looks from it.
        (['', '/w/r', '/w', '/', '/g'],
         "'/w/r' and the folders above it, '/g'"),
        # One below it: the working directory is among those above.
        (['', '/w/r/a', '/w/r', '/w', '/', '/g'],
         "'/w/r/a' and the folders above it, '/g'"),
        (['', '/o/p', '/o', '/', '/g'],
         "'/w/r', '/o/p' and the folders above it, '/g'"),
        (['', '/w', '/g'], "'/w/r' and the folder above it, '/g'"),
        (['', '.', '../r', '/g/', '/g'], "'/w/r', '/g'"),
        (['', '/a/b/c', '/a/b', '/a'], "'/w/r', '/a/b/c' and the 2 above it"),
        (['/'], "'/'"),
    ],
)  # fmt: skip
def test_each_folder_is_named_once_and_those_above_it_together(
    folders, text, monkeypatch
):
  monkeypatch.setattr(folder_names.os, 'getcwd', lambda: '/w/r')
  assert folder_names.describe(folders) == text
