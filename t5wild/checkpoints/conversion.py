# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A checkpoint of another format, or of another layout, as one of ours."""

from collections.abc import Callable
import contextlib
import dataclasses

from absl import logging
import numpy as np

from t5wild.checkpoint_files import run_ids
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import configs
from t5wild.checkpoints import formats
from t5wild.checkpoints import hf_export
from t5wild.checkpoints import hf_writing
from t5wild.checkpoints import layer_stacks
from t5wild.checkpoints import load
from t5wild.checkpoints import manager as manager_lib
from t5wild.checkpoints import relayout
from t5wild.checkpoints import stored as stored_lib
from t5wild.checkpoints import transforms

FORMATS = ('t5wild', 'hf')
LAYERS = (None, 'stacked', 'plain')
STEP = 'state/step'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Conversion:
  """What to make of a checkpoint.

  Attributes:
    source: A checkpoint folder, or a run directory.
    step: Which of a run directory; None: the newest.
    target: Run directory to write `checkpoint_N` to.
    layers: 'stacked', 'plain', or None for as they are.
    num_heads: Number of attention heads, where it cannot be told.
    dtype: dtype of the parameters; None: as they are.
    weights_only: Whether the optimizer's state is left out.
    trust_paths: See `RestoreCheckpointConfig`.
    to_format: One of `FORMATS`; 'hf' writes the parameters alone, of plain
      layers, straight into `target`.
    export: What else is known of the model, for 'hf'.
  """

  source: str
  target: str
  step: int | None = None
  layers: str | None = None
  num_heads: int | None = None
  dtype: str | None = None
  weights_only: bool = False
  trust_paths: bool = False
  to_format: str = 't5wild'
  export: hf_export.Export = hf_export.Export()

  def run(self, report: Callable[[str], None] = logging.info) -> str:
    """Writes the checkpoint and returns its folder.

    All arrays are in the memory of this machine at once; for 'hf' one is.

    Args:
      report: Told what was done, in sentences.

    Raises:
      steps.NotACheckpointError: The source is none, damaged, or its layers are
        not as expected.
      steps.UnwritableError: The target cannot be written.
      ValueError: The target has a checkpoint of this step, or cannot be what
        is asked for.
    """
    if self.to_format == 'hf':
      hf_writing.check_target(self.target)
      for sentence in hf_writing.leftovers(self.target):
        report(sentence)
    checkpoint = load.find_checkpoint(self.source, self.step)
    stored = formats.read_structure(checkpoint, trust_paths=self.trust_paths)
    load.check_whole(checkpoint)
    if self.weights_only:
      stored = {
          key: leaf
          for key, leaf in stored.items()
          if key == STEP or not key.startswith('state/')
      }
    arrays = self._laid_out(stored, checkpoint, report)
    formats.check_complete(arrays.values(), checkpoint)
    step = int(np.asarray(arrays[STEP])) if STEP in arrays else 0
    if self.to_format == 'hf':
      hf_export.write(
          self.target,
          load.cast_parameters(arrays, self.dtype),
          self.export,
          checkpoint=checkpoint,
          report=report,
      )
      return self.target
    self._check_target(step)
    arrays = load.cast_parameters(arrays, self.dtype)
    self._write(step, {k: np.asarray(leaf) for k, leaf in arrays.items()})
    target = steps.get_checkpoint_dir(self.target, step)
    parameters = [leaf for k, leaf in arrays.items() if transforms.is_target(k)]
    report(
        f'{checkpoint} -> {target}: '
        f'{sum(_size(leaf) for leaf in parameters):,} parameters in '
        f'{len(parameters)} arrays, {len(arrays) - len(parameters)} arrays of '
        f'state, step {step}.'
    )
    if steps.is_hugging_face(checkpoint):
      hf_export.keep_beside(self.target, checkpoint, report)
    return target

  def _laid_out(
      self,
      stored: dict[str, stored_lib.Stored],
      checkpoint: str,
      report: Callable[[str], None],
  ) -> dict[str, stored_lib.Stored]:
    layers = self.layers
    if self.to_format == 'hf':
      has = [layer_stacks.layout(stored, t) for t in layer_stacks.TOWERS]
      layers = 'plain' if 'stacked' in has else None
    if layers is None:
      return stored
    if layers == 'stacked':
      num_heads = self.num_heads or self.export.num_heads(checkpoint)
      arrays = relayout.stack(stored, num_heads=num_heads, where=checkpoint)
    else:
      arrays = relayout.unstack(stored, where=checkpoint)
      has_own = any('/layers_0/relpos_bias/' in key for key in arrays)
      if has_own and self.to_format != 'hf':
        report(
            'Its layers have each a relative bias of their own: the model '
            "needs positions = 'relative_bias_per_layer'."
        )
    lost = relayout.lost(stored, arrays)
    if lost:
      report(
          f'{len(lost)} arrays of state could not be laid out anew and are '
          f'left out, such as {lost[:3]}: restore with '
          'fallback_to_scratch=True.'
      )
    return {key: leaf for key, leaf in arrays.items() if key not in lost}

  def _check_target(self, step: int) -> None:
    steps.check_writable(steps.absolute_path(self.target), process=0)
    if step in steps.all_steps(self.target):
      raise ValueError(
          f'{self.target} has a checkpoint of step {step}, expected none: give '
          'another directory, or remove that checkpoint'
      )
    run_id = run_ids.of_directory(self.target)
    if run_id:
      raise ValueError(
          f'{self.target} is the MODEL_DIR of a run (id {run_id}), which would '
          'go on from what is written there as if it were its own: expected a '
          'directory of no run. Give another, and train from it by '
          'RestoreCheckpointConfig.path'
      )

  def _write(self, step: int, arrays: dict[str, np.ndarray]) -> None:
    manager = manager_lib.CheckpointManager(
        self.target, config=configs.SaveCheckpointConfig(dtype=None)
    )
    with contextlib.closing(manager):
      manager.save(step, transforms.unflatten(arrays))
      if not manager.wait():
        raise steps.UnwritableError(
            f'{self.target} could not take checkpoint {step}, expected space '
            'for it: see the error above, free space, and convert again'
        )


def _size(leaf: stored_lib.Stored) -> int:
  return int(np.prod(leaf.shape, dtype=np.int64))
