# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a batch has the features that a model needs."""

from collections.abc import Iterable, Sequence


def check_features(
    *, model: str, needed: Sequence[str], found: Iterable[str], mend: str
) -> None:
  """Refuses a batch without the features that a model needs.

  Args:
    model: name of the model's class.
    needed: features it can not do without.
    found: features of the batch.
    mend: what to do about it.

  Raises:
    ValueError: naming both.
  """
  found = sorted(found)
  missing = [name for name in needed if name not in found]
  if missing:
    raise ValueError(
        f'the data lacks the features {missing} of {model}:\n'
        f'  the model needs {sorted(needed)}\n'
        f'  the data gives  {found}\n'
        f'expected all of them; {mend}'
    )
