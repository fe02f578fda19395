# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Checksums of the files of a checkpoint, and what has become of the files.

CRC-32 of blocks: any one flipped bit is found, anything else but once in 2^32
blocks, and zlib has it at several gigabytes a second on one core. It is no
guard against a person who forges both file and sum.
"""

from collections.abc import Callable, Collection, Iterator
import concurrent.futures
import dataclasses
import json
import os
import zlib

from etils import epath

FOLDER = 'integrity'
# Checkpoint items that may go while the rest stays, and what tells that they
# were removed, not lost.
_MAY_GO = {'dataset': 'dataset_removed'}
# Written, or written again, when the checkpoint is complete.
_LATER = (
    'metrics.json', f'{FOLDER}/files.', 'health', 'pinned', 'adopted',
    *_MAY_GO.values(),
)  # fmt: skip
_VERSION = 1
_BLOCK_BYTES = 4 * 2**20
_THREADS = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Damage:
  """A file that is not as it was saved.

  Attributes:
    file: its name within the checkpoint.
    what: what is wrong with it.
  """

  file: str
  what: str

  def __str__(self) -> str:
    """For a person."""
    return f'{self.file} {self.what}'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Verdict:
  """What a look at all files came to.

  Attributes:
    num_files: files that were looked at.
    num_bytes: their bytes.
    damages: what is wrong.
    unknown: names of files that have no checksum.
  """

  num_files: int
  num_bytes: int
  damages: tuple[Damage, ...]
  unknown: tuple[str, ...]


class NoHashesError(ValueError):
  """A checkpoint without checksums, of an older version or somebody else."""


def names(checkpoint: str | os.PathLike[str]) -> list[str]:
  """Returns the names of the files in a folder, with slashes, in order."""
  root = epath.Path(checkpoint)
  return sorted(_below(root, ''))


def _below(folder: epath.Path, prefix: str) -> Iterator[str]:
  for entry in folder.iterdir():
    if entry.is_dir():
      yield from _below(entry, f'{prefix}{entry.name}/')
    else:
      yield prefix + entry.name


def is_hashed(name: str) -> bool:
  """Whether a file is one of those that never change."""
  return not name.startswith(_LATER) and not name.endswith('.tmp')


def process_of(name: str) -> int:
  """Returns which process of a run hashes a file: the one that wrote it."""
  for part in name.split('/'):
    number = part.removeprefix('ocdbt.process_')
    if number != part and number.isdigit():
      return int(number)
  return 0


def write(
    checkpoint: str | os.PathLike[str], *, process: int = 0, count: int = 1
) -> int:
  """Hashes what a process wrote of a complete checkpoint; returns the bytes.

  Args:
    checkpoint: On a disk: it is read back.
    process: Index of the process.
    count: Number of processes, each of which calls this.

  Raises:
    OSError: The checkpoint cannot be read, or no more be written.
  """
  mine = [
      name
      for name in names(checkpoint)
      if is_hashed(name) and process_of(name) % count == process
  ]
  hashed = _hash_all(checkpoint, mine)
  root = epath.Path(checkpoint)
  folder = root / FOLDER
  folder.mkdir(exist_ok=True)
  text = json.dumps(
      {'version': _VERSION, 'block_bytes': _BLOCK_BYTES, 'files': hashed}
  )
  final = folder / f'files.process_{process:05d}-of-{count:05d}.json'
  # Half a list must not be taken for all of it.
  half = folder / f'{final.name}.tmp'
  half.write_text(text)
  half.rename(final)
  return sum(entry['bytes'] for entry in hashed.values())


def _hash_all(checkpoint, wanted: list[str]) -> dict[str, dict]:
  root = epath.Path(checkpoint)
  with concurrent.futures.ThreadPoolExecutor(_THREADS) as pool:
    hashes = pool.map(lambda name: hash_file(root / name), wanted)
    return dict(zip(wanted, hashes, strict=True))


def hash_file(
    path: str | os.PathLike[str],
    *,
    on_block: Callable[[bytes], None] = lambda block: None,
) -> dict:
  """Returns the size of a file and the checksums of its blocks.

  Args:
    path: Of the file.
    on_block: Called with each block, as a copy does.
  """
  sums, size = [], 0
  with epath.Path(path).open('rb') as stream:
    while block := stream.read(_BLOCK_BYTES):
      sums.append(f'{zlib.crc32(block):08x}')
      size += len(block)
      on_block(block)
  return {'bytes': size, 'crc32': sums}


def have_same_files(
    one: str | os.PathLike[str], other: str | os.PathLike[str]
) -> bool:
  """Whether two checkpoints have the same arrays by all bytes of their files.

  Reads both whole: for those that have no hashes.
  """
  of_state = [
      [name for name in names(each) if name.startswith('state/')]
      for each in (one, other)
  ]
  return of_state[0] == of_state[1] and (
      _hash_all(one, of_state[0]) == _hash_all(other, of_state[1])
  )


def read(checkpoint: str | os.PathLike[str]) -> dict[str, dict]:
  """Returns size and checksums by name of file.

  Raises:
    NoHashesError: There are none, or they cannot be read.
  """
  folder = epath.Path(checkpoint) / FOLDER
  found: dict[str, dict] = {}
  try:
    lists = [p for p in folder.iterdir() if p.name.startswith('files.')]
    for path in lists:
      if path.suffix == '.json':
        found.update(_entries(json.loads(path.read_text())))
  except (
      OSError, ValueError, KeyError, TypeError, AttributeError
  ) as error:  # fmt: skip
    raise NoHashesError(_no_hashes(checkpoint, repr(error))) from error
  if not found:
    raise NoHashesError(_no_hashes(checkpoint, 'it has no list of them'))
  return found


def _entries(told: dict) -> dict[str, dict]:
  return {
      name: {'bytes': int(entry['bytes']), 'crc32': list(entry['crc32'])}
      for name, entry in told['files'].items()
  }


def _no_hashes(checkpoint, why: str) -> str:
  return (
      f'{checkpoint} has no checksums of its files ({why}), expected those '
      f'that a run writes to {FOLDER}/: it is older, in a bucket, of somebody '
      'else, or its writer was killed; a run that restores and saves it again '
      'writes them'
  )


def verify(checkpoint: str | os.PathLike[str]) -> Verdict:
  """Reads all files and compares them.

  Raises:
    NoHashesError: There is nothing to compare with.
  """
  expected = read(checkpoint)
  there = [name for name in names(checkpoint) if is_hashed(name)]
  damages = missing(checkpoint, expected) + _in_pieces(there)
  present = [name for name in there if name in expected]
  hashed = _hash_all(checkpoint, present)
  for name in present:
    what = _difference(expected[name], hashed[name])
    if what is not None:
      damages.append(Damage(file=name, what=what))
  return Verdict(
      num_files=len(present),
      num_bytes=sum(entry['bytes'] for entry in hashed.values()),
      damages=tuple(damages),
      unknown=tuple(
          name
          for name in there
          if name not in expected and not name.startswith(FOLDER)
      ),
  )


def _in_pieces(there: Collection[str]) -> list[Damage]:
  """What a save left in the pieces of its processes: nobody reads these."""
  pieces = {name.split('/ocdbt.process_')[0] for name in there
            if '/ocdbt.process_' in name}  # fmt: skip
  return [
      Damage(file=f'{item}/manifest.ocdbt', what='was never written')
      for item in sorted(pieces)
      if f'{item}/manifest.ocdbt' not in there
  ]


def damages_below(
    checkpoint: str | os.PathLike[str], folder: str
) -> list[Damage]:
  """Returns what is wrong with the files of one folder, as far as is known."""
  try:
    expected = read(checkpoint)
  except NoHashesError:
    return []
  wanted = [name for name in expected if name.startswith(f'{folder}/')]
  root = epath.Path(checkpoint)
  damages = []
  for name in wanted:
    if not (root / name).exists():
      continue  # The whole folder may have been removed; `missing` tells.
    what = _difference(expected[name], hash_file(root / name))
    if what is not None:
      damages.append(Damage(file=name, what=what))
  return damages


def missing(
    checkpoint: str | os.PathLike[str], expected: dict[str, dict] | None = None
) -> list[Damage]:
  """Returns which files are gone; reads none of them.

  Raises:
    NoHashesError: Nobody knows which there were.
  """
  expected = read(checkpoint) if expected is None else expected
  there = set(names(checkpoint))
  gone = {item for item, removed in _MAY_GO.items() if removed in there}
  return [
      Damage(file=name, what='is missing')
      for name in sorted(expected)
      if name not in there and name.split('/', 1)[0] not in gone
  ]


def _difference(expected: dict, found: dict) -> str | None:
  if expected == found:
    return None
  if found['bytes'] != expected['bytes']:
    return (
        f'has {found["bytes"]:,} bytes, and had {expected["bytes"]:,} when it '
        'was saved'
    )
  blocks = [
      number
      for number, pair in enumerate(
          zip(expected['crc32'], found['crc32'], strict=True)
      )
      if pair[0] != pair[1]
  ]
  first = blocks[0] * _BLOCK_BYTES
  last = min(first + _BLOCK_BYTES, found['bytes'])
  return (
      f'has other bytes between {first:,} and {last:,} than when it was saved '
      f'({len(blocks)} of {len(found["crc32"])} blocks differ)'
  )
