# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A server of S3 on this machine, with one bucket, which may go away."""

import contextlib
import subprocess
import sys
import time

import pytest

from tests import gate as gate_lib
from tests import multiprocess

BUCKET = 'runs'
_TIMEOUT_SECONDS = 240
_NEEDED = "needs a server and a client of S3: pip install -e '.[test]'"


def skip_without_its_packages() -> None:
  """Skips the tests of a module where the server cannot be had."""
  for name in ('boto3', 'moto.server', 's3fs'):
    pytest.importorskip(name, reason=_NEEDED)


class Server:
  """A server of S3 in a process of its own, behind a gate."""

  def __init__(self):
    own_port = multiprocess.free_port()
    self.port = multiprocess.free_port()
    self.gate = gate_lib.Gate(port=self.port, to_port=own_port)
    command = ['-m', 'moto.server', '-H', '127.0.0.1', '-p', str(own_port)]
    self._process = subprocess.Popen(
        [sys.executable, *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

  def wait_until_it_answers(self) -> None:
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while time.monotonic() < deadline and self._process.poll() is None:
      with contextlib.suppress(Exception):
        self.client().create_bucket(Bucket=BUCKET)
        return
      time.sleep(0.2)
    raise AssertionError(f'no server, it says {self._process.poll()}')

  def close(self) -> None:
    self.gate.shut()
    self._process.kill()
    self._process.wait()

  def client(self):
    import boto3
    from botocore import config

    once = config.Config(retries={'max_attempts': 1})
    return boto3.client('s3', config=once)

  def names(self, prefix: str) -> list[str]:
    found = self.client().list_objects_v2(Bucket=BUCKET, Prefix=prefix)
    return [entry['Key'] for entry in found.get('Contents', ())]

  def read(self, name: str) -> str:
    answer = self.client().get_object(Bucket=BUCKET, Key=name)
    return answer['Body'].read().decode('utf-8')


def _forget_other_servers() -> None:
  """Clients are kept for the process, with the address they began with."""
  from etils.epath import backend
  import s3fs

  type(backend.fsspec_backend)._get_filesystem.cache_clear()
  s3fs.S3FileSystem.clear_instance_cache()


@contextlib.contextmanager
def running():
  """Starts one, to which AWS's variables point meanwhile."""
  served = Server()
  with pytest.MonkeyPatch.context() as patch:
    for name, value in {
        'AWS_ENDPOINT_URL': f'http://127.0.0.1:{served.port}',
        'AWS_ACCESS_KEY_ID': 'some',
        'AWS_SECRET_ACCESS_KEY': 'secret',
        'AWS_DEFAULT_REGION': 'us-east-1',
        'AWS_EC2_METADATA_DISABLED': 'true',
    }.items():
      patch.setenv(name, value)
    _forget_other_servers()
    served.gate.open()
    try:
      served.wait_until_it_answers()
      yield served
    finally:
      served.close()
