# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Says what is installed and seen on this machine, and the mend for what fails.

JAX and TensorFlow are asked in subprocesses with a time limit: a broken driver
may hang or end the process that asks, and the doctor must answer all the same.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
import dataclasses
import importlib.metadata
import json
import os
import pathlib
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
from typing import Any

from packaging import requirements

import t5wild
from t5wild import devices_seen
from t5wild import exit_codes
from t5wild import huge_pages

OK, NOTE, PROBLEM = 'ok', 'note', 'problem'
_MIN_OPEN_FILES = 4096
_MIN_FREE_BYTES = 10 * 1024**3
_PROBE_SECONDS = 120
_NETWORK_FILE_SYSTEMS = frozenset({
    'nfs', 'nfs4', 'cifs', 'smb3', 'lustre', 'gpfs', 'beegfs', 'ceph', '9p',
    'fuse.gcsfuse', 'fuse.s3fs', 'fuse.sshfs',
})  # fmt: skip
_JAX_PROBE = """
import json, sys
import jax
devices = jax.devices()
json.dump({'backend': jax.default_backend(), 'version': jax.__version__,
           'devices': [d.device_kind for d in devices]}, sys.stdout)
"""
_TENSORFLOW_PROBE = """
import json, sys
import tensorflow as tf
gpus = tf.config.list_physical_devices('GPU')
json.dump({'gpus': [g.name for g in gpus]}, sys.stdout)
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
  """One line of the report; `mend` is what to do about a note or problem."""

  level: str
  what: str
  mend: str = ''

  def __str__(self) -> str:
    """The line as printed, the mend below it."""
    text = f'  [{self.level:^7}] {self.what}'
    return f'{text}\n              do: {self.mend}' if self.mend else text


@dataclasses.dataclass(frozen=True, kw_only=True)
class Probe:
  """What a subprocess answered, and the last line of its complaints."""

  answer: Mapping[str, Any] | None
  error: str = ''


def main(argv: Sequence[str] = ()) -> int:
  """Prints the report; returns an exit code that tells whether all is well."""
  parser = argparse.ArgumentParser(prog='t5wild doctor', description=__doc__)
  parser.add_argument(
      '--model_dir', default='.', help='where runs will be written'
  )
  options = parser.parse_args(list(argv))
  has_problem = False
  for title, findings in _sections(options.model_dir):
    _print(f'\n{title}')
    for finding in findings:
      has_problem |= finding.level == PROBLEM
      _print(str(finding))
  _print('\nSome problems to mend.' if has_problem else '\nAll is well.')
  return (exit_codes.FAILED if has_problem else exit_codes.DONE).code


def check_python(version: tuple[int, int], *, executable: str) -> Finding:
  """Whether this Python is one that was tested."""
  text = f'Python {version[0]}.{version[1]} ({executable})'
  if (3, 11) <= version <= (3, 13):
    return Finding(level=OK, what=text)
  return Finding(
      level=PROBLEM,
      what=f'{text}; tested: 3.11 to 3.13',
      mend='make a virtual environment with one of these.',
  )


def check_package(
    requirement: str, *, version_of: Callable[[str], str | None]
) -> Finding | None:
  """A package against its tested bounds; None where an extra asks for it."""
  needed = requirements.Requirement(requirement)
  if needed.marker and not needed.marker.evaluate({'extra': ''}):
    return None
  version = version_of(needed.name)
  bounds = str(needed.specifier)
  if version is None:
    return Finding(
        level=PROBLEM,
        what=f'{needed.name} is not installed; tested: {bounds}',
        mend=f"pip install '{needed.name}{bounds}'",
    )
  if needed.specifier.contains(version, prereleases=True):
    tested = f'; tested: {bounds}' if bounds else ''
    return Finding(level=OK, what=f'{needed.name} {version}{tested}')
  return Finding(
      level=NOTE,
      what=f'{needed.name} {version}; tested: {bounds}',
      mend=f"pip install '{needed.name}{bounds}' if something fails.",
  )


def check_devices(
    probe: Probe, *, environment: Mapping[str, str], hardware: str | None
) -> Finding:
  """Which devices JAX sees; if none of the machine's, why, and the mend.

  Args:
    probe: JAX's answer.
    environment: the process's variables.
    hardware: 'gpu' or 'tpu' when the machine shows one, else None.
  """
  if probe.answer is None:
    return Finding(
        level=PROBLEM,
        what=f'JAX finds no device: {probe.error}',
        mend=_device_mend(environment, hardware),
    )
  kinds = probe.answer['devices']
  counts = [f'{kinds.count(kind)} x {kind}' for kind in dict.fromkeys(kinds)]
  what = f'JAX sees {", ".join(counts)} (backend {probe.answer["backend"]})'
  if hardware is None or probe.answer['backend'] in (hardware, 'cuda', 'rocm'):
    return Finding(level=OK, what=what)
  why = f' ({probe.error})' if probe.error else ''
  return Finding(
      level=PROBLEM,
      what=f'{what}, but this machine has a {hardware.upper()}{why}',
      mend=_device_mend(environment, hardware),
  )


def check_tensorflow(probe: Probe) -> Finding:
  """Whether TensorFlow would take memory from the GPUs that JAX uses."""
  if probe.answer is None:
    return Finding(
        level=NOTE,
        what=f'TensorFlow does not start: {probe.error}',
        mend='needed for live seqio tasks only; pip install tensorflow',
    )
  if not probe.answer['gpus']:
    return Finding(level=OK, what='TensorFlow sees no GPU, as it should')
  return Finding(
      level=NOTE,
      what=f'TensorFlow sees {len(probe.answer["gpus"])} GPUs and may take '
      'their memory',
      mend='t5wild hides them from it; in your own scripts call '
      "tf.config.set_visible_devices([], 'GPU') first.",
  )


def check_file_system(
    path: str, *, kind: str, free_bytes: int, is_writable: bool
) -> Finding:
  """Whether runs can be written at `path`, and how much of them."""
  what = f'{path}: {kind}, {free_bytes / 1e9:.0f} GB free'
  if not is_writable:
    return Finding(
        level=PROBLEM,
        what=f'{what}, not writable',
        mend='choose another folder: --gin.MODEL_DIR=/path/to/my_run',
    )
  if free_bytes < _MIN_FREE_BYTES:
    return Finding(
        level=NOTE,
        what=what,
        mend='free some space, or keep fewer checkpoints: '
        '--gin.checkpoints.SaveCheckpointConfig.keep=2',
    )
  if kind in _NETWORK_FILE_SYSTEMS:
    return Finding(
        level=NOTE,
        what=f'{what}, over the network',
        mend='fine for checkpoints; keep the compilation cache on local disk.',
    )
  return Finding(level=OK, what=what)


def check_open_files(soft: int, hard: int) -> Finding:
  """Whether enough files may be open for checkpoints and data together."""
  unlimited = resource.RLIM_INFINITY
  if soft == unlimited or soft >= _MIN_OPEN_FILES:
    return Finding(level=OK, what=f'open files: {soft} at once')
  most = 'unlimited' if hard == unlimited else hard
  mend = 'ulimit -n 65536'
  if hard != unlimited and hard < _MIN_OPEN_FILES:
    mend = f'raise the hard limit in /etc/security/limits.conf, then {mend}'
  return Finding(
      level=NOTE,
      what=f'open files: {soft} at once (at most {most}); '
      f'expected {_MIN_OPEN_FILES} for large checkpoints',
      mend=mend,
  )


def check_huge_pages(
    given_to: str | None, *, hardware: str | None
) -> list[Finding]:
  """Whether a CPU's training step gets its memory in huge pages.

  Args:
    given_to: whom the kernel gives them to, as `huge_pages.given_to` says.
    hardware: 'gpu', 'tpu', or None; beside one there is nothing to say.
  """
  if given_to is None or hardware is not None:
    return []
  if given_to != 'never':
    return [Finding(level=OK, what=f'huge pages: given to {given_to}')]
  return [
      Finding(
          level=NOTE,
          what='huge pages: given to nobody; with them a training step on this '
          'CPU may take a quarter less',
          mend='as root: echo madvise > '
          '/sys/kernel/mm/transparent_hugepage/enabled',
      )
  ]


def file_system_kind(path: str, *, mounts: str) -> str:
  """Kind of the file system that holds `path`, from `/proc/mounts`' text."""
  best, kind = '', 'unknown'
  real = os.path.realpath(path)
  for line in mounts.splitlines():
    _, point, this_kind, *_ = line.split(' ')
    point = point.replace('\\040', ' ')
    inside = real == point or real.startswith(point.rstrip('/') + '/')
    if inside and len(point) >= len(best):
      best, kind = point, this_kind
  return kind


