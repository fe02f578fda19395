# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Assignment maps and what is told of two models that differ."""

import numpy as np
import pytest

from t5wild.checkpoints import transforms


def _state(*keys):
  return transforms.unflatten({key: f'value of {key}' for key in keys})


def _mapped(stored, wanted, rules, **kwargs):
  result = transforms.apply_assignment_map(
      _state(*stored), _state(*wanted), rules, **kwargs
  )
  return {
      key: value.removeprefix('value of ')
      for key, value in transforms.flatten(result).items()
  }


def test_pattern_over_the_models_keys_names_the_checkpoints():
  mapped = _mapped(
      ['target/old/a', 'target/old/b', 'state/step'],
      ['target/new/a', 'target/new/b', 'state/step'],
      [(r'target/new/(.*)', r'target/old/\1')],
  )
  assert mapped == {
      'target/new/a': 'target/old/a',
      'target/new/b': 'target/old/b',
      'state/step': 'state/step',
  }


def test_key_mapped_to_none_is_left_out():
  mapped = _mapped(
      ['target/a', 'state/m/a', 'state/step'],
      ['target/a', 'state/m/a', 'state/step'],
      [(r'state/m.*', None)],
  )
  assert sorted(mapped) == ['state/step', 'target/a']


def test_first_matching_rule_decides():
  mapped = _mapped(
      ['t/x', 't/y'], ['t/a'], [(r't/a', r't/x'), (r't/.*', r't/y')],
      require_all_rules_match=False,
  )  # fmt: skip
  assert mapped['t/a'] == 't/x'


def test_two_keys_may_take_one_array():
  mapped = _mapped(['t/x'], ['t/a', 't/b'], [(r't/(a|b)', r't/x')])
  assert mapped == {'t/a': 't/x', 't/b': 't/x'}


def test_keys_can_change_places():
  mapped = _mapped(['t/a', 't/b'], ['t/a', 't/b'],
                   [(r't/a', r't/b'), (r't/b', r't/a')])  # fmt: skip
  assert mapped == {'t/a': 't/b', 't/b': 't/a'}


def test_checkpoint_keys_without_a_rule_stay():
  mapped = _mapped(['t/a', 't/z'], ['t/b'], [(r't/b', r't/a')])
  assert mapped == {'t/b': 't/a', 't/z': 't/z'}


def test_pattern_must_match_the_whole_key():
  with pytest.raises(ValueError, match='decide nothing'):
    _mapped(['t/a'], ['t/ab'], [(r't/a', None)])


def test_resuming_run_maps_nothing():
  mapped = _mapped(
      ['t/a'], ['t/b'], [(r't/b', r't/missing')], is_resuming=True
  )
  assert mapped == {'t/a': 't/a'}


def test_replacement_that_names_nothing_is_refused_with_a_close_name():
  with pytest.raises(ValueError, match=r"t/kernl, did you mean \['t/kernel'\]"):
    _mapped(['t/kernel'], ['t/a'], [(r't/a', r't/kernl')])


@pytest.mark.parametrize(
    ('rules', 'shown'),
    [(['ab'], "holds 'ab'"), ([('(', None)], 'regular'), ([('a',)], 'pairs')],
)
def test_malformed_rules_are_refused(rules, shown):
  with pytest.raises(ValueError, match=shown):
    transforms.check_assignment_map(rules)


def _arrays(**shapes):
  return {
      key.replace('__', '/'): np.zeros(shape, np.float32)
      for key, shape in shapes.items()
  }


def test_other_model_is_refused_with_both_sides_named():
  stored = _arrays(target__a=(2, 3), target__old=(1,), target__same=(4,))
  wanted = _arrays(target__a=(2, 5), target__new=(7,), target__same=(4,))
  with pytest.raises(transforms.DifferentModelError) as caught:
    transforms.check_same_model(stored, wanted, path='/run/checkpoint_3')
  lines = str(caught.value).splitlines()
  assert lines[0] == (
      '/run/checkpoint_3 is of another model: 3 of 4 arrays differ'
  )
  assert '  target/a: float32[2, 5] | float32[2, 3]' in lines
  assert lines[lines.index('in the model, not in the checkpoint:') + 1] == (
      '  target/new float32[7]'
  )
  assert lines[lines.index('in the checkpoint, not in the model:') + 1] == (
      '  target/old float32[1]'
  )
  assert 'assignment_map' in lines[-1]
  assert 'strict=False' in lines[-1]


def test_other_settings_of_an_optimizer_are_told_from_another_model():
  stored = _arrays(target__w=(3,), state__param_states__w__m=(1,))
  wanted = _arrays(target__w=(3,), state__param_states__w__m=(3,))
  with pytest.raises(transforms.DifferentModelError) as caught:
    transforms.check_same_model(stored, wanted, path='p')
  last = str(caught.value).splitlines()[-1]
  assert 'take the optimizer' in last
  assert "assignment_map=((r'state/param_states/.*', None),)" in last


def test_close_names_of_the_checkpoint_are_offered():
  stored = _arrays(target__encoder__mlp__wi_0=(2,), target__far=(1,))
  wanted = _arrays(target__encoder__mlp__wi=(2,), target__new__thing=(1,))
  with pytest.raises(transforms.DifferentModelError) as caught:
    transforms.check_same_model(stored, wanted, path='p')
  lines = str(caught.value).splitlines()
  assert lines[2:4] == [
      '  target/encoder/mlp/wi float32[2], did you mean '
      'target/encoder/mlp/wi_0',
      '  target/new/thing float32[1]',
  ]


def test_long_lists_are_cut_and_counted():
  wanted = _arrays(**{f'target__{i:03}': (1,) for i in range(100)})
  with pytest.raises(transforms.DifferentModelError, match='and 80 more'):
    transforms.check_same_model({}, wanted, path='x')


def test_state_that_the_model_lacks_is_no_difference():
  stored = _arrays(target__a=(1,), state__m=(1,))
  assert transforms.check_same_model(
      stored, _arrays(target__a=(1,)), path='x'
  ) == ()


def test_loose_restore_ignores_parameters_the_model_lacks():
  stored = _arrays(target__a=(1,), target__b=(1,))
  wanted = _arrays(target__a=(1,))
  with pytest.raises(transforms.DifferentModelError, match='strict=False'):
    transforms.check_same_model(stored, wanted, path='x')
  transforms.check_same_model(stored, wanted, path='x', strict=False)


def test_other_optimizer_is_told_as_such():
  stored = _arrays(target__a=(1,), state__m=(1,))
  wanted = _arrays(target__a=(1,), state__v=(1,))
  with pytest.raises(transforms.DifferentModelError, match='optimizer'):
    transforms.check_same_model(stored, wanted, path='x')


def test_fallback_names_what_begins_from_scratch():
  wanted = _arrays(target__a=(1,), target__b=(1,))
  assert transforms.check_same_model(
      _arrays(target__a=(1,)), wanted, path='x', fallback_to_scratch=True
  ) == ('target/b',)


def test_fallback_does_not_excuse_another_shape():
  with pytest.raises(transforms.DifferentModelError, match='another shape'):
    transforms.check_same_model(
        _arrays(target__a=(1,)), _arrays(target__a=(2,)), path='x',
        fallback_to_scratch=True,
    )  # fmt: skip
