# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a service is to a run: settings that gin makes, and a client."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
import importlib.util
import os
from typing import Any, Protocol

from t5wild import run_dir as run_dir_lib
from t5wild.vitals import records as records_lib


class Client(Protocol):
  """Takes records and texts in a process of its own; may raise, and block."""

  def write(self, records: Sequence[records_lib.Record]) -> None:
    """Takes the records of one report."""

  def write_text(self, step: int, name: str, text: str) -> None:
    """Takes a text, such as the operative config, without secrets."""

  def close(self) -> None:
    """Sends what is left."""


class Service(Protocol):
  """A frozen dataclass of plain values, so that another process can make it.

  Attributes:
    close_seconds: how long a run that ends waits for the client.
  """

  close_seconds: float

  def connect(self, run_dir: run_dir_lib.RunDir) -> Client:
    """The client; called in the service's own process."""


class BadServiceError(ValueError):
  """A service that cannot be used; nothing was started."""


def require(package: str, *, extra: str, of: str) -> None:
  """Refuses a service whose client is not installed here.

  Args:
    package: to import.
    extra: of ours, that brings it.
    of: the service's name.

  Raises:
    BadServiceError: it is not there.
  """
  spec = importlib.util.find_spec(package)
  # A folder `wandb` in the working directory is no package: it has no file.
  if spec is None or spec.origin is None:
    raise BadServiceError(
        f'{of} needs the package {package}, which is not installed here\n'
        f'  expected: the extra `{extra}` of t5wild.\n'
        f"  do: pip install 't5wild[{extra}]', or leave {of} out of "
        'train_script.train.sinks'
    )


def check(services: Any) -> None:
  """Refuses what `train_script.train.sinks` cannot be; None is none.

  Raises:
    BadServiceError: see there.
  """
  if services is not None and not isinstance(services, (list, tuple)):
    raise _no_service(services)
  for each in services or ():
    described(each)


def described(service: Service) -> dict[str, Any]:
  """What another process makes the same service from.

  Raises:
    BadServiceError: it is no service.
  """
  cls = type(service)
  is_made = dataclasses.is_dataclass(cls)  # and no class without parentheses
  if not is_made or not hasattr(service, 'connect'):
    raise _no_service(service)
  return {
      'module': cls.__module__,
      'name': cls.__qualname__,
      'arguments': dataclasses.asdict(service),
  }


def remembered_id(run_dir: run_dir_lib.RunDir, service: str) -> str | None:
  """The id that a service gave this run before; None = never."""
  try:
    with open(_id_file(run_dir, service), encoding='utf-8') as file:
      return file.read().strip() or None
  except FileNotFoundError:
    return None


def remember_id(run_dir: run_dir_lib.RunDir, service: str, value: str) -> None:
  """Keeps the id, so that a run that is started again goes on under it."""
  path = _id_file(run_dir, service)
  os.makedirs(os.path.dirname(path), exist_ok=True)
  partial = f'{path}.{os.getpid()}'
  with open(partial, 'w', encoding='utf-8') as file:
    file.write(f'{value}\n')
  os.replace(partial, path)


def _id_file(run_dir: run_dir_lib.RunDir, service: str) -> str:
  return run_dir.service_file(service, 'run_id.txt')


def _no_service(value: Any) -> BadServiceError:
  return BadServiceError(
      f'train_script.train.sinks holds {value!r}\n'
      '  expected: a list of services such as [@wandb_sink.WandbSink()], with '
      'their parentheses.\n'
      '  do: see "Numbers to other places" in docs/reports.md'
  )