def ask(code: str, *, seconds: float = _PROBE_SECONDS) -> Probe:
  """Runs Python `code` in a subprocess; its standard output is JSON."""
  try:
    done = subprocess.run(
        [sys.executable, '-c', code],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        env={**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '3'},
    )
  except subprocess.TimeoutExpired:
    return Probe(answer=None, error=f'no answer within {seconds:g} s')
  lines = [line for line in done.stderr.splitlines() if line.strip()]
  last = lines[-1].strip() if lines else ''
  if done.returncode == 0:
    return Probe(answer=json.loads(done.stdout.splitlines()[-1]), error=last)
  return Probe(answer=None, error=last or f'exit code {done.returncode}')


def _sections(model_dir: str) -> Iterator[tuple[str, list[Finding]]]:
  yield f't5wild {t5wild.__version__} on {platform.platform()}', [
      check_python(sys.version_info[:2], executable=sys.executable)
  ]
  yield 'Packages', list(_package_findings())
  hardware = devices_seen.accelerator()
  yield 'Devices', [
      check_devices(
          ask(_JAX_PROBE), environment=os.environ, hardware=hardware
      ),
      check_tensorflow(ask(_TENSORFLOW_PROBE)),
  ]
  yield 'Limits', [
      _file_system_finding(model_dir),
      check_open_files(*resource.getrlimit(resource.RLIMIT_NOFILE)),
      *check_huge_pages(huge_pages.given_to(), hardware=hardware),
  ]


