# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Prometheus: the newest numbers of a run, to be fetched from localhost."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
import os
import re

from t5wild import run_dir as run_dir_lib
from t5wild.vitals import records as records_lib
from t5wild.vitals.services import service

_PORTS = range(1, 65536)
_BAD = re.compile(r'\W+', re.ASCII)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrometheusSink:
  """Shows the newest value of each record at http://127.0.0.1:PORT/metrics.

  The record `train/loss` is `t5wild_train_loss{record="train/loss",run=...}`.

  Attributes:
    port: on 127.0.0.1 only.
    close_seconds: how long a run that ends waits for its end.
  """

  port: int = 9464
  close_seconds: float = 5.0

  def __post_init__(self):
    """Refuses a port that there is not, and a client that is not there."""
    if self.port not in _PORTS:
      raise service.BadServiceError(
          f'PrometheusSink.port is {self.port!r}\n'
          f'  expected: {_PORTS[0]} to {_PORTS[-1]}.\n'
          '  do: port = 9464, and have Prometheus scrape localhost:9464'
      )
    service.require(
        'prometheus_client', extra='prometheus', of='PrometheusSink'
    )

  def connect(self, run_dir: run_dir_lib.RunDir) -> PrometheusClient:
    """Opens the port."""
    return PrometheusClient(self, run_dir)


class PrometheusClient:
  """One page of the newest numbers."""

  def __init__(self, settings: PrometheusSink, run_dir: run_dir_lib.RunDir):
    """Opens the port.

    Raises:
      OSError: it is in use.
    """
    import prometheus_client

    self._registry = prometheus_client.CollectorRegistry()
    self._gauge = prometheus_client.Gauge
    self._gauges = {}
    self._run = os.path.basename(run_dir.path)
    self._server, self._thread = prometheus_client.start_http_server(
        settings.port, addr='127.0.0.1', registry=self._registry
    )

  def write(self, records: Sequence[records_lib.Record]) -> None:
    """Shows the records in the place of older ones."""
    for record in records:
      self._set(record.name, record.value, record.unit)
    if records:
      newest = max(records, key=lambda each: each.step)
      self._set('step', newest.step, 'finished updates of the newest record')
      self._set('record_seconds', newest.seconds, 'when, since 1970')

  def _set(self, name: str, value: float, told: str) -> None:
    metric = f't5wild_{_BAD.sub("_", name).strip("_")}'
    gauge = self._gauges.get(metric)
    if gauge is None:
      gauge = self._gauge(
          metric, told or name, ['record', 'run'], registry=self._registry
      )
      self._gauges[metric] = gauge
    gauge.labels(record=name, run=self._run).set(value)

  def write_text(self, step: int, name: str, text: str) -> None:
    """Does nothing: Prometheus has numbers alone."""

  def close(self) -> None:
    """Closes the port."""
    self._server.shutdown()
    self._thread.join()
    self._server.server_close()
