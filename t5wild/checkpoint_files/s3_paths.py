# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Makes `epath.Path('s3://...')` work, by s3fs, in all of the process.

By itself etils takes TensorFlow for every bucket as soon as it is installed,
and TensorFlow knows no `s3://`. What fails is an OSError here, as on a disk,
whichever library of AWS's failed.
"""

from collections.abc import Callable
import functools
import importlib.util
from typing import Any

from etils import epath
from etils.epath import backend as backend_lib
from etils.epath import gpath

_CALLS = (
    'copy', 'exists', 'is_dir', 'open', 'read_bytes', 'read_text', 'rename',
    'replace', 'rmtree', 'stat', 'unlink', 'write_bytes', 'write_text',
)  # fmt: skip


class NoDriverError(OSError):
  """A path on S3 where nothing can reach S3."""


@epath.register_path_cls('s3://')
class S3Path(gpath.PosixGPath):
  """A path on S3; endpoint and credentials are those of AWS's variables."""

  @property
  def _backend(self) -> backend_lib.Backend:
    if self._uri_scheme is None:  # what `relative_to` gives
      return super()._backend
    _prepare(self._path_str)
    return backend_lib.fsspec_backend

  def mkdir(self, mode=None, parents=False, exist_ok=False) -> None:
    """Makes nothing: S3 has no folders, and a misspelt bucket is no wish."""
    del mode, parents
    if not exist_ok and self.exists():
      raise FileExistsError(f'{self} exists already')

  def iterdir(self):
    """Yields what lies in the folder; raises what `exists` would."""
    names = _as_os_error(lambda path: list(gpath.PosixGPath.iterdir(path)))
    yield from names(self)


def _as_os_error(call: Callable[..., Any]) -> Callable[..., Any]:
  @functools.wraps(call)
  def wrapped(path, *args, **kwargs):
    try:
      return call(path, *args, **kwargs)
    except OSError:
      raise
    except Exception as error:  # botocore has kinds of its own
      text = f'{path}: {type(error).__name__}: {error}'
      raise OSError(text) from error

  return wrapped


for _name in _CALLS:
  setattr(S3Path, _name, _as_os_error(getattr(gpath.PosixGPath, _name)))


@functools.cache
def _prepare(path: str) -> None:
  if importlib.util.find_spec('s3fs') is None:
    raise NoDriverError(
        f'{path} is on S3 and s3fs is not installed, expected it for s3:// '
        "paths: pip install 't5wild[s3]'"
    )
  import fsspec  # only where there is a bucket

  # Others write there too: TensorStore, other hosts, the run that is watched.
  config = fsspec.config.conf.setdefault('s3', {})
  config.setdefault('use_listings_cache', False)
