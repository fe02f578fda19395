# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Serves gin files under T5X's paths, from our own.

T5X wrote every model family out three times, once for each of its networks.
Here a path of T5X's gives our file of that family, with the import of the
network it asks for. Run files, whose values are T5X's own, lie in `gin/t5x/`.
"""

from collections.abc import Mapping
import dataclasses
import io
import posixpath

import gin

from t5wild.gin_config import reader

# Served files name everything as T5X does: gin calls what it registers by the
# first name it hears, and recipes that include them go on with these.
_IMPORTS: Mapping[str, str] = {
    'from t5wild import decoding': 'from t5x import decoding',
    'from t5wild import models': 'from t5x import models',
    'from t5wild.optimizers import adafactor': 'from t5x import adafactor',
    'from t5wild.networks import decoder_only as network': (
        'from t5x.examples.decoder_only import network'
    ),
}
_OUR_NETWORK = 'from t5wild.networks import transformer as network'
_SCANNED = """
network.T5Config:
  scan_layers = True
  remat_policy = 'minimal'
"""


@dataclasses.dataclass(frozen=True)
class _Folder:
  """Families of ours under one folder of T5X's.

  Attributes:
    families: folder names, the same here as there.
    added: text at the end of each family's `base.gin`.
  """

  families: tuple[str, ...]
  added: str = ''


_FOLDERS: Mapping[str, _Folder] = {
    't5x/examples/t5': _Folder(('byt5', 'mt5', 't5_1_0', 't5_1_1')),
    't5x/examples/scalable_t5': _Folder(('mt5', 't5_1_1'), _SCANNED),
    't5x/contrib/gpu/t5': _Folder(('byt5', 'mt5', 't5_1_0', 't5_1_1')),
}
# Where T5X lies in Google's tree, which recipes from there include it from.
_GOOGLES = 'third_party/py/'
# The network that this folder imports is ours as it stands.
_SAME_NETWORK = 't5x/examples/t5'
# T5X's smallest network has this family's vocabulary in every folder.
_FAMILY_OF_TINY = 't5_1_1'
# Folders whose files are those of another.
_SAME = {
    't5x/contrib/gpu/t5/configs/runs': 't5x/configs/runs',
    't5x/examples/decoder_only/models': 'models/decoder_lm',
}


def text_of(path: str) -> str | None:
  """Text of the gin file that T5X has at `path`; None where we have none."""
  inner = posixpath.normpath(path).removeprefix(_GOOGLES)
  if inner != posixpath.normpath(path):
    return _served(inner)
  folder, name = posixpath.split(inner)
  if folder in _SAME:
    ours = _SAME[folder]
    text = _text_of_ours(f'{ours}/{name}')
    return None if text is None else _in_words_of_t5x(text, ours, folder)
  root, family = posixpath.split(folder)
  variant = _FOLDERS.get(root)
  if variant is None or family not in variant.families:
    return None
  if name == 'tiny.gin':
    family = _FAMILY_OF_TINY
  text = _text_of_ours(f'models/{family}/{name}')
  if text is None:
    return None
  text = text.replace(
      _OUR_NETWORK, f'from {root.replace("/", ".")} import network'
  )
  text = _in_words_of_t5x(text, 'models', root)
  return text + variant.added if name == 'base.gin' else text


def path_of_ours(path: str) -> str | None:
  """The path among our own files of what T5X has at `path`.

  None where ours has other values, so that it is no substitute.
  """
  path = posixpath.normpath(path).removeprefix(_GOOGLES)
  folder, name = posixpath.split(path)
  root, family = posixpath.split(folder)
  if folder in _SAME and not folder.endswith('/runs'):
    ours = f'{_SAME[folder]}/{name}'
  elif root == _SAME_NETWORK and family in _FOLDERS[root].families:
    ours = f'models/{_FAMILY_OF_TINY if name == "tiny.gin" else family}/{name}'
  else:
    return None
  return ours if (reader.gin_root() / ours).is_file() else None


def paths() -> list[str]:
  """Every path of T5X's that is served, those in `gin/t5x/` included."""
  root = reader.gin_root()
  found = [
      path.relative_to(root).as_posix() for path in root.glob('t5x/**/*.gin')
  ]
  for folder, variant in _FOLDERS.items():
    for family in variant.families:
      found += [
          f'{folder}/{family}/{path.name}'
          for path in root.glob(f'models/{family}/*.gin')
      ]
  for folder, ours in _SAME.items():
    found += [f'{folder}/{path.name}' for path in root.glob(f'{ours}/*.gin')]
  return sorted(set(found))


def register() -> None:
  """Lets our reader and gin's own find T5X's paths, once."""
  reader.register_source(text_of, paths=paths)
  gin.config.register_file_reader(_open, _is_served)


def _in_words_of_t5x(text: str, ours: str, theirs: str) -> str:
  """`text` with T5X's modules, and with includes of T5X's paths."""
  for our_import, their_import in _IMPORTS.items():
    text = text.replace(our_import, their_import)
  return text.replace(f"include '{ours}/", f"include '{theirs}/")


def _text_of_ours(path: str) -> str | None:
  file = reader.gin_root() / path
  return file.read_text(encoding='utf-8') if file.is_file() else None


def _served(path: str) -> str | None:
  """Text for gin's reader, which looks nowhere among our own files."""
  if not path.startswith(('t5x/', 'models/', 'runs/', f'{_GOOGLES}t5x/')):
    return None
  text = _text_of_ours(path)
  return text_of(path) if text is None else text


def _is_served(path: str) -> bool:
  return _served(path) is not None


def _open(path: str) -> io.StringIO:
  return io.StringIO(_served(path))
