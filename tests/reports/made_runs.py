# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Makes runs as they lie on disk: sound ones, and ones with known faults."""

from __future__ import annotations

from collections.abc import Iterable
import dataclasses
import json
import math
import os
import random

from t5wild import run_dir as run_dir_lib
from t5wild.vitals import records as records_lib

BEGAN = 1_764_000_000.0
LOSS = f'train/{records_lib.LOSS}'
HELD_OUT_LOSS = f'training_eval/my_task/{records_lib.LOSS}'
LAYERS = [
    *(f'encoder/layers_{n}/attention/query/kernel' for n in range(12)),
    *(f'decoder/layers_{n}/mlp/wi_0/kernel' for n in range(12)),
    'token_embedder/embedding',
]
_KINDS = ('startup', 'step', 'data_wait', 'evaluate', 'save', 'other')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Faults:
  """What goes wrong, and where; the default is a sound run.

  Attributes:
    spike_step: the loss jumps here, for one report.
    nan_step: the loss is NaN from here on.
    killed_steps: the process is killed after each of these, and resumes at
      `resumed_steps`, an hour later.
    resumed_steps: as many as `killed_steps`.
    slow_steps: from, to: data comes slowly.
    is_cut: whether the run is killed at its end, too, without a ledger.
  """

  spike_step: int | None = None
  nan_step: int | None = None
  killed_steps: tuple[int, ...] = ()
  resumed_steps: tuple[int, ...] = ()
  slow_steps: tuple[int, int] | None = None
  is_cut: bool = False


