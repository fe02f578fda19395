# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What goes to Hugging Face beside the weights, and what is kept of it here.

A checkpoint of ours tells neither a decoder's network nor a tokenizer. They
come from the run (its network and vocabulary), or from a folder of the same
model for `transformers`; what a model had when it came is kept beside its
checkpoint.
"""

from collections.abc import Callable, Mapping
import dataclasses
import os
from typing import Any

from t5wild.checkpoint_files import steps
from t5wild.checkpoints import hf
from t5wild.checkpoints import hf_gin
from t5wild.checkpoints import hf_tokenizers
from t5wild.checkpoints import hf_writing
from t5wild.checkpoints import stored as stored_lib
from t5wild.checkpoints import transforms

KEPT = 'hugging_face'  # Folder in a run directory.

Report = Callable[[str], None]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Export:
  """What is known of a model that is written for `transformers`.

  Attributes:
    network: Values of its network's configuration, or None.
    vocabulary: Its vocabulary, or None.
    like: A folder with config.json of the same network, whose config.json and
      tokenizer it gets, or a run directory that keeps one; None: the model's
      own, if it came from one.
    activation: See `hf_writing.write`.
    family: See `hf_writing.write`.
  """

  network: Mapping[str, Any] | None = None
  vocabulary: Any = None
  like: str | None = None
  activation: str | None = None
  family: str | None = None

  def find_like(self, checkpoint: str) -> str | None:
    """Returns the folder to be like, or None.

    Raises:
      ValueError: The one that is named has no config.json.
    """
    if self.like is not None:
      for folder in (self.like, os.path.join(self.like, KEPT)):
        if os.path.isfile(os.path.join(folder, hf.CONFIG)):
          return folder
      raise ValueError(
          f'{self.like} has no {hf.CONFIG}, expected the folder of a model for '
          'transformers, or a run directory made of one: correct --like'
      )
    if steps.is_hugging_face(checkpoint):
      return checkpoint
    kept = os.path.join(os.path.dirname(checkpoint), KEPT)
    is_kept = os.path.isfile(os.path.join(kept, hf.CONFIG))
    return kept if is_kept and self.network is None else None

  def num_heads(self, checkpoint: str) -> int | None:
    """Returns the number of attention heads, if it is known."""
    if self.network is not None:
      return self.network.get('num_heads')
    like = self.find_like(checkpoint)
    return None if like is None else hf.read_network(like)['num_heads']


def write(
    folder: str,
    arrays: Mapping[str, stored_lib.Stored],
    export: Export,
    *,
    checkpoint: str,
    report: Report,
) -> None:
  """Writes a folder for `transformers`.

  Args:
    folder: See `hf_writing.write`.
    arrays: The checkpoint's, by our keys; layers are plain.
    export: What else is known.
    checkpoint: Where they are from.
    report: Told what was done.

  Raises:
    ValueError: See `hf_writing.write`.
  """
  like = export.find_like(checkpoint)
  files, what, tokens = {}, 'no tokenizer: copy that of the model', None
  if like is not None:
    files, what = hf_tokenizers.copy(like), f'the tokenizer files of {like}'
  elif export.vocabulary is not None:
    files, what = hf_tokenizers.make(export.vocabulary)
    tokens = hf_tokenizers.tokens(export.vocabulary)
  targets = {k: v for k, v in arrays.items() if transforms.is_target(k)}
  written = hf_writing.write(
      folder,
      targets,
      network=export.network,
      template=None if like is None else hf.read_config(like),
      activation=export.activation,
      family=export.family,
      tokens=tokens,
      files=files,
  )
  size = sum(leaf.nbytes for leaf in targets.values())
  report(
      f'{checkpoint} -> {folder}: {len(targets)} arrays of {size:,} bytes, as '
      f'{written.config["architectures"][0]} of transformers, with {what}.'
  )
  if written.not_finite:
    report(
        f'{len(written.not_finite)} of its arrays hold numbers that are not '
        f'finite, such as {written.not_finite[:3]}: the training diverged '
        'before this step; take an older one.'
    )


def keep_beside(model_dir: str, source: str, report: Report) -> None:
  """Keeps what a checkpoint of ours does not tell: config.json, tokenizer, gin.

  Args:
    model_dir: Run directory that the weights were written to.
    source: The model's folder.
    report: Told what was written.
  """
  if steps.is_bucket(model_dir):
    report(f'{source} has the tokenizer and config.json: keep them.')
    return
  kept = os.path.join(steps.absolute_path(model_dir), KEPT)
  files = hf_tokenizers.copy(source)
  with open(os.path.join(source, hf.CONFIG), 'rb') as file:
    files[hf.CONFIG] = file.read()
  os.makedirs(kept, exist_ok=True)
  for name, content in files.items():
    with open(os.path.join(kept, name), 'wb') as file:
      file.write(content)
  config = hf.read_config(source)
  dtype = config.get('dtype') or config.get('torch_dtype')
  texts = hf_gin.make(
      hf.read_network(source)
      | {'dtype': 'bfloat16' if dtype == 'bfloat16' else 'float32'},
      source=source,
      model_dir=steps.absolute_path(model_dir),
      folder=kept,
      tokenizer=files,
  )
  for name, text in texts.items():
    path = os.path.join(model_dir, name)
    if os.path.exists(path) and name != hf_gin.FILE:  # A run's.
      continue
    with open(path, 'w', encoding='utf-8') as file:
      file.write(text)
  report(
      f'{os.path.join(model_dir, hf_gin.FILE)} has its network for gin, {kept} '
      'its tokenizer files.'
  )
