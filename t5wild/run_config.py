# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a training run was configured with, from the gin file in its directory.

Other binaries build a run's model from it without being told of gin.
"""

from collections.abc import Mapping, Sequence
import copy
import dataclasses
import importlib
import sys
from typing import Any

from etils import epath
import gin

from t5wild import gin_utils
from t5wild import run_dir as run_dir_lib
from t5wild.compat import install

_BINARY = 't5wild.train'
# In the names that say how large a mesh is: num_partitions, ici_mesh_shape, ...
_WORDS_OF_A_MESH = ('num_partitions', 'model_partitions', 'mesh')


def find_config(run: str) -> str:
  """Returns the path of a run's configuration.

  Raises:
    ValueError: The directory is no run's.
  """
  config = run_dir_lib.RunDir(run).config_gin
  if not epath.Path(config).exists():
    raise ValueError(
        f'there is no {config}: expected the MODEL_DIR of a run of t5wild, '
        'which has one. Correct --run, or give gin files by --gin_file.'
    )
  return config


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunConfig:
  """The arguments that a run's configuration binds to `train`."""

  config: str
  bound: Mapping[str, Any]
  gin_bindings: Sequence[str] = ()

  @classmethod
  def read(
      cls,
      config: str,
      *,
      gin_files: Sequence[str] = (),
      gin_bindings: Sequence[str] = (),
      gin_search_paths: Sequence[str] = (),
  ) -> 'RunConfig':
    """Gives gin the run's configuration, then what is to override it."""
    install.install()  # recipes of T5X's are recorded as they were given
    # Recipes name the function that trains by its module, or as __main__.train.
    train = importlib.import_module(_BINARY).train
    sys.modules['__main__'].train = train
    gin_utils.parse_gin_flags(
        gin_search_paths, [config, *gin_files], gin_bindings
    )
    bound = gin.get_bindings(train, resolve_references=False)
    return cls(config=config, bound=bound, gin_bindings=gin_bindings)

  def get(self, argument: str) -> Any:
    """Makes what is bound to an argument; None where nothing is."""
    # gin makes the objects of references when they are copied.
    return copy.deepcopy(self.bound.get(argument))

  def need(self, argument: str) -> Any:
    """Makes what is bound to an argument.

    Raises:
      ValueError: Nothing is.
    """
    if argument not in self.bound:
      raise ValueError(
          f'{self.config} does not bind train.{argument}: expected the config '
          'of a training run. Give gin files by --gin_file instead.'
      )
    return self.get(argument)

  def make_partitioner(self) -> Any:
    """Makes the run's partitioner, for whatever devices are here.

    A mesh of the run that does not fit them is given up; one that a binding
    asks for stays, and is refused when it is made.

    Raises:
      ValueError: None is bound.
    """
    partitioner = self.need('partitioner')
    if not any(
        word in binding.lower()
        for word in _WORDS_OF_A_MESH
        for binding in self.gin_bindings
    ):
      partitioner.fall_back_to_data_parallelism()
    return partitioner