def _package_findings() -> Iterator[Finding]:
  try:
    needed = importlib.metadata.requires('t5wild') or []
  except importlib.metadata.PackageNotFoundError:
    yield Finding(
        level=PROBLEM,
        what='t5wild itself is not installed, so its bounds are not known',
        mend='pip install -e . in the checkout',
    )
    return
  for requirement in needed:
    finding = check_package(requirement, version_of=_version_of)
    if finding is not None:
      yield finding


def _version_of(name: str) -> str | None:
  try:
    return importlib.metadata.version(name)
  except importlib.metadata.PackageNotFoundError:
    return None


def _file_system_finding(path: str) -> Finding:
  if '://' in path:
    return Finding(level=OK, what=f'{path}: a bucket, not looked at')
  folder = pathlib.Path(path).absolute()
  while not folder.exists():  # a run's folder is made by the run
    folder = folder.parent
  mounts = pathlib.Path('/proc/mounts')
  return check_file_system(
      str(folder),
      kind=file_system_kind(
          str(folder), mounts=mounts.read_text() if mounts.exists() else ''
      ),
      free_bytes=shutil.disk_usage(folder).free,
      is_writable=_is_writable(folder),
  )


def _is_writable(folder: pathlib.Path) -> bool:
  try:
    with tempfile.TemporaryFile(dir=folder):
      return True
  except OSError:
    return False


def _device_mend(environment: Mapping[str, str], hardware: str | None) -> str:
  asked = environment.get('JAX_PLATFORMS', '')
  if asked and (hardware is None or 'cpu' in asked.split(',')):
    return f'JAX_PLATFORMS is {asked!r}: unset it, and look again.'
  if hardware == 'tpu':
    return "pip install 't5wild[tpu]', and end other processes that hold it."
  if hardware == 'gpu':
    return (
        "pip install 't5wild[cuda12]' (driver 525 or newer) or "
        "'t5wild[cuda13]' (driver 580 or newer); nvidia-smi shows the driver."
    )
  return 'reinstall: pip install --force-reinstall jax jaxlib'


def _print(text: str) -> None:
  print(text)  # noqa: T201 the command's product


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
