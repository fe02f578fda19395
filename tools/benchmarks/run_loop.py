# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The whole loop (feed, metrics, records, ledger) against the bare step."""

import io
import itertools
import tempfile
import types

import jax

from benchmarks import measure
from benchmarks import workload as workload_lib
from t5wild import run_dir as run_dir_lib
from t5wild.data import device_feed
from t5wild.data import synthetic
from t5wild.trainer import cadence as cadence_lib
from t5wild.trainer import loop
from t5wild.trainer import metrics_manager
from t5wild.trainer import preemption
from t5wild.trainer import profiling
from t5wild.trainer import rank_times
from t5wild.trainer import run_actions
from t5wild.trainer import sinks
from t5wild.trainer import step_watch
from t5wild.vitals import answers
from t5wild.vitals import goodput

GOAL = 1.02
STEPS_PER_RUN = 4
STATS_PERIOD = 2


class _Run:
  """A run of the loop that goes on where its last call stopped."""

  def __init__(self, trainer, workload, folder: str):
    run_dir = run_dir_lib.RunDir(folder)
    self._trainer = trainer
    self._step = 0
    self._feed = device_feed.DeviceFeed(
        synthetic.SyntheticReader(workload.data), jax.device_put
    )
    self._sinks = (
        sinks.JsonlSink(run_dir.metrics_jsonl),
        sinks.TensorBoardSink(run_dir.summaries('train'), collection='train'),
        sinks.ProgressSink(total_steps=10**6, stream=io.StringIO()),
    )
    self._metrics = metrics_manager.MetricsManager('train', sinks=self._sinks)
    self._actions = run_actions.RunActions(
        trainer=trainer,
        train_metrics=self._metrics,
        evaluators={},
        saves=types.SimpleNamespace(retry_is_due=lambda: False),
        user_actions={},
        profiler=profiling.StepProfiler(run_dir.profile),
    )
    self._actions.watch = step_watch.StepWatch(answers.Answers())
    self._actions.rank_times = rank_times.RankTimes(
        run_dir, tell=lambda *times: None, add_event=lambda name, **more: None
    )

  def __call__(self) -> None:
    """Takes some steps with all that a run does, and waits for their end."""
    with preemption.StopSignal() as stop_signal:
      self._step = loop.run(
          step_fn=self._trainer.train_step,
          feed=self._feed,
          cadence=cadence_lib.Cadence(
              total_steps=self._step + STEPS_PER_RUN,
              eval_period=None,
              stats_period=STATS_PERIOD,
              save_period=None,
              checkpoint_steps=(),
          ),
          actions=self._actions,
          first_step=self._step,
          stop_signal=stop_signal,
          ledger=goodput.Ledger(),
      )
    jax.block_until_ready(self._trainer.train_state.params)
    self._metrics.flush()

  def close(self) -> None:
    """Ends its threads."""
    self._feed.close()
    self._actions.rank_times.close()
    self._metrics.close()
    for sink in self._sinks:
      sink.close()


def run(options) -> None:
  """Prints the seconds of both and their ratio."""
  workload = workload_lib.of(options)
  trainer = workload_lib.make_trainer(workload)
  batches = itertools.cycle(
      [workload_lib.make_batch(workload, index=index) for index in range(4)]
  )

  def bare():
    for _ in range(STEPS_PER_RUN):
      trainer.train_step(next(batches))
    jax.block_until_ready(trainer.train_state.params)

  with tempfile.TemporaryDirectory() as folder:
    whole = _Run(trainer, workload, folder)
    try:
      times = measure.interleave(
          {'bare': bare, 'whole': whole}, runs=options.runs
      )
    finally:
      whole.close()
  for name, one in times.items():
    measure.emit_times(f'loop_{name}', one, steps=STEPS_PER_RUN)
  measure.emit_ratio(
      'loop_whole_to_bare', times['whole'], times['bare'], goal=GOAL
  )
