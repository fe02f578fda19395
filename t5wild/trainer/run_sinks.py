# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The places one run writes its numbers to, opened once and shared."""

from collections.abc import Sequence
import logging

import jax

from t5wild import run_dir as run_dir_lib
from t5wild.trainer import bucket_mirror
from t5wild.trainer import service_sink
from t5wild.trainer import sinks
from t5wild.vitals import goodput
from t5wild.vitals.services import service as service_lib


class RunSinks:
  """One JSONL file, one progress line, services; TensorBoard by collection.

  Only the writing process has sinks: metrics are reduced over all devices, so
  every process would write the same.

  Attributes:
    run_dir: Where records, events and traces are written: the run's directory,
      or local files that are sent there when it is a bucket.
  """

  def __init__(
      self,
      run_dir: run_dir_lib.RunDir,
      *,
      total_steps: int,
      is_writer: bool,
      services: Sequence[service_lib.Service] = (),
  ):
    """Opens what all collections share.

    Args:
      run_dir: Where files go.
      total_steps: Step at which the progress line is done.
      is_writer: Whether this process writes.
      services: What gin asks for besides; each has a process of its own.
    """
    self.run_dir = run_dir
    self._shared: list[sinks.Sink] = []
    self._of: dict[str, Sequence[sinks.Sink]] = {}
    self._is_writer = is_writer
    if is_writer:
      mirrors = []
      if run_dir.is_bucket:
        mirrors = [bucket_mirror.BucketMirror(run_dir)]
        self.run_dir = run_dir = mirrors[0].run_dir
      on_cpu = jax.devices()[0].platform == 'cpu'
      self._shared = [
          sinks.JsonlSink(run_dir.metrics_jsonl),
          sinks.ProgressSink(
              total_steps=total_steps,
              mfu_note='of measured CPU peak' if on_cpu else '',
          ),
          *(service_sink.ServiceSink(each, run_dir) for each in services),
          *mirrors,  # closed last: sends what the others have written
      ]

  def of(self, collection: str) -> Sequence[sinks.Sink]:
    """Sinks of `train`, `training_eval/TASK`, ...; empty where none writes."""
    if not self._is_writer:
      return ()
    if collection not in self._of:
      self._of[collection] = (
          *self._shared,
          sinks.TensorBoardSink(
              self.run_dir.summaries(collection), collection=collection
          ),
      )
    return self._of[collection]

  def close(self, ledger: goodput.Ledger, *, step: int) -> None:
    """Writes where the run's time went and closes everything."""
    if self._shared:
      self._shared[0].write(ledger.records(step=step, host=0))
    for sink in self._shared:
      if isinstance(sink, service_sink.ServiceSink):
        sink.start_closing()
    own = [opened[-1] for opened in self._of.values()]
    for sink in (*own, *self._shared):
      try:
        sink.close()
      except OSError as error:
        logging.error(
            '%s lost what it had not written when the run ended (%s): free '
            'some space before the next run.',
            type(sink).__name__,
            error,
        )
