# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What befalls checkpoints while a run saves, as values and as errors."""

import dataclasses


class StateNotSavedError(Exception):
  """A run ended and its last state could not be saved."""

  def __init__(self, step: int, *, directory: str, newest: int | None):
    """Says what is lost, and from where the same command goes on.

    Args:
      step: Step of the state that is lost.
      directory: Where it should have been saved.
      newest: Newest step with a complete checkpoint there, or None.
    """
    kept = 'no step is kept' if newest is None else f'step {newest} is kept'
    super().__init__(
        f'THE LAST STATE IS NOT SAVED: the run stopped after step {step}, its '
        f'save in {directory} failed, and {kept}. Expected a directory that '
        'can be written, with space for one more checkpoint. Free space or '
        'mend it; the same command then goes on from what is kept.'
    )


class OverdueError(TimeoutError):
  """A save that was left behind, since it took too long."""


SAVED = 'saved'
FAILED = 'save_failed'
ABANDONED = 'save_abandoned'
SAVED_LATE = 'saved_late'
REMOVED = 'removed'


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckpointEvent:
  """Something that happened to a checkpoint, for records and alerts.

  Attributes:
    kind: `SAVED`, `FAILED`, `ABANDONED` (it takes longer than it may, and the
      run no longer waits for it), `SAVED_LATE` (one of those is complete after
      all) or `REMOVED`.
    step: Step of the checkpoint.
    directory: Where it is, or should be.
    seconds: From the call of `save` to the end; 0 for a removal.
    blocked_seconds: Part of it that the caller of `save` waited.
    num_bytes: Bytes of all arrays of the state.
    failures: Failed saves in a row, this one included.
    error: What failed, or ''.
  """

  kind: str
  step: int
  directory: str = ''
  seconds: float = 0.0
  blocked_seconds: float = 0.0
  num_bytes: int = 0
  failures: int = 0
  error: str = ''

  def __str__(self) -> str:
    """One line of a log."""
    text = f'Checkpoint of step {self.step}: {self.kind.replace("_", " ")}'
    if self.kind != REMOVED:
      text += f' after {self.seconds:.1f} s'
    if self.kind in (SAVED, SAVED_LATE):
      text += f', {self.num_bytes / 1e6:,.1f} MB'
    return f'{text}: {self.error}' if self.error else text
