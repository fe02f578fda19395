# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""How much is read and decoded: as a run was trained, or as flags say."""

import dataclasses
from typing import Any

from absl import logging

from t5wild import run_config
from t5wild.data import datasets
from t5wild.inferring import inputs
from t5wild.inferring import text_inputs

# Data of a run that is elsewhere may fail in many ways; flags say it then.
_NO_DATA = (
    ValueError, LookupError, OSError, ImportError, AttributeError
)  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lengths:
  """Lengths of task features, and how inputs end.

  Attributes:
    by_feature: Tokens of 'inputs' and of 'targets'; of 'targets' alone where
      whole texts are scored.
    add_eos: Whether inputs end with the end token.
  """

  by_feature: dict[str, int]
  add_eos: bool

  @classmethod
  def of_run(cls, values: Any, bound: run_config.RunConfig) -> 'Lengths':
    """Returns those of a run, where no flag says otherwise.

    A model of one sequence (trained on 'targets' alone) gives half of it to
    the prompt, which has no end token: the text goes on after it.

    Args:
      values: The flags.
      bound: The run.

    Raises:
      ValueError: Neither run nor flags say how long.
    """
    trained, add_eos = {}, True
    try:
      cfg = bound.need('train_dataset_cfg')
      trained = dict(cfg.task_feature_lengths)
      # Caches know the features of their tasks.
      given = getattr(cfg, 'output_features', None)
      features = given or datasets.open_provider(cfg).output_features
      add_eos = 'inputs' in features and bool(features['inputs'].add_eos)
    except _NO_DATA as error:
      logging.warning(
          "The run's data cannot be opened here (%s), so its flags count: "
          'inputs end with an end token unless --noinput_eos says otherwise.',
          (str(error).splitlines() or [type(error).__name__])[0],
      )
    if values.input_eos is not None:
      add_eos = values.input_eos
    if set(trained) == {'targets'}:
      lengths = _of_one_sequence(values, trained['targets'])
    elif values.input_length == 0:
      raise ValueError(
          '--input_length is 0, and the run was trained with inputs of '
          f'{trained.get("inputs")} tokens: expected at least 1. Raise it, or '
          'leave it out.'
      )
    else:
      lengths = {
          'inputs': values.input_length or trained.get('inputs'),
          'targets': values.decode_length or trained.get('targets'),
      }
    if None in lengths.values():
      raise ValueError(
          f'the lengths are {lengths}: the run does not say all of them here; '
          'expected both. Give --input_length and --decode_length.'
      )
    return cls(by_feature=lengths, add_eos=add_eos)


def _of_one_sequence(values: Any, total: int) -> dict[str, int]:
  """Lengths of prompt and continuation, or of whole texts to score."""
  prompt, rest = values.input_length, values.decode_length
  if prompt is None and _scores_lines_of_text(values):
    prompt = 0
  if prompt == 0:
    return {'targets': rest or total}
  if prompt is None:
    prompt = total // 2 if rest is None else total - rest
  if rest is None:
    rest = total - prompt
  if min(prompt, rest) < 1:
    given = 'decode' if values.input_length is None else 'input'
    raise ValueError(
        f'--{given}_length is {values[f"{given}_length"].value}, and the run '
        f'was trained on sequences of {total} tokens: expected less, which '
        'leaves room for the other part. Lower it, or give both '
        '--input_length and --decode_length.'
    )
  logging.info(
      'Prompts of up to %d tokens, and up to %d decoded: trained on %d '
      'together.', prompt, rest, total,
  )  # fmt: skip
  return {'inputs': prompt, 'targets': rest}


def _scores_lines_of_text(values: Any) -> bool:
  if values.mode != inputs.SCORE or not values.input:
    return False
  kinds = {
      text_inputs.type_of(path, values.input_type)
      for path in text_inputs.find_files(values.input)
  }
  return kinds == {'text'}
