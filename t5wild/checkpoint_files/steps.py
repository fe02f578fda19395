# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The checkpoint folders of a run directory: which are complete, which go.

They are Orbax's, ours as well as T5X's, or in T5X's native format, which is
only read; beside them TensorFlow's of Mesh-TensorFlow T5. A checkpoint appears
and disappears as a whole: on a local disk by a rename, in a bucket (which has
none) by a marker file that is written last and removed first. A process may be
killed between any two lines here.
"""

from collections.abc import Collection
import glob
import os
import re

from absl import logging
from etils import epath

from t5wild import run_dir as run_dir_lib
from t5wild.checkpoint_files import health
from t5wild.checkpoint_files import s3_paths  # noqa: F401 -- makes s3:// known

COMMIT_MARKER = 'commit_success.txt'
STATE_ITEM = 'state'
DATASET_ITEM = 'dataset'
# Tells a position that a run removed from one that was lost.
DATASET_REMOVED = 'dataset_removed'
NATIVE_INDEX = 'checkpoint'  # T5X's own format, written last.

# What lies in a folder.
ORBAX = 'orbax'
T5X_NATIVE = 't5x_native'
TENSORFLOW = 'tensorflow'
HUGGING_FACE = 'hugging_face'

_SAFETENSORS = ('model.safetensors', 'model.safetensors.index.json')
_ORBAX_METADATA = '_METADATA'
# Where a save was begun in a bucket, one of them is there.
_OF_A_SAVE = (STATE_ITEM, DATASET_ITEM, '_CHECKPOINT_METADATA')
_TENSORFLOW_INDEX = '.index'
_TENSORFLOW_TEXT = b'model_checkpoint_path'
_TENSORFLOW_NAME = re.compile(r'(model\.ckpt-(\d+))\.index\Z')
_TENSORFLOW_PART = re.compile(
    r'(model\.ckpt-\d+)\.(index|meta|data-\d+-of-\d+)\Z'
)
_PICKLES = ('.bin', '.pt', '.pth', '.pkl', '.pickle', '.ckpt')  # PyTorch's.
_DELETED_SUFFIX = '.deleted'
_LEFTOVER = re.compile(
    run_dir_lib.CHECKPOINT_PREFIX
    + r'\d+(\.orbax-checkpoint-tmp.*|'
    + re.escape(_DELETED_SUFFIX)
    + r')\Z'
)


class NotACheckpointError(ValueError):
  """A path that holds no checkpoint that can be read."""


class UnwritableError(ValueError):
  """A directory in which no checkpoint could ever be saved."""


def absolute_path(path: str | os.PathLike[str]) -> str:
  """Returns a local path made absolute; `gs://...` and its like unchanged."""
  path = os.fspath(path)
  if is_bucket(path):
    return path.rstrip('/')
  return os.path.abspath(os.path.expanduser(path))


def is_bucket(path: str | os.PathLike[str]) -> bool:
  """Whether a path lies in an object store, where nothing can be renamed."""
  return '://' in os.fspath(path)


def is_same_place(
    one: str | os.PathLike[str], other: str | os.PathLike[str]
) -> bool:
  """Whether two paths name one directory, through links, too."""
  one, other = absolute_path(one), absolute_path(other)
  if is_bucket(one) or is_bucket(other):
    return one == other
  return os.path.realpath(one) == os.path.realpath(other)


def get_checkpoint_dir(  # T5X's name
    checkpoints_dir: str | os.PathLike[str], step: int
) -> str:
  """Returns the folder of the checkpoint of a step."""
  return run_dir_lib.RunDir(absolute_path(checkpoints_dir)).checkpoint(step)


def all_steps(directory: str | os.PathLike[str]) -> list[int]:
  """Returns the steps with a complete checkpoint, in order.

  A directory that does not exist has none. A checkpoint in quarantine
  (`health`), which a fault followed, is none that anybody should take.
  """
  quarantined = health.quarantined_steps(directory)
  return [s for s in complete_steps(directory) if s not in quarantined]


def complete_steps(directory: str | os.PathLike[str]) -> list[int]:
  """The same with those in quarantine, for who shows or mends them."""
  return sorted(
      step
      for name in _names(directory)
      if (step := run_dir_lib.checkpoint_step(name)) is not None
      and is_complete(get_checkpoint_dir(directory, step))
  )


def broken_steps(
    directory: str | os.PathLike[str], *, complete: Collection[int]
) -> list[int]:
  """Steps whose folder is there, emptied or without its state; in order.

  On a disk a checkpoint appears and goes as a whole: somebody harmed these.
  In a bucket they are saves that a kill left, and are removed.

  Args:
    directory: Of the checkpoints.
    complete: What `complete_steps` found there.
  """
  if is_bucket(directory):
    return []
  found = {
      run_dir_lib.checkpoint_step(name)
      for name in _names(directory)
      if (epath.Path(directory) / name).is_dir()
  }
  return sorted(found - {None, *complete})


def latest_step(directory: str | os.PathLike[str]) -> int | None:
  """Returns the newest step with a complete checkpoint, or None."""
  steps = all_steps(directory)
  return steps[-1] if steps else None


def is_complete(checkpoint: str | os.PathLike[str]) -> bool:
  """Whether a checkpoint folder was written to its end.

  Without a marker (older writers on a local disk) the name alone says so: the
  folder gets it by a rename.
  """
  path = epath.Path(checkpoint)
  if (path / COMMIT_MARKER).exists() or is_native(checkpoint):
    return True
  return not is_bucket(checkpoint) and (path / STATE_ITEM).is_dir()


def is_native(checkpoint: str | os.PathLike[str]) -> bool:
  """Whether a folder is a checkpoint in T5X's native format."""
  file = epath.Path(checkpoint) / NATIVE_INDEX
  if not file.is_file():
    return False
  with file.open('rb') as stream:
    # TensorFlow has a file of this name, a text about its checkpoints.
    return stream.read(len(_TENSORFLOW_TEXT)) != _TENSORFLOW_TEXT


