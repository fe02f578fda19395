# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The loss of a few fixed examples: a restored state must give it again.

Hashes say that the numbers of a checkpoint are those that were saved. This says
that the model is the same, too: its code, its configuration, the devices.
"""

from collections.abc import Mapping
import hashlib
import json
import math
from typing import Any

from absl import logging
from etils import epath
import jax
import numpy as np

from t5wild.checkpoint_files import file_hashes
from t5wild.partitioning import distributed

_NAME = 'loss_probe'
_FILE = f'{file_hashes.FOLDER}/probe.json'
_METRIC = 'loss_per_nonpadding_target_token'
_EXAMPLES = 4
# A loss is a mean over many numbers. On other meshes sums have another order:
# float32 keeps 2^-24, and a deep network some hundred times that. bfloat16
# rounds each activation by 2^-9, and TF32, by which GPUs multiply float32,
# by 2^-11.
_TOLERANCES = {'float32': 1e-5, 'reduced': 1e-2}


class OtherModelError(ValueError):
  """A state that gives another loss than when it was saved."""


def make_batch(
    shapes: Mapping[str, jax.ShapeDtypeStruct], *, vocab_size: int, rows: int
) -> dict[str, np.ndarray] | None:
  """Returns a global batch of fixed examples, each as often as the others.

  Args:
    shapes: Of a training batch: [batch, length].
    vocab_size: Ids are below it.
    rows: Of the batch.

  Returns:
    The batch; None where an array is not one of those of a language model.
  """
  rng = np.random.default_rng(20261130)
  batch: dict[str, np.ndarray] = {}
  for name in sorted(shapes):
    if len(shapes[name].shape) != 2:
      return None
    length = shapes[name].shape[1]
    if name.endswith(('_target_tokens', 'encoder_input_tokens')):
      values = rng.integers(1, vocab_size, (_EXAMPLES, length))
    elif name.endswith(('_loss_weights', '_segment_ids')):
      values = np.ones((_EXAMPLES, length))
    elif name.endswith('_positions'):
      values = np.broadcast_to(np.arange(length), (_EXAMPLES, length))
    elif name.endswith(('_causal_attention', 'decoder_input_tokens')):
      values = np.zeros((_EXAMPLES, length))
    else:
      return None
    batch[name] = values.astype(shapes[name].dtype)
  targets = batch.get('decoder_target_tokens')
  if targets is None:
    return None
  if 'decoder_input_tokens' in batch:
    batch['decoder_input_tokens'][:, 1:] = targets[:, :-1]
  repeats = math.ceil(rows / _EXAMPLES)
  return {name: np.tile(x, (repeats, 1)) for name, x in batch.items()}


def name_of(batch: Mapping[str, np.ndarray]) -> str:
  """Names the examples of a batch, however often it repeats them."""
  digest = hashlib.sha256()
  for name in sorted(batch):
    rows = np.ascontiguousarray(batch[name][:_EXAMPLES])
    digest.update(f'{name} {rows.dtype} {rows.shape}'.encode())
    digest.update(rows.tobytes())
  return digest.hexdigest()[:16]


class LossProbe:
  """Computes the loss of the fixed examples with a trainer's state."""

  def __init__(self, *, trainer: Any, model: Any, partitioner: Any):
    """Compiles nothing yet."""
    self._trainer = trainer
    self._model = model
    self._partitioner = partitioner
    self._batch: Any = None
    self._examples = ''

  def prepare(self, shapes: Mapping[str, jax.ShapeDtypeStruct]) -> None:
    """Compiles the loss; where the model has no such, `start` gives None."""
    rows = math.lcm(_EXAMPLES, self._partitioner.data_mesh_size)
    try:
      vocab_size = min(
          self._model.input_vocabulary.vocab_size,
          self._model.output_vocabulary.vocab_size,
      )
    except (AttributeError, TypeError):
      vocab_size = None
    batch = vocab_size and make_batch(
        shapes, vocab_size=vocab_size, rows=rows
    )
    if not batch:
      logging.warning(
          'The model has no loss of fixed examples: restored states are held '
          'against hashes alone'
      )
      return
    self._examples = name_of(batch)
    own = self._partitioner.host_rows(rows)
    self._batch = self._partitioner.global_batch(
        {name: values[own] for name, values in batch.items()}
    )
    self._trainer.compile_eval({_NAME: self._batch})

  def start(self) -> Any:
    """Begins to compute; returns what `finish` takes, or None."""
    if self._batch is None:
      return None
    metrics, _ = self._trainer.eval_batches(_NAME, [self._batch])
    return metrics.get(_METRIC)

  def write(self, checkpoint: str, begun: Any) -> None:
    """Leaves the loss in a complete checkpoint; on process 0, in any thread."""
    if begun is None:
      return
    text = json.dumps({
        'loss': finish(begun), 'device': _device(),
        'examples': self._examples,
    })  # fmt: skip
    try:
      (epath.Path(checkpoint) / _FILE).write_text(text)
    except OSError:
      logging.exception('%s does not keep the loss of its probe', checkpoint)

  def check(self, checkpoint: str) -> None:
    """Refuses a restored state that gives another loss than was saved.

    Every process calls it alike.

    Raises:
      OtherModelError: It does.
    """
    begun = self.start()
    saved = None
    if distributed.process_index() == 0 and begun is not None:
      saved = _read(checkpoint)
    saved = distributed.meet('loss of the probe', value=saved)[0]
    if saved is None:
      return
    if saved['examples'] not in ('', self._examples):
      logging.warning(
          '%s was saved with other fixed examples (sequences of another length '
          'or another vocabulary): its loss of them is not compared, its '
          'arrays were',
          checkpoint,
      )
      return
    now, before = finish(begun), float(saved['loss'])
    tolerance = self._tolerance(saved['device'])
    if not abs(now - before) <= tolerance * max(abs(before), 1e-6):
      raise OtherModelError(
          f'{checkpoint} gives another model than was saved:\n'
          f'  loss of its fixed examples now:   {now!r}\n'
          f'  loss when it was saved:           {before!r}\n'
          f'  expected the same within {tolerance:g} of it, as all its numbers '
          'are those that were saved.\n'
          '  Look for what changed since, in the recipe (t5wild compare), the '
          'versions or the devices; if it is meant so, set '
          'SaveCheckpointConfig.probe_loss = False.'
      )
    logging.info(
        'The fixed examples have the loss %.6f, as it was saved (%.6f)',
        now, before,
    )  # fmt: skip

  def _tolerance(self, device: str) -> float:
    config = getattr(getattr(self._model, 'module', None), 'config', None)
    dtype = np.dtype(getattr(config, 'dtype', None) or 'float16')
    on_cpu = device == _device() == 'cpu'
    is_exact = on_cpu and dtype == np.float32
    return _TOLERANCES['float32' if is_exact else 'reduced']


def finish(begun: Any) -> float:
  """Waits for a loss that was begun."""
  return float(jax.device_get(begun).compute())


def _device() -> str:
  return jax.devices()[0].device_kind


def _read(checkpoint: str) -> dict[str, Any] | None:
  try:
    found = json.loads((epath.Path(checkpoint) / _FILE).read_text())
    return {
        'loss': float(found['loss']),
        'device': str(found['device']),
        'examples': str(found.get('examples', '')),  # not in older ones
    }
  except (OSError, ValueError, KeyError, TypeError):
    return None
