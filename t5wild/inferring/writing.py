# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Outputs as JSON lines, one for each example: T5X's fields, and our own."""

from collections.abc import Iterator, Mapping, Sequence
import json
import os
from typing import Any

from etils import epath
import numpy as np

from t5wild.data import vocabularies
from t5wild.inferring import inputs

_PRETOKENIZED = '_pretokenized'
# What a JSON line of ours holds beside its texts; data of tasks has none.
_PLAIN = (str, int, float, bool, list, dict, type(None))
# Beside the scores of tokens, says which of them count.
TOKEN_WEIGHTS = 'token_weights'
TOKEN_SCORES = 'token_scores'

Inferences = tuple[Sequence[Any], Mapping[str, Any]]


class Examples(Sequence):
  """Examples as `write_fn` gets them; read like a tf.data.Dataset too."""

  def __init__(self, examples: Sequence[Any]):
    """Keeps the examples."""
    self._examples = examples

  def __len__(self) -> int:
    """Number of examples."""
    return len(self._examples)

  def __getitem__(self, index):
    """One example."""
    return self._examples[index]

  def as_numpy_iterator(self) -> Iterator[Any]:
    """Yields the examples, as a tf.data.Dataset does."""
    return iter(self._examples)

  def enumerate(self) -> 'Examples':
    """Returns pairs (index, example), as a tf.data.Dataset does."""
    return Examples(list(enumerate(self._examples)))


def write_inferences_to_file(  # noqa: PLR0913 -- T5X's signature
    path: str,
    inferences: Inferences,
    task_ds: Any,
    mode: str,
    vocabulary: Any = None,
    json_encoder_cls: type[json.JSONEncoder] = json.JSONEncoder,
    include_all_inputs: bool = False,
    input_fields_to_include: Sequence[str] | None = None,
    output_ids: bool = False,
) -> None:
  """Writes a JSON line for each example (T5X's signature).

  A line has 'inputs' (texts, and what else a JSON line of the input had), then
  'prediction' or 'score', and 'aux' where the model gave more.

  Args:
    path: File to write.
    inferences: Outputs, and auxiliary values by name, one for each example.
    task_ds: Examples: iterable, or with `as_numpy_iterator`.
    mode: 'predict', 'predict_with_aux' or 'score'.
    vocabulary: Decodes predictions.
    json_encoder_cls: Writes what JSON knows not.
    include_all_inputs: Also write the token ids of the inputs.
    input_fields_to_include: Features to write; None means all texts.
    output_ids: Also write the predicted ids, without padding.

  Raises:
    ValueError: Unknown mode, or arguments that exclude each other.
  """
  if mode not in inputs.MODES:
    raise ValueError(
        f'mode is {mode!r}: expected one of {inputs.MODES}. Correct infer.mode.'
    )
  if include_all_inputs and input_fields_to_include is not None:
    raise ValueError(
        f'include_all_inputs is {include_all_inputs} and '
        f'input_fields_to_include is {input_fields_to_include}: expected one '
        'of them. Drop the other.'
    )
  if mode != inputs.SCORE and vocabulary is None:
    raise ValueError(
        f'vocabulary is {vocabulary} and mode is {mode!r}: expected a '
        'vocabulary to turn predictions into text. Give one.'
    )
  outputs, aux = inferences
  read = getattr(task_ds, 'as_numpy_iterator', lambda: iter(task_ds))

  def is_wanted(name, value):
    return include_all_inputs or _is_wanted(
        name, value, input_fields_to_include
    )

  with epath.Path(path).open('w') as file:
    for index, example in enumerate(read()):
      line = {
          'inputs': {
              name: _plain(value)
              for name, value in example.items()
              if is_wanted(name, value)
          },
          **_output(outputs[index], mode, vocabulary, with_ids=output_ids),
      }
      one = {name: values[index] for name, values in aux.items()}
      if one and mode != inputs.PREDICT:
        line['aux'] = _plain(_only_real_tokens(one))
      text = json.dumps(line, cls=json_encoder_cls, ensure_ascii=False)
      file.write(text + '\n')
    file.flush()
    if '://' not in os.fspath(path):
      os.fsync(file.fileno())


def _is_wanted(name: str, value: Any, fields: Sequence[str] | None) -> bool:
  if fields is not None:
    return name in fields or name.removesuffix(_PRETOKENIZED) in fields
  return name.endswith(_PRETOKENIZED) or type(value) in _PLAIN


def _output(
    output: Any, mode: str, vocabulary: Any, *, with_ids: bool
) -> dict[str, Any]:
  if mode == inputs.SCORE:
    return {'score': _plain(output)}
  line: dict[str, Any] = {'prediction': _text(output, vocabulary)}
  if with_ids:
    line['prediction_tokens'] = _without_padding(output)
  return line


def _text(tokens: Any, vocabulary: Any) -> str | list[str]:
  """Text of one decode, or of each."""
  if np.ndim(tokens) > 1:
    return [_text(one, vocabulary) for one in tokens]
  return vocabularies.decode_as_written(tokens, vocabulary=vocabulary)


def _without_padding(tokens: Any) -> list[Any]:
  if np.ndim(tokens) > 1:
    return [_without_padding(one) for one in tokens]
  tokens = np.asarray(tokens).tolist()
  return tokens[: tokens.index(0)] if 0 in tokens else tokens


def _only_real_tokens(aux: Mapping[str, Any]) -> dict[str, Any]:
  """Scores of tokens without those of padding and of the inputs."""
  aux = dict(aux)
  weights = aux.pop(TOKEN_WEIGHTS, None)
  if weights is not None:
    scores = np.asarray(aux[TOKEN_SCORES])
    aux[TOKEN_SCORES] = scores[np.asarray(weights) > 0]
  return aux


def _plain(value: Any) -> Any:
  """What JSON can hold of a value."""
  if isinstance(value, bytes):
    return value.decode('utf-8', errors='replace')
  if isinstance(value, Mapping):
    return {name: _plain(one) for name, one in value.items()}
  if isinstance(value, np.ndarray | np.generic):
    if value.dtype.kind == 'V' or str(value.dtype) == 'bfloat16':
      value = value.astype(np.float32)
    return _plain(value.tolist())
  if isinstance(value, list | tuple):
    return [_plain(one) for one in value]
  return value
