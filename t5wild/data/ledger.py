# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Where the data of a run stood after which step: `samples.jsonl`.

A line at each start and each save. The order of a cache is a function of the
position, so these few numbers give back every example of every step between.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import json
import os
from typing import Any

from etils import epath

FILE = 'samples.jsonl'
_KIND = 'cached'  # of the positions from which batches can be made again


class NoLedgerError(ValueError):
  """A run without a ledger, or one that does not reach a step."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Anchor:
  """A position of the data, and what was made of it from there on.

  Attributes:
    step: finished updates.
    batch_size: of the updates that follow.
    state: what the reader of the data goes on from.
  """

  step: int
  batch_size: int
  state: Mapping[str, Any]


class SampleLedger:
  """Writes the ledger of a run; of live data, which has none, nothing."""

  def __init__(self, model_dir: str | os.PathLike[str], *, batch_size: int):
    """Opens nothing yet; a file that is there is gone on with."""
    self._path = epath.Path(model_dir) / FILE
    self._batch_size = batch_size
    self._text: str | None = None
    self._last: dict[str, Any] = {}

  def note(self, step: int, state: Mapping[str, Any] | None) -> None:
    """Notes where the data stand after a step."""
    if state is None or state.get('kind') != _KIND:
      return
    line = {**state, 'step': step, 'batch_size': self._batch_size}
    # What is as in the line before is left out: a few numbers remain.
    line = {key: value for key, value in line.items()
            if key == 'step' or self._last.get(key) != value}  # fmt: skip
    self._last.update(line)
    self._append(json.dumps(line, separators=(',', ':')) + '\n')

  def _append(self, line: str) -> None:
    if self._text is None:
      self._path.parent.mkdir(parents=True, exist_ok=True)
      self._text = self._path.read_text() if self._path.exists() else ''
      if self._text and not self._text.endswith('\n'):
        line = '\n' + line  # a killed run did not finish its last one
    self._text += line
    if '://' in os.fspath(self._path):  # buckets know whole files alone
      self._path.write_text(self._text)
    else:
      with self._path.open('a') as file:
        file.write(line)


def read_anchors(model_dir: str | os.PathLike[str]) -> list[Anchor]:
  """The positions of a run, by step; what was trained again counts once.

  Raises:
    NoLedgerError: there is no ledger.
  """
  path = epath.Path(model_dir) / FILE
  if not path.exists():
    raise NoLedgerError(
        f'there is no {path}: expected one of a run that read its data from a '
        'cache (data.CachedDatasetConfig), on which its order can be told. '
        'Name such a run by --run.'
    )
  anchors: list[Anchor] = []
  values: dict[str, Any] = {}
  for number, line in enumerate(path.read_text().splitlines(), start=1):
    try:
      values = {**values, **json.loads(line)}
    except ValueError:
      continue  # a line that a killed run did not finish
    if 'kind' not in values:
      raise NoLedgerError(
          f'{path}, line {number} names no kind of data: expected the lines of '
          'a run from its first one on. Copy the file whole.'
      )
    step, batch_size = values['step'], values['batch_size']
    anchors = [anchor for anchor in anchors if anchor.step < step]
    anchors.append(
        Anchor(
            step=step,
            batch_size=batch_size,
            state={
                key: value
                for key, value in values.items()
                if key != 'batch_size'
            },
        )
    )
  return anchors


def anchor_before(anchors: Sequence[Anchor], *, step: int) -> Anchor:
  """The position nearest before the batch of a step.

  Raises:
    NoLedgerError: the ledger begins later.
  """
  before = [anchor for anchor in anchors if anchor.step < step]
  if not before:
    first = min((anchor.step for anchor in anchors), default=None)
    raise NoLedgerError(
        f'step {step} is not in the ledger: expected one after {first}, where '
        'it begins (steps are counted from 1). Ask for a later one.'
    )
  return before[-1]
