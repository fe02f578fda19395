# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Where examples come from: tasks and files, the same on every process.

An example is a dict: token ids under the names of task features, texts under
`..._pretokenized`, and whatever else a JSON line has.
"""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import hashlib
import itertools
from typing import Any

from absl import logging
import numpy as np

from t5wild.data import argument_checks
from t5wild.data import datasets
from t5wild.data import pipelines
from t5wild.data import providers
from t5wild.data import source_files
from t5wild.data import vocabularies
from t5wild.inferring import text_inputs
from t5wild.models import decoder_only

PREDICT, AUX, SCORE = MODES = ('predict', 'predict_with_aux', 'score')

Example = dict[str, Any]


@dataclasses.dataclass(kw_only=True)
class FileConfig:
  """Files to read inputs from, in the place of a `data.DatasetConfig`.

  Attributes:
    paths: Path, glob or list of them; '-' is standard input.
    task_feature_lengths: Length of 'inputs' and of 'targets', which is how
      much is decoded. What is longer is cut, and counted in the log: its end
      is, or the beginning of inputs that a decoder goes on with. Of 'targets'
      alone in mode 'score' of a `models.DecoderOnlyModel`: whole texts.
    batch_size: Examples per global batch.
    file_type: 'text' (an input a line), 'jsonl', 'tfrecord', or 'auto', by the
      end of the name.
    inputs_key: Field of the inputs in JSON lines and TFRecords.
    targets_key: Field of the targets, for scores.
    add_eos: Whether inputs end with the end token.
    name: Name of the output file.
  """

  paths: str | Sequence[str]
  task_feature_lengths: Mapping[str, int]
  batch_size: int
  file_type: str = 'auto'
  inputs_key: str = 'inputs'
  targets_key: str = 'targets'
  add_eos: bool = True
  name: str = 'inputs'

  def __post_init__(self):
    """Refuses what nothing could be decoded of."""
    if not isinstance(self.batch_size, int) or self.batch_size < 1:
      raise ValueError(
          f'batch_size is {self.batch_size!r}: expected a whole number of '
          'examples, at least 1. Set BATCH_SIZE.'
      )
    argument_checks.check_lengths(self.task_feature_lengths)


class ExampleMaker:
  """Makes examples of texts.

  Attributes:
    keys: Fields that a record must have.
  """

  def __init__(self, cfg: FileConfig, *, model: Any, mode: str):
    """Takes the vocabularies from the model."""
    self._cfg = cfg
    self._input_vocabulary = model.input_vocabulary
    self._output_vocabulary = model.output_vocabulary
    keys = {'inputs': cfg.inputs_key}
    if mode == SCORE:
      keys['targets'] = cfg.targets_key
    lengths = cfg.task_feature_lengths
    self._keys = {n: key for n, key in keys.items() if n in lengths}
    self.keys = list(self._keys.values())
    self._goes_on = not cfg.add_eos and isinstance(
        model, decoder_only.DecoderOnlyModel
    )

  def make(self, record: text_inputs.Record) -> tuple[Example, bool]:
    """Returns the example of a record, and whether something was cut off."""
    lengths = self._cfg.task_feature_lengths
    example: Example = {
        name: value
        for name, value in record.items()
        if name not in self.keys and name not in lengths
    }
    is_cut = False
    for name, length in lengths.items():
      if name not in self._keys:
        example[name] = np.zeros((0,), np.int32)
        continue
      text = record[self._keys[name]]
      tokens = self._encode(text, name)
      if len(tokens) > length:
        tokens = self._cut(tokens, name, length)
        is_cut = True
      example[name] = np.asarray(tokens, np.int32)
      example[f'{name}_pretokenized'] = text
    return example, is_cut

  def _cut(self, tokens: list[int], name: str, length: int) -> list[int]:
    if name == 'targets':  # as tasks do
      return tokens[:length]
    if self._goes_on:
      return tokens[-length:]
    if self._cfg.add_eos:  # stays: the model has never seen inputs without
      return tokens[: length - 1] + tokens[-1:]
    return tokens[:length]

  def _encode(self, text: str, name: str) -> list[int]:
    is_input = name == 'inputs'
    vocabulary = self._input_vocabulary if is_input else self._output_vocabulary
    tokens = vocabularies.encode_as_written(text, vocabulary=vocabulary)
    if self._cfg.add_eos or not is_input:
      tokens.append(vocabulary.eos_id or 1)
    return tokens


class FileSource:
  """Examples of files, every record checked before the first is used.

  Attributes:
    name: Name of the output file.
    num_examples: How many there are.
    vocabulary: Vocabulary of what is decoded.
    identity: What the outputs depend on, as JSON.
  """

  def __init__(
      self, cfg: FileConfig, *, model: Any, mode: str, shard: tuple[int, int]
  ):
    """Reads the files once, to check them; shard 1 of 3 has records 1, 4, ...

    Raises:
      text_inputs.BadInputError: A file is not there, empty or broken.
    """
    self.name = cfg.name
    self._cfg = cfg
    self._shard = shard
    lengths = cfg.task_feature_lengths
    self.vocabulary = model.output_vocabulary
    self._maker = ExampleMaker(cfg, model=model, mode=mode)
    self._inputs = text_inputs.TextInputs(
        text_inputs.find_files(cfg.paths),
        file_type=cfg.file_type,
        inputs_key=self._maker.keys[0],
        other_keys=self._maker.keys[1:],
        unread_keys=set() if 'inputs' in lengths else {cfg.inputs_key},
    )
    digest = hashlib.sha256()
    num_records = 0
    for raw, _ in self._inputs.records():
      digest.update(len(raw).to_bytes(8, 'little') + raw)
      num_records += 1
    index, count = shard
    self.num_examples = len(range(index, num_records, count))
    self.identity = {
        'inputs': f'{num_records} records, sha256 {digest.hexdigest()}',
        'fields': self._maker.keys,
        'add_eos': cfg.add_eos,
    }
    if count > 1:
      self.identity['shard'] = f'{index} of {count}'

  def examples(self) -> Iterator[Example]:
    """Yields all examples, in order."""
    num_cut = 0
    index, count = self._shard
    for _, record in itertools.islice(
        self._inputs.records(), index, None, count
    ):
      example, is_cut = self._maker.make(record)
      num_cut += is_cut
      yield example
    if num_cut:
      logging.warning(
          '%d of %d inputs (or targets) were longer than %s tokens and cut; '
          'raise --input_length and --decode_length (with gin, '
          'TASK_FEATURE_LENGTHS) to keep them whole.', num_cut,
          self.num_examples, dict(self._cfg.task_feature_lengths),
      )  # fmt: skip


class TaskSource:
  """Examples of a seqio task, in its order, or of one shard of it.

  Attributes:
    name: Name of the task.
    num_examples: None: a task may filter its examples.
    vocabulary: Vocabulary of what is decoded.
    identity: What the outputs depend on, as JSON.
  """

  num_examples = None

  def __init__(
      self, cfg: Any, task: Any, *, shard: tuple[int, int], output_feature: str
  ):
    """Takes a task and the shard (index, count) of it."""
    self.name = task.name
    self._cfg = cfg
    self._task = task
    self._shard = shard
    self.vocabulary = task.output_features[output_feature].vocabulary
    self.identity = {
        'inputs': f'task {task.name}, split {cfg.split}, seed {cfg.seed}',
        'shard': f'{shard[0]} of {shard[1]}',
    }
    files = source_files.look_at(_files_of(task, cfg.split))
    if files:  # others the digests of chunks tell, while there are any
      self.identity['files'] = source_files.fingerprint(files)

  def examples(self) -> Iterator[Example]:
    """Yields all examples, in order."""
    import seqio

    index, count = self._shard
    dataset = self._task.get_dataset(
        sequence_length=self._cfg.task_feature_lengths,
        split=self._cfg.split,
        shuffle=False,
        num_epochs=1,
        shard_info=seqio.ShardInfo(index=index, num_shards=count),
        use_cached=self._cfg.use_cached,
        seed=self._cfg.seed,
    )
    with pipelines.failures_told():
      yield from dataset.as_numpy_iterator()


def _files_of(task: Any, split: str) -> list[str]:
  """The files of a task that is read live, as far as its source knows them."""
  try:
    return list(task.source.list_shards(split))
  except Exception:  # noqa: BLE001 -- other people's; then nothing is known
    return []


def open_sources(
    cfg: Any,
    *,
    model: Any,
    mode: str,
    shard: tuple[int, int],
    output_feature: str,
) -> list[Any]:
  """Returns a source for each output file.

  Args:
    cfg: A `FileConfig`, or a `data.DatasetConfig` of a task or mixture.
    model: Its vocabularies and feature converter must suit.
    mode: One of `MODES`.
    shard: Index and count of the shards of a task, or of files.
    output_feature: The task feature that is decoded.

  Raises:
    ValueError: The data cannot be read, or lacks what the model needs.
  """
  converter = model.FEATURE_CONVERTER_CLS(pack=False)
  if isinstance(cfg, FileConfig):
    _check_lengths_suit(cfg, converter, model=model, mode=mode)
    return [FileSource(cfg, model=model, mode=mode, shard=shard)]
  provider = datasets.open_provider(cfg)
  argument_checks.check_lengths(cfg.task_feature_lengths)
  sources = []
  for task in providers.subtasks_of(provider):
    if cfg.split not in task.splits:
      continue
    argument_checks.check_features(
        converter=converter, lengths=cfg.task_feature_lengths, task=task
    )
    sources.append(
        TaskSource(cfg, task, shard=shard, output_feature=output_feature)
    )
  return sources


def _check_lengths_suit(
    cfg: FileConfig, converter: Any, *, model: Any, mode: str
) -> None:
  lengths = cfg.task_feature_lengths
  needed = ['inputs', 'targets']
  if mode == SCORE and isinstance(model, decoder_only.DecoderOnlyModel):
    needed.remove('inputs')
  for name in needed:
    if name not in lengths:
      raise ValueError(
          f'task_feature_lengths is {dict(lengths)!r}: expected a length for '
          f"'inputs' and 'targets' to read files for "
          f'{type(converter).__name__}. Add {name!r} to TASK_FEATURE_LENGTHS.'
      )


def to_model_features(
    examples: Sequence[Example],
    *,
    converter: Any,
    lengths: Mapping[str, Any],
) -> list[dict[str, np.ndarray]]:
  """Returns the model's features of each example, padded to `lengths`."""
  import tensorflow as tf

  names = list(lengths)
  columns = {name: [np.asarray(e[name]) for e in examples] for name in names}
  dataset = tf.data.Dataset.from_generator(
      lambda: (
          dict(zip(names, row, strict=True))
          for row in zip(*columns.values(), strict=True)
      ),
      output_signature={
          name: tf.TensorSpec([None] * column[0].ndim, column[0].dtype)
          for name, column in columns.items()
      },
  )
  return list(converter(dataset, lengths).as_numpy_iterator())


def chunks(
    examples: Iterator[Example], size: int
) -> Iterator[list[Example]]:
  """Yields lists of `size` examples; the last may be shorter."""
  while chunk := list(itertools.islice(examples, size)):
    yield chunk


def digest_of(examples: Sequence[Example], names: Sequence[str]) -> str:
  """Returns a hash of the examples' tokens."""
  digest = hashlib.sha256()
  for example in examples:
    for name in names:
      tokens = np.ascontiguousarray(example[name])
      digest.update(f'{name}{tokens.shape}{tokens.dtype}'.encode())
      digest.update(tokens.tobytes())
  return digest.hexdigest()
