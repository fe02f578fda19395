# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Where everything of a run lies under its MODEL_DIR; no Orbax needed.

Paths are strings, since a MODEL_DIR may be `gs://bucket/run` as well as a
folder; only the functions that say so touch a local disk.
"""

import dataclasses
import glob
import os
import re

CHECKPOINT_PREFIX = 'checkpoint_'
# As a run writes it: `checkpoint_070` and other digits are somebody's.
_CHECKPOINT = re.compile(CHECKPOINT_PREFIX + r'(0|[1-9][0-9]*)\Z')


@dataclasses.dataclass(frozen=True)
class RunDir:
  """Names under one MODEL_DIR.

  Attributes:
    path: the MODEL_DIR.
  """

  path: str

  def __post_init__(self):
    """Refuses an empty path, and takes the slash off the end of others."""
    if not self.path:
      raise ValueError(
          f'model_dir is {self.path!r}; expected a folder or a bucket path; '
          "pass --gin.MODEL_DIR='/somewhere/my_run'."
      )
    object.__setattr__(self, 'path', os.fspath(self.path).rstrip('/') or '/')

  def __fspath__(self) -> str:
    """The MODEL_DIR itself."""
    return self.path

  @property
  def is_bucket(self) -> bool:
    """Whether it is a URL, where files are written whole or not at all."""
    return '://' in self.path

  def join(self, *names: str) -> str:
    """Path of a name under the MODEL_DIR."""
    return '/'.join((self.path, *names))

  @property
  def config_gin(self) -> str:
    """The recipe as it was given."""
    return self.join('config.gin')

  @property
  def operative_config_gin(self) -> str:
    """The recipe with every default that was used."""
    return self.join('operative_config.gin')

  def config_before(self, step: int) -> str:
    """The recipe until a resume at a step changed it."""
    return self.join(f'config_before_step_{step}.gin')

  def operative_config_before(self, step: int) -> str:
    """The same with every default that was used."""
    return self.join(f'operative_config_before_step_{step}.gin')

  @property
  def model_info(self) -> str:
    """Parameters, their shapes and shardings, as text."""
    return self.join('model-info.txt')

  @property
  def environment_json(self) -> str:
    """What the newest process runs on and with: hardware, versions."""
    return self.join('environment.json')

  @property
  def program_json(self) -> str:
    """What tells the compiled training step from another."""
    return self.join('program.json')

  def environment_before(self, step: int) -> str:
    """`environment.json` until a resume at a step changed it."""
    return self.join(f'environment_before_step_{step}.json')

  def program_before(self, step: int) -> str:
    """`program.json` until a resume at a step changed it."""
    return self.join(f'program_before_step_{step}.json')

  @property
  def metrics_jsonl(self) -> str:
    """All records of process 0, one JSON object a line."""
    return self.join('metrics.jsonl')

  @property
  def training_lock(self) -> str:
    """Held by the training that is under way."""
    return self.join('training.lock')

  def service_file(self, service: str, *names: str) -> str:
    """What the client of a metrics service keeps, and its folder."""
    return self.join('services', service, *names)

  @property
  def loss_curve_png(self) -> str:
    """Picture of the loss curves."""
    return self.join('loss_curve.png')

  @property
  def profile(self) -> str:
    """Folder of profiler traces; TensorBoard finds it here."""
    return self.join('profile')

  def host_metrics_jsonl(self, process: int) -> str:
    """Records of one process; process 0 writes `metrics.jsonl` itself."""
    if process == 0:
      return self.metrics_jsonl
    return self.join(f'metrics.process_{process}.jsonl')

  @property
  def events_jsonl(self) -> str:
    """What befell the run: attempts, exits, restarts, hangs; all append."""
    return self.join('events.jsonl')

  def heartbeats(self, host: str) -> str:
    """Folder of the signs of life of one host's processes."""
    return self.join('heartbeats', host)

  def heartbeat(self, host: str, process: int) -> str:
    """The newest sign of life of one process; the next one replaces it."""
    return f'{self.heartbeats(host)}/process_{process}.json'

  @property
  def host_signs(self) -> str:
    """Folder of the signs of life of the supervisors of several hosts."""
    return self.join('hosts', 'signs')

  def host_sign(self, host: str) -> str:
    """The newest sign of one host's supervisor."""
    return f'{self.host_signs}/{host}.json'

  def host_round(self, number: int) -> str:
    """What the supervisors of several hosts agreed on for one attempt."""
    return self.join('hosts', 'rounds', f'round_{number}.json')

  def stacks(self, process: int) -> str:
    """What every thread of a process did when the watchdog found a hang."""
    return self.join('stacks', f'process_{process}.txt')

  @property
  def stacks_request(self) -> str:
    """Changes when a process has found a hang: the others write stacks too."""
    return self.join('stacks', 'requested')

  @property
  def time_ledgers(self) -> str:
    """Folder of where the time of each attempt went, one file for each."""
    return self.join('time')

  def attempt_log(self, attempt: int, label: str, process: int) -> str:
    """What a process of the supervisor `label` printed in one attempt."""
    name = f'attempt_{attempt}.{label}.process_{process}.log'
    return self.join('logs', name)

  def summaries(self, name: str) -> str:
    """TensorBoard folder of `train`, `training_eval/TASK` and their like."""
    return self.join(*name.split('/'))

  def checkpoint(self, step: int) -> str:
    """Folder of the checkpoint of a step, complete or not."""
    return self.join(f'{CHECKPOINT_PREFIX}{step}')

  def why_blocked(self) -> str | None:
    """Says what a run could not write, or not find again, there; or None.

    On a local disk; as far as looking tells, and writing nothing.
    """
    if self.is_bucket:
      return None
    if glob.has_magic(os.path.abspath(self.path)):
      return (
          f'{os.path.abspath(self.path)} has *, ? or [, which Orbax takes for '
          'a pattern: no checkpoint there could be read'
      )
    for path in (
        self.config_gin, self.operative_config_gin, self.model_info,
        self.environment_json, self.program_json, self.metrics_jsonl,
        self.events_jsonl, self.training_lock,
    ):  # fmt: skip
      if os.path.isdir(path):
        return f'{path} is a folder, where a run has a file'
      if os.path.exists(path) and not os.access(path, os.W_OK):
        return f'this user may not write to {path}'
    return None

  def local_checkpoint_steps(self) -> list[int]:
    """Steps that have a checkpoint folder on a local disk, in order.

    Whether each is complete is for `checkpoints/` to say. A missing MODEL_DIR
    has none.
    """
    try:
      names = os.listdir(self.path)
    except FileNotFoundError:
      return []
    return sorted(
        step for step in map(checkpoint_step, names) if step is not None
    )


def checkpoint_step(name: str) -> int | None:
  """Step of a checkpoint folder's name or path; None if it is not one."""
  match = _CHECKPOINT.match(name.rstrip('/').rsplit('/', 1)[-1])
  return int(match.group(1)) if match else None


def why_unwritable(folder: str | os.PathLike[str]) -> str | None:
  """Says why a local folder, there or to be made, cannot be written to.

  As far as looking tells, and writing nothing; None: nothing speaks against it.
  """
  if '://' in os.fspath(folder):
    return None
  there = os.path.abspath(folder)
  while not os.path.lexists(there):
    there = os.path.dirname(there)
  if not os.path.isdir(there):
    return f'{there} is no folder'
  if not os.access(there, os.W_OK | os.X_OK):
    return f'this user may not write to {there}'
  return None
