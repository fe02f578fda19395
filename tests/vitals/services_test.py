# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Services have what a run wrote, by their own clients, without a network.

W&B and MLflow are extras: their tests skip where they are not installed.
"""

import importlib.util
import json
import logging
import os
import re
import socket
import struct
import time
import urllib.request

import pytest

from t5wild import run_dir as run_dir_lib
from t5wild.trainer import service_sink
from t5wild.vitals import records as records_lib
from t5wild.vitals.services import mlflow_sink
from t5wild.vitals.services import prometheus_sink
from t5wild.vitals.services import service as service_lib
from t5wild.vitals.services import wandb_sink

_FOR_A_PROCESS = 30  # seconds, on a machine with other load
_CONFIG = "password = 'hunter2'\nBATCH_SIZE = 8\n"


def _needs(package, extra):
  return pytest.mark.skipif(
      importlib.util.find_spec(package) is None,
      reason=f"needs pip install 't5wild[{extra}]'",
  )


def _records(step, loss):
  return [
      records_lib.Record(step, 5.0 + step, 0, 'train/loss', loss, 'nats'),
      records_lib.Record(step, 5.0 + step, 0, 'train/timing/mfu', 0.5),
  ]


def _run_of(service, run_dir, steps):
  sink = service_sink.ServiceSink(service, run_dir)
  sink.write_text(min(steps), 'config', _CONFIG)
  for step in steps:
    sink.write(_records(step, 10.0 - step))
  sink.close()


def _free_port():
  with socket.socket() as one:
    one.bind(('127.0.0.1', 0))
    return one.getsockname()[1]


def _scraped(port):
  url = f'http://127.0.0.1:{port}/metrics'
  with urllib.request.urlopen(url, timeout=5) as answer:
    return answer.read().decode()


def _wait_for(is_true):
  until = time.monotonic() + _FOR_A_PROCESS
  while not is_true():
    assert time.monotonic() < until
    time.sleep(0.05)


@_needs('prometheus_client', 'prometheus')
def test_prometheus_scrapes_the_newest_numbers_from_localhost(
    tmp_path, caplog
):
  port = _free_port()
  run_dir = run_dir_lib.RunDir(str(tmp_path / 'first'))
  service = prometheus_sink.PrometheusSink(port=port)
  sink = service_sink.ServiceSink(service, run_dir)
  sink.write(_records(1, 9.0))
  sink.write(_records(2, float('nan')))

  def has_come():
    try:
      return 't5wild_step{record="step",run="first"} 2.0' in _scraped(port)
    except OSError:
      return False

  _wait_for(has_come)
  text = _scraped(port)
  assert 't5wild_train_loss{record="train/loss",run="first"} NaN' in text
  assert 't5wild_train_timing_mfu{record="train/timing/mfu"' in text
  # Another run on the port is told, once, and goes on.
  other = service_sink.ServiceSink(
      service, run_dir_lib.RunDir(str(tmp_path / 'other'))
  )
  for step in range(3):
    other.write(_records(step, 1.0))
  _wait_for(lambda: [r for r in caplog.records if r.levelno == logging.ERROR])
  other.close()
  (error,) = [r for r in caplog.records if r.levelno == logging.ERROR]
  assert 'PrometheusSink cannot connect' in error.getMessage()
  assert 'in use' in error.getMessage()
  sink.close()
  with pytest.raises(OSError):
    _scraped(port)


@pytest.mark.slow
@_needs('wandb', 'wandb')
def test_wandb_holds_offline_what_both_starts_of_a_run_wrote(
    tmp_path, monkeypatch
):
  monkeypatch.setenv('WANDB_API_KEY', 'f' * 40)
  run_dir = run_dir_lib.RunDir(str(tmp_path / 'my_run'))
  service = wandb_sink.WandbSink(project='tests')
  _run_of(service, run_dir, [1, 2, 3])
  _run_of(service, run_dir, [3, 4])  # goes back a step, as a resumed run does
  folder = tmp_path / 'my_run' / 'services'
  files = sorted(folder.glob('wandb/wandb/offline-run-*/run-*.wandb'))
  run_id = (folder / 'wandb' / 'run_id.txt').read_text().strip()
  assert len(files) == 2
  assert {f.name for f in files} == {f'run-{run_id}.wandb'}
  everything = b''.join(
      path.read_bytes() for path in folder.rglob('*') if path.is_file()
  )
  assert b'train/loss' in everything and b'BATCH_SIZE' in everything
  assert b'hunter2' not in everything
  assert b'f' * 40 not in everything
  logged = [_wandb_history(path) for path in files]
  assert logged == [[(1, 9.0), (2, 8.0), (3, 7.0)], [(3, 7.0), (4, 6.0)]]


def _wandb_history(path):
  """(step, loss) of each row that W&B would sync from a file."""
  from wandb.proto import wandb_internal_pb2

  data = path.read_bytes()
  assert len(data) < 1 << 15  # one block: no record is split
  rows = []
  data = data[7:]  # the file's head
  while data:  # a record: its checksum, length, kind, then itself
    length, kind = struct.unpack('<4xHB', data[:7])
    assert kind == 1
    record = wandb_internal_pb2.Record.FromString(data[7 : 7 + length])
    data = data[7 + length :]
    if record.WhichOneof('record_type') == 'history':
      row = {
          '/'.join(item.nested_key) or item.key: json.loads(item.value_json)
          for item in record.history.item
      }
      rows.append((row['step'], row['train/loss']))
  return rows


@pytest.mark.slow
@_needs('mlflow', 'mlflow')
def test_mlflow_holds_what_both_starts_of_a_run_wrote(tmp_path):
  import mlflow

  run_dir = run_dir_lib.RunDir(str(tmp_path / 'my_run'))
  service = mlflow_sink.MlflowSink(experiment='tests', close_seconds=120.0)
  _run_of(service, run_dir, [1, 2])
  _run_of(service, run_dir, [3])
  folder = tmp_path / 'my_run' / 'services' / 'mlflow'
  client = mlflow.MlflowClient(tracking_uri=f'sqlite:///{folder}/mlflow.db')
  (run,) = client.search_runs(
      [client.get_experiment_by_name('tests').experiment_id]
  )
  history = client.get_metric_history(run.info.run_id, 'train/loss')
  assert [(m.step, m.value) for m in history] == [(1, 9.0), (2, 8.0), (3, 7.0)]
  assert run.info.status == 'FINISHED'
  assert run.info.run_name == 'my_run'
  (text,) = (folder / 'files').rglob('config_1.txt')
  assert 'BATCH_SIZE' in text.read_text()
  assert 'hunter2' not in text.read_text()


@pytest.mark.parametrize(
    ('make', 'told'),
    [
        (lambda: prometheus_sink.PrometheusSink(port=0), 'port is 0'),
        (lambda: wandb_sink.WandbSink(mode='on'), "mode is 'on'"),
        (
            lambda: mlflow_sink.MlflowSink(tracking_uri='https://me:pw@host/x'),
            'MLFLOW_TRACKING_PASSWORD',
        ),
    ],
)
def test_a_setting_that_cannot_be_is_refused_where_gin_makes_it(make, told):
  with pytest.raises(service_lib.BadServiceError, match=re.escape(told)) as e:
    make()
  assert 'pw' not in str(e.value)


@pytest.mark.skipif(
    importlib.util.find_spec('wandb') is not None, reason='wandb is there'
)
def test_wandb_that_is_not_installed_is_told_with_its_pip_line(
    tmp_path, monkeypatch
):
  # What an earlier run left in the working directory is no package.
  monkeypatch.syspath_prepend(tmp_path)
  os.mkdir(tmp_path / 'wandb')
  with pytest.raises(service_lib.BadServiceError, match='pip install'):
    wandb_sink.WandbSink()