def is_tensorflow(checkpoint: str | os.PathLike[str]) -> bool:
  """Whether a path is the beginning of the names of a TensorFlow checkpoint."""
  return epath.Path(f'{checkpoint}{_TENSORFLOW_INDEX}').exists()


def is_hugging_face(checkpoint: str | os.PathLike[str]) -> bool:
  """Whether a folder is a model of Hugging Face's, with safetensors."""
  path = epath.Path(checkpoint)
  return (path / 'config.json').is_file() and any(
      (path / name).exists() for name in _SAFETENSORS
  )


def find(checkpoint: str | os.PathLike[str]) -> tuple[str, epath.Path]:
  """Returns what kind of checkpoint a path is, and where its arrays are.

  Raises:
    NotACheckpointError: The path is none, or of a format not read here.
  """
  path = epath.Path(checkpoint)
  if is_tensorflow(checkpoint):
    return TENSORFLOW, path
  if path.name == NATIVE_INDEX and path.is_file() and is_native(path.parent):
    return T5X_NATIVE, path.parent
  if is_hugging_face(checkpoint):
    return HUGGING_FACE, path
  for folder in (path / STATE_ITEM, path):
    if not (folder / _ORBAX_METADATA).exists() and is_native(folder):
      return T5X_NATIVE, folder
  return ORBAX, state_folder(checkpoint)


def tensorflow_checkpoints(directory: str | os.PathLike[str]) -> list[str]:
  """Returns the TensorFlow checkpoints in a folder, by step."""
  found = {}
  for name in _names(directory):
    match = _TENSORFLOW_NAME.match(name)
    if match:
      found[int(match.group(2))] = f'{os.fspath(directory)}/{match.group(1)}'
  return [found[step] for step in sorted(found)]


def state_folder(checkpoint: str | os.PathLike[str]) -> epath.Path:
  """Returns the folder of the arrays of a checkpoint of Orbax.

  Raises:
    NotACheckpointError: The path is none, or of a format not read here.
  """
  path = epath.Path(checkpoint)
  if is_complete(checkpoint) and (path / STATE_ITEM).is_dir():
    return path / STATE_ITEM
  if (path / _ORBAX_METADATA).exists():  # The arrays themselves.
    return path
  raise NotACheckpointError(_explain(path))


def _explain(path: epath.Path) -> str:
  wanted = (
      f'expected a folder such as {run_dir_lib.CHECKPOINT_PREFIX}1000 with '
      f"{STATE_ITEM}/ and {COMMIT_MARKER} in it, or T5X's {NATIVE_INDEX}"
  )
  mend = "set RestoreCheckpointConfig.path to one, or mode to 'latest' and "
  mend += 'path to the run directory around it'
  if not path.exists():
    near = _near(path)
    return f'{path} does not exist{near}, {wanted}: {mend}'
  if not path.is_dir():
    return f'{path} is a file, {wanted}: {_mend_of_file(path) or mend}'
  tensorflow = tensorflow_checkpoints(path)
  if tensorflow:
    return (
        f'{path} is a folder of TensorFlow checkpoints, {wanted}: take one, '
        f'such as {tensorflow[-1]}'
    )
  steps = all_steps(path)
  if steps:
    return (
        f'{path} is a run directory with checkpoints of steps {steps[-5:]}, '
        f'{wanted}: take {get_checkpoint_dir(path, steps[-1])}, or set '
        "RestoreCheckpointConfig.mode to 'latest'"
    )
  names = _names(path)
  pickles = [n for n in names if n.endswith(_PICKLES)][:8]
  if pickles:
    return (
        f'{path} holds {pickles}, pickles, which can run any program when they '
        f'are read, {wanted}: take safetensors of the same model (transformers '
        'writes them by save_pretrained, where you trust whoever made these), '
        'or a checkpoint of T5X'
    )
  if 'config.json' in names:
    return (
        f'{path} has a config.json and no weights that are read here (it holds '
        f'{names[:8]}), expected one of {_SAFETENSORS} beside it: copy the '
        "model's safetensors there"
    )
  if (path / STATE_ITEM).exists():
    return (
        f'{path} was not saved to its end (no {COMMIT_MARKER}), {wanted}: take '
        'an older one'
    )
  return f'{path} is not a checkpoint (it holds {names[:8]}), {wanted}: {mend}'


