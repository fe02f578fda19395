# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild infer` with models of one sequence: prompts are gone on with."""

import io
import json
import sys

import pytest

from tests.end_to_end import binaries
from tests.end_to_end import runs

pytestmark = [pytest.mark.slow, pytest.mark.multiprocess]

_CAUSAL = runs.RECIPE.with_name('decoder.gin')
_PREFIX = runs.RECIPE.with_name('prefix_decoder.gin')
# Name of a run to its recipe, and what is bound beside it.
_RUNS = {
    'causal': (_CAUSAL, {}),
    'bidirectional': (
        _PREFIX,
        {'models__DecoderOnlyModel__inputs_bidirectional_attention': True},
    ),
    'prefix': (_PREFIX, {'MODEL': '@models.PrefixLanguageModel()'}),
}
_INPUT_LENGTH = 24
_PROMPTS = ['def loads(s):', '', 'x' * 20, 'import json\tas', 'y' * 60 + ' END']


@pytest.fixture(scope='module', params=sorted(_RUNS))
def run(request, tmp_path_factory):
  folder = tmp_path_factory.mktemp('decoder') / request.param
  recipe, bindings = _RUNS[request.param]
  code = runs.train(folder, recipe=recipe, **bindings)
  assert code == 0, folder.with_suffix('.log').read_text()[-3000:]
  return folder


@pytest.fixture
def infer(run, tmp_path, capsys):
  """Infers on lines (texts, or dicts); returns the lines of the output."""

  def infer_on(lines, *flags):
    is_text = isinstance(lines[0], str)
    path = tmp_path / ('in.txt' if is_text else 'in.jsonl')
    texts = lines if is_text else map(json.dumps, lines)
    path.write_text('\n'.join(texts) + '\n', encoding='utf-8')
    code = binaries.run('infer', f'--run={run}', f'--input={path}', *flags)
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return [json.loads(line) for line in captured.out.splitlines()]

  return infer_on


def test_a_prompt_a_line_is_gone_on_with(infer):
  found = infer(_PROMPTS)
  assert [one['inputs']['inputs_pretokenized'] for one in found] == _PROMPTS
  assert all(isinstance(one['prediction'], str) for one in found)
  # Alone or among others, and whatever the shape of the batch.
  assert infer(_PROMPTS[:1]) == found[:1]


def test_of_a_long_prompt_the_end_counts(infer):
  whole, end = infer([_PROMPTS[-1], _PROMPTS[-1][-_INPUT_LENGTH:]])
  assert whole['prediction'] == end['prediction']


def test_decoding_may_be_shorter_and_scores_come_with_it(infer):
  longer = infer(_PROMPTS, '--mode=predict_with_aux')
  shorter = infer(
      _PROMPTS, '--mode=predict_with_aux', f'--input_length={_INPUT_LENGTH}',
      '--decode_length=3',
  )  # fmt: skip
  for one, other in zip(shorter, longer, strict=True):
    assert other['aux']['scores'] <= one['aux']['scores'] <= 0
    assert other['prediction'].startswith(one['prediction'].rstrip('\ufffd'))


def test_a_score_is_of_the_targets_after_the_inputs(run, infer):
  pairs = [
      {'inputs': 'def f(', 'targets': 'x):'}, {'inputs': '', 'targets': 'def'}
  ]  # fmt: skip
  found = infer(pairs, '--mode=score')
  for pair, one in zip(pairs, found, strict=True):
    scores = one['aux']['token_scores']
    assert len(scores) == len(pair['targets']) + 1  # and the end token
    assert one['score'] == pytest.approx(sum(scores), rel=1e-5)
  if run.name != 'causal':
    return
  # Seen in one direction, the parts of a text score as they do in the whole.
  texts = [pair['inputs'] + pair['targets'] for pair in pairs]
  for text, pair, one in zip(
      infer(texts, '--mode=score'), pairs, found, strict=True
  ):
    assert text['aux']['token_scores'][len(pair['inputs']) :] == pytest.approx(
        one['aux']['token_scores'], rel=1e-4
    )


def test_a_conversation_answers_every_line(run, monkeypatch, capsys):
  monkeypatch.setattr(sys, 'stdin', io.StringIO('def f(\nimport \n'))
  assert binaries.run('infer', f'--run={run}', '--interactive') == 0
  captured = capsys.readouterr()
  assert 'a prompt a line' in captured.err
  assert captured.out.count('\n') >= 2
