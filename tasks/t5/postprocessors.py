# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What T5 makes of a prediction, or of a target, before metrics see it.

Each is called with the text, the example it belongs to, and whether it is the
target; strings within an example are bytes.
"""

_DETERMINERS = frozenset((
    'a', 'an', 'few', 'her', 'his', 'each', 'every', 'many', 'much', 'my',
    'our', 'some', 'that', 'the', 'their', 'these', 'this', 'those', 'which',
    'whose', 'your',
))  # fmt: skip


def string_to_float(string, default=-1.0, **unused_kwargs):
  """The number that a text is; `default` where it is none."""
  del unused_kwargs
  try:
    return float(string)
  except ValueError:
    return default


def lower_text(string, **unused_kwargs):
  """The text in lower case."""
  del unused_kwargs
  return string.lower()


def string_label_to_class_id(
    string_label, label_classes, default=-1, **unused_kwargs
):
  """Where a label stands among the classes; `default` where it does not."""
  del unused_kwargs
  names = list(label_classes)
  return names.index(string_label) if string_label in names else default


def multirc(string_label, example=None, is_target=False):
  """The class of an answer, and of a target the question, to group by."""
  value = {'value': string_label_to_class_id(string_label, ('False', 'True'))}
  return {**value, 'group': example['idx/question']} if is_target else value


def record(answer, example=None, is_target=False):
  """A prediction, or all right answers and the query, to group by."""
  if not is_target:
    return {'value': answer}
  return {
      'value': _texts(example['answers']),
      'group': (example['idx/passage'], example['idx/query']),
  }


def qa(answer, example=None, is_target=False):
  """A prediction, or all right answers."""
  return _texts(example['answers']) if is_target else answer


def span_qa(answer, example=None, is_target=False):
  """A prediction, or all right answers and the text that they stand in."""
  if not is_target:
    return answer
  return {
      'answers': _texts(example['answers']),
      'context': _text(example['context']),
  }


def wsc_simple(prediction, example=None, is_target=False):
  """Whether a predicted referent is the one that was asked about: 1 or 0.

  Words that determine it do not count, nor does case; either side may have
  more words than the other. Of a target this is its label; an empty prediction
  is -1.
  """
  if is_target:
    return example['label']
  predicted = _referent(prediction)
  if not predicted:
    return -1
  asked = _referent(example['targets_pretokenized'])
  # "Bob" is not "Bob's hat".
  if ("'" in predicted) != ("'" in asked):
    return 0
  ours, theirs = set(predicted.split(' ')), set(asked.split(' '))
  return int(ours <= theirs or theirs <= ours)


def rank_classification(
    score, example=None, is_target=False, passthrough_feature_keys=None
):
  """A score, or what the metric of this name needs to know of an answer."""
  if not is_target:
    return score
  return (
      tuple(example['idx']),
      example['is_correct'],
      example.get('weight', 1.0),
      len(example['targets']),
      *(example[key] for key in passthrough_feature_keys or ()),
  )


def _referent(text) -> str:
  words = _text(text).strip().lower().split(' ')
  return ' '.join(word for word in words if word not in _DETERMINERS)


def _text(value) -> str:
  return value.decode('utf-8') if isinstance(value, bytes) else str(value)


def _texts(values) -> list[str]:
  return [_text(value) for value in values]