def make_run(
    path: str | os.PathLike[str],
    *,
    num_steps: int = 1000,
    period: int = 10,
    faults: Faults | None = None,
    has_layers: bool = False,
    seed: int = 0,
) -> str:
  """Writes a run of `num_steps` updates, reported every `period`."""
  path = os.fspath(path)
  os.makedirs(path, exist_ok=True)
  faults = faults or Faults()
  draw = random.Random(seed)
  run = run_dir_lib.RunDir(path)
  clock, first, lines = BEGAN, 0, []
  for end, resumed in zip(
      (*faults.killed_steps, num_steps),
      (*faults.resumed_steps, None),
      strict=True,
  ):
    lines += _start(first, clock)
    for step in range(first + period, end + 1, period):
      step_seconds, wait = _times(step, faults, draw)
      clock += period * step_seconds
      lines += _report(step, clock, step_seconds, wait, faults, draw)
      if has_layers:
        lines += _layers(step, clock, draw)
      if step % (num_steps // 10) == 0:
        lines += _evaluation(step, clock, draw)
        lines += _save(step, clock)
    if resumed is not None:
      first, clock = resumed, clock + 3600
  if not faults.is_cut:
    lines += _ledger(num_steps, clock)
  with open(run.metrics_jsonl, 'w', encoding='utf-8') as file:
    file.writelines(map(records_lib.to_line, lines))
  _texts(run, num_steps)
  return path


def _record(step, seconds, name, value, unit='') -> records_lib.Record:
  return records_lib.Record(step, seconds, 0, name, value, unit)


def _start(step, clock) -> Iterable[records_lib.Record]:
  yield _record(step, clock, 'train/timing/compile_seconds', 12.0, 'seconds')
  yield _record(
      step, clock, 'train/timing/init_or_restore_seconds', 3.0, 'seconds'
  )


def _times(step, faults, draw) -> tuple[float, float]:
  wait = 0.02
  if faults.slow_steps and faults.slow_steps[0] <= step <= faults.slow_steps[1]:
    wait = 0.9
  return 0.5 + wait + 0.02 * draw.random(), wait


def loss_at(step: int) -> float:
  """The loss of a sound run, without noise."""
  return 1.5 + 5.0 / (1 + step / 200) ** 0.5


def _report(
    step, clock, step_seconds, wait, faults, draw
) -> Iterable[records_lib.Record]:
  loss = loss_at(step) * (1 + 0.01 * draw.gauss(0, 1))
  norm = 1.2 * math.exp(0.1 * draw.gauss(0, 1))
  if step == faults.spike_step:
    loss, norm = 3 * loss, 40 * norm
  if faults.nan_step is not None and step >= faults.nan_step:
    loss = norm = math.nan
  rate = 0.01 * min(1.0, step / 100) / max(1.0, step / 100) ** 0.5
  timing = 'train/timing/'
  yield _record(step, clock, LOSS, loss, 'nats/token')
  yield _record(step, clock, 'train/weight_gradient_norm', norm)
  yield _record(step, clock, 'train/learning_rate/current', rate)
  tokens = 65536 / step_seconds
  yield _record(
      step, clock, f'{timing}nonpadding_tokens_per_second', tokens,
      'tokens/second',
  )  # fmt: skip
  for name, value in (
      ('step_seconds', step_seconds), ('data_wait_seconds', wait),
      ('other_seconds', 0.01), ('device_seconds', step_seconds - wait - 0.01),
  ):  # fmt: skip
    yield _record(step, clock, timing + name, value, 'seconds')
  yield _record(step, clock, f'{timing}mfu', 0.21 / step_seconds)
  for name, size in (('host_peak', 2e9), ('device_in_use', 9e9)):
    yield _record(step, clock, f'train/memory/{name}_bytes', size, 'bytes')


def _layers(step, clock, draw) -> Iterable[records_lib.Record]:
  for number, path in enumerate(LAYERS):
    value = 1e-3 * (1 + number % 12) * math.exp(0.3 * draw.gauss(0, 1))
    yield _record(step, clock, f'train/weight_gradient_rms/{path}', value)


def _evaluation(step, clock, draw) -> Iterable[records_lib.Record]:
  value = loss_at(step) + 0.05 + 0.01 * draw.random()
  yield _record(step, clock, HELD_OUT_LOSS, value, 'nats/token')
  yield _record(
      step, clock, 'training_eval/my_task/accuracy', 0.9 / (1 + value)
  )
  yield _record(
      step, clock, 'training_eval/my_task/timing/evaluate_seconds', 4.0,
      'seconds',
  )  # fmt: skip
  yield _record(step, clock, 'inference_eval/my_task/bleu', 30 / value)


def _save(step, clock) -> Iterable[records_lib.Record]:
  yield _record(step, clock, 'train/checkpoint/saved', 1.0)
  yield _record(step, clock, 'train/timing/save_seconds', 2.5, 'seconds')
  yield _record(
      step, clock, 'train/timing/save_blocked_seconds', 0.3, 'seconds'
  )


def _ledger(step, clock) -> Iterable[records_lib.Record]:
  for kind in _KINDS:
    seconds = 400.0 if kind == 'step' else 20.0
    yield _record(step, clock, f'goodput/{kind}_seconds', seconds, 'seconds')
  yield _record(step, clock, 'goodput/fraction', 0.8)


def _texts(run: run_dir_lib.RunDir, num_steps: int) -> None:
  given = (
      'from t5wild import train as train_script\n\n'
      f"TRAIN_STEPS = {num_steps}\nMODEL_DIR = '{run.path}'\n"
      'train_script.train.total_steps = %TRAIN_STEPS\n'
      "tracker.Client.api_key = 'abcdefghijk'\n"
  )
  with open(run.config_gin, 'w', encoding='utf-8') as file:
    file.write(given)
  with open(run.operative_config_gin, 'w', encoding='utf-8') as file:
    file.write(f'{given}train_script.train.gc_period = 0\n')
  with open(run.model_info, 'w', encoding='utf-8') as file:
    file.write('mesh: replica 1 x data 4 x model 2 x sequence 1 x expert 1\n\n')
    for path in LAYERS:
      file.write(f'target/{path}      1,000  (10, 100)   float32  P()\n')
    file.write('\nparameters: 25,000\nbytes per device, parameters: 100,000\n')
  with open(run.join('held_out.jsonl'), 'w', encoding='utf-8') as file:
    for step in range(0, num_steps + 1, max(1, num_steps // 5)):
      examples = [{'true': 'a <b> & c', 'infilled': f'sample of step {step}'}]
      row = {'step': step, 'nats_per_byte': 2.0, 'examples': examples}
      file.write(json.dumps(row) + '\n')
