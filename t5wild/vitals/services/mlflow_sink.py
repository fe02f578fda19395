# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""MLflow: a run's records and texts, by its own client."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
import os
import re
import urllib.parse

from t5wild import run_dir as run_dir_lib
from t5wild.vitals import records as records_lib
from t5wild.vitals.services import service

_MOST = 1000  # metrics of one request, by MLflow
_BAD = re.compile(r'[^\w\-. :/]')  # in names


@dataclasses.dataclass(frozen=True, kw_only=True)
class MlflowSink:
  """Sends records to MLflow.

  A run that is started again goes on under its id. User and password are what
  MLFLOW_TRACKING_USERNAME and its like say; they have no place in a recipe.

  Attributes:
    experiment: by name; made if there is none.
    tracking_uri: a server, or `sqlite:///...`; None = a database below
      MODEL_DIR/services/mlflow.
    run_name: shown; None = the last part of MODEL_DIR.
    close_seconds: how long a run that ends waits for what is still to be sent.
  """

  experiment: str = 't5wild'
  tracking_uri: str | None = None
  run_name: str | None = None
  close_seconds: float = 30.0

  def __post_init__(self):
    """Refuses a password in the URI, and a client that is not there."""
    if self.tracking_uri and urllib.parse.urlsplit(self.tracking_uri).password:
      raise service.BadServiceError(
          'MlflowSink.tracking_uri holds a password (not shown here)\n'
          '  expected: a URI without, since recipes are kept with each run.\n'
          '  do: set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD'
      )
    service.require('mlflow', extra='mlflow', of='MlflowSink')

  def connect(self, run_dir: run_dir_lib.RunDir) -> MlflowClient:
    """Begins, or goes on with, the MLflow run of this MODEL_DIR."""
    return MlflowClient(self, run_dir)


class MlflowClient:
  """A run of MLflow."""

  def __init__(self, settings: MlflowSink, run_dir: run_dir_lib.RunDir):
    """Starts the client; this waits for the server."""
    import mlflow  # seconds that only such a run pays
    from mlflow import entities

    self._metric = entities.Metric
    folder = os.path.abspath(run_dir.service_file('mlflow'))
    os.makedirs(folder, exist_ok=True)
    uri = settings.tracking_uri or f'sqlite:///{folder}/mlflow.db'
    self._client = mlflow.MlflowClient(tracking_uri=uri)
    self._run_id = service.remembered_id(run_dir, 'mlflow')
    if self._run_id is None:
      run = self._client.create_run(
          self._experiment(settings, folder),
          run_name=settings.run_name or os.path.basename(run_dir.path),
      )
      self._run_id = run.info.run_id
      service.remember_id(run_dir, 'mlflow', self._run_id)
    self._client.update_run(self._run_id, status='RUNNING')

  def _experiment(self, settings: MlflowSink, folder: str) -> str:
    found = self._client.get_experiment_by_name(settings.experiment)
    if found is not None:
      return found.experiment_id
    # A server has a place of its own for files.
    place = None if settings.tracking_uri else f'file://{folder}/files'
    return self._client.create_experiment(
        settings.experiment, artifact_location=place
    )

  def write(self, records: Sequence[records_lib.Record]) -> None:
    """Logs the records."""
    metrics = [
        self._metric(
            _BAD.sub('_', r.name), r.value, int(1000 * r.seconds), r.step
        )
        for r in records
    ]
    for start in range(0, len(metrics), _MOST):
      self._client.log_batch(
          self._run_id, metrics=metrics[start : start + _MOST]
      )

  def write_text(self, step: int, name: str, text: str) -> None:
    """Keeps a text as a file of the run."""
    safe = _BAD.sub('_', name).replace('/', '_')
    self._client.log_text(self._run_id, text, f'{safe}_{step}.txt')

  def close(self) -> None:
    """Ends the run there."""
    self._client.set_terminated(self._run_id)
