# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Weights & Biases: a run's records and texts, by its own client."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
import os
import uuid

from t5wild import run_dir as run_dir_lib
from t5wild.vitals import records as records_lib
from t5wild.vitals.services import service

_MODES = ('offline', 'online')
_STEP = 'step'


@dataclasses.dataclass(frozen=True, kw_only=True)
class WandbSink:
  """Sends records to Weights & Biases.

  Offline, the client writes below MODEL_DIR/services/wandb, and `wandb sync`
  sends that later. A run that is started again goes on under its id. The key is
  what `wandb login` or WANDB_API_KEY says; it has no place in a recipe.

  Attributes:
    project: of W&B.
    entity: user or team; None = the key's own.
    run_name: shown; None = the last part of MODEL_DIR.
    mode: 'offline' or 'online'.
    close_seconds: how long a run that ends waits for what is still to be sent.
  """

  project: str = 't5wild'
  entity: str | None = None
  run_name: str | None = None
  mode: str = 'offline'
  close_seconds: float = 30.0

  def __post_init__(self):
    """Refuses a mode that there is not, and a client that is not there."""
    if self.mode not in _MODES:
      raise service.BadServiceError(
          f'WandbSink.mode is {self.mode!r}\n'
          f'  expected: one of {", ".join(map(repr, _MODES))}.\n'
          "  do: mode = 'offline', and `wandb sync` afterwards"
      )
    service.require('wandb', extra='wandb', of='WandbSink')

  def connect(self, run_dir: run_dir_lib.RunDir) -> WandbClient:
    """Begins, or goes on with, the W&B run of this MODEL_DIR."""
    return WandbClient(self, run_dir)


class WandbClient:
  """A run of W&B."""

  def __init__(self, settings: WandbSink, run_dir: run_dir_lib.RunDir):
    """Starts the client; online, this waits for the server."""
    import wandb  # a second that only such a run pays

    folder = run_dir.service_file('wandb')
    os.makedirs(folder, exist_ok=True)
    run_id = service.remembered_id(run_dir, 'wandb') or uuid.uuid4().hex[:12]
    self._wandb = wandb
    self._run = wandb.init(
        project=settings.project,
        entity=settings.entity,
        name=settings.run_name or os.path.basename(run_dir.path),
        id=run_id,
        resume='allow',
        mode=settings.mode,
        dir=folder,
        # What this process is, and prints, says nothing of the run.
        settings=wandb.Settings(
            console='off', disable_git=True, save_code=False,
            x_disable_meta=True, x_disable_stats=True,
        ),
    )  # fmt: skip
    service.remember_id(run_dir, 'wandb', run_id)
    # W&B's own step only ever rises; ours goes back where a run resumes.
    self._run.define_metric(_STEP, hidden=True)
    self._run.define_metric('*', step_metric=_STEP)

  def write(self, records: Sequence[records_lib.Record]) -> None:
    """Logs the records, those of a step together."""
    by_step: dict[int, dict[str, float]] = {}
    for record in records:
      by_step.setdefault(record.step, {})[record.name] = record.value
    for step, values in by_step.items():
      self._run.log({**values, _STEP: step})

  def write_text(self, step: int, name: str, text: str) -> None:
    """Keeps the config as such; logs other texts."""
    del step
    if name == 'config':
      self._run.config.update({'gin': text}, allow_val_change=True)
    else:
      self._run.summary[name] = text

  def close(self) -> None:
    """Ends the run there."""
    self._run.finish()