def _mend_of_file(path: epath.Path) -> str | None:
  """What to take instead of a file that is a part of a checkpoint."""
  match = _TENSORFLOW_PART.match(path.name)
  if match:
    return f'take {path.parent / match[1]}, which names all of its files'
  is_part = path.suffix in ('.safetensors', '.json', *_PICKLES)
  return f'take the folder that holds it, {path.parent}' if is_part else None


def _near(path: epath.Path) -> str:
  """Names beside a path that does not exist, for the error."""
  if not path.parent.is_dir():
    return (
        f' (nor does {path.parent}; a model of a hub, such as google/t5-small, '
        'is to be downloaded first)'
    )
  steps = all_steps(path.parent)
  if steps:
    return f' (complete steps there: {steps[-5:]})'
  tensorflow = [
      os.path.basename(name) for name in tensorflow_checkpoints(path.parent)
  ]
  return f' (there are {tensorflow[-5:]})' if tensorflow else ''


def delete_checkpoint(checkpoint: str | os.PathLike[str]) -> None:
  """Removes a checkpoint folder; killed half-way it is no checkpoint any more.

  A folder that is not there is none to remove.
  """
  path = epath.Path(checkpoint)
  if not path.exists():
    return
  _delete(path, marker=path / COMMIT_MARKER)


def replace_checkpoint(
    checkpoint: str | os.PathLike[str], new: epath.Path
) -> None:
  """Puts a whole folder, on a disk, where another is, or none."""
  path = epath.Path(checkpoint)
  trash = path.parent / f'{path.name}{_DELETED_SUFFIX}'
  trash.rmtree(missing_ok=True)
  if path.exists():
    path.rename(trash)
  new.rename(path)
  trash.rmtree(missing_ok=True)


def delete_dataset_state(checkpoint: str | os.PathLike[str]) -> None:
  """Removes the data position of a checkpoint; its arrays stay."""
  path = epath.Path(checkpoint) / DATASET_ITEM
  if path.exists():
    (path.parent / DATASET_REMOVED).write_text('by keep_dataset_checkpoints\n')
    _delete(path, marker=path / COMMIT_MARKER)


def _delete(path: epath.Path, *, marker: epath.Path) -> None:
  if is_bucket(path):
    marker.unlink(missing_ok=True)
    path.rmtree(missing_ok=True)
    return
  trash = path.parent / f'{path.name}{_DELETED_SUFFIX}'
  if trash.exists():
    trash.rmtree()
  path.rename(trash)
  trash.rmtree()


def delete_leftovers(directory: str | os.PathLike[str]) -> list[str]:
  """Removes what killed saves and killed removals left; returns the names.

  Call it on one process, while nothing is being saved to the directory.
  """
  removed = []
  for name in _names(directory):
    path = epath.Path(directory) / name
    if _LEFTOVER.match(name) or _is_unfinished_in_bucket(path):
      path.rmtree(missing_ok=True)
      removed.append(name)
  if removed:
    logging.info('Removed unfinished checkpoints %s', removed)
  return removed


def delete_unfinished(checkpoint: str | os.PathLike[str]) -> None:
  """Removes what a failed save of one checkpoint left, to free the space."""
  path = epath.Path(checkpoint)
  prefix = f'{path.name}.orbax-checkpoint-tmp'
  for name in _names(path.parent):
    if name.startswith(prefix):
      (path.parent / name).rmtree(missing_ok=True)
  if _is_unfinished_in_bucket(path):
    path.rmtree(missing_ok=True)


def _is_unfinished_in_bucket(path: epath.Path) -> bool:
  return (
      is_bucket(path)
      and run_dir_lib.checkpoint_step(path.name) is not None
      and any((path / name).exists() for name in _OF_A_SAVE)
      and not (path / COMMIT_MARKER).exists()
  )


def check_writable(directory: str | os.PathLike[str], *, process: int) -> None:
  """Makes the directory and writes a small file there, then removes it.

  Raises:
    UnwritableError: No checkpoint could be saved there.
  """
  path = epath.Path(directory)
  probe = path / f'.write_test_of_process_{process}'
  try:
    if '/\\' in str(path) or glob.has_magic(str(path)):
      raise OSError('to Orbax a path with *, ?, [ or /\\ is a pattern, no name')
    path.mkdir(parents=True, exist_ok=True)
    probe.write_text('t5wild')
    probe.unlink()
  except OSError as error:
    raise UnwritableError(
        f'{path} cannot be written ({error}), expected a directory for '
        'checkpoints: set MODEL_DIR to one that this user may write, with '
        'space left'
    ) from error


def _names(directory: str | os.PathLike[str]) -> list[str]:
  try:
    return sorted(entry.name for entry in epath.Path(directory).iterdir())
  except (FileNotFoundError, NotADirectoryError):
    return []
