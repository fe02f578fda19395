# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What is told of when records were seen is what reading again shows."""

import collections
import dataclasses
import functools

import numpy as np
import pytest

from t5wild import samples
from t5wild.data import cached_windows
from t5wild.data import exclusions
from t5wild.data import ledger
from t5wild.data import objectives
from t5wild.data import sample_steps
from tests.data import caches

_MERGED = functools.partial(objectives.span_corruption, merge_documents=True)
_LAST = 34


@pytest.fixture(scope='module')
def two_texts(tmp_path_factory):
  root = tmp_path_factory.mktemp('texts')
  caches.write(root, caches.texts(25, seed=3), task='one')
  caches.write(
      root,
      caches.texts(40, seed=4),
      task='two',
      rates={'one': 2.0, 'two': 1.0},
  )
  return root


@pytest.fixture(scope='module', params=[objectives.span_corruption, _MERGED])
def run(request, two_texts, tmp_path_factory):
  """A run of changes: rates, exclusions, the batch size; killed once."""
  folder = tmp_path_factory.mktemp('run')
  cfg = caches.config(
      two_texts,
      objective=request.param,
      window_tokens=1024,
      rates_from_step={7: {'two': 1.0}, 9: {'one': 1.0, 'two': 3.0}},
      exclude_from_step={16: ['two:0:2', 'one:1:0']},
  )
  seen = collections.defaultdict(set)
  without = collections.defaultdict(set)
  state = None
  for batch_size, start, stop, period in (
      (16, 0, 14, 5), (8, 11, 26, 4), (24, 26, _LAST, 3)
  ):  # fmt: skip
    reader = caches.reader(cfg, batch_size=batch_size)
    if state is not None:
      reader.load_state_dict(state)
    written = ledger.SampleLedger(folder, batch_size=batch_size)
    written.note(start, reader.state_dict())
    for step in range(start + 1, stop + 1):
      seen[step] = set(map(tuple, np.concatenate(reader.origins()).tolist()))
      without[step] = set(map(tuple, reader.left_out().tolist()))
      next(reader)
      if step % period == 0 or step == stop:
        written.note(step, reader.state_dict())
      if step in (11, 26):  # the steps after 11 are trained again
        state = reader.state_dict()
  return cfg, ledger.read_anchors(folder), seen, without


def _by_origin(steps) -> dict:
  found = collections.defaultdict(set)
  for step, origins in steps.items():
    for origin in origins:
      found[origin].add(step)
  return found


def test_all_steps_of_all_records_are_found(run):
  cfg, anchors, seen, without = run
  found, found_without = (collections.defaultdict(set) for _ in range(2))
  sizes = [len(cache) for cache in cfg.open_caches()]
  reader = caches.reader(cfg)
  reader.load_state_dict(anchors[-1].state)
  steps = sample_steps.SampleSteps(anchors, reader.phases, num_records=sizes)
  for sighting in steps.find(
      sample_steps.Wanted(source=source, number=number)
      for source, size in enumerate(sizes)
      for number in range(size)
  ):
    found[sighting.origin] |= set(sighting.steps)
    found_without[sighting.origin] |= set(sighting.steps_without)
  expected, expected_without = _by_origin(seen), _by_origin(without)
  assert len({epoch for _, epoch, _ in expected}) > 2
  assert min(map(min, expected_without.values())) >= 16
  assert {o: s for o, s in found.items() if s} == expected
  assert {o: s for o, s in found_without.items() if s} == expected_without


def test_each_step_is_told_with_its_records_and_what_was_left_out(run):
  cfg, anchors, seen, without = run
  told = samples.RunSamples(
      cfg, anchors, feature_converter_cls=caches.ENCODER_DECODER
  )
  for step in (1, 7, 12, 16, 27, _LAST):
    lines = list(told.lines_of_step(step, with_text=True))
    rows = [line for line in lines if line.startswith('row ')]
    left_out = [line for line in lines if line.startswith('left out: ')]
    assert {
        tuple(line.split(': ', 1)[1].split(',')[:2]) for line in rows
    } == {
        (('one', 'two')[source], f' epoch {epoch}')
        for source, epoch, _ in seen[step]
    }
    assert bool(left_out) == bool(without[step])
    assert all(
        'excluded from step 16 on' in line or cfg.objective == _MERGED
        for line in left_out
    )
    assert any(line.startswith('  targets: ') for line in lines)


def test_a_document_is_found_by_its_name(run):
  cfg, anchors, _, _ = run
  told = samples.RunSamples(
      cfg, anchors, feature_converter_cls=caches.ENCODER_DECODER
  )
  head, *lines = told.lines_of_document('two:0:2', most=1000)
  assert head.startswith('two:0:2 has ')
  assert {line.split()[0] for line in lines} == {'steps', 'left'}
  assert all('excluded from step 16 on' in line for line in lines)
  with pytest.raises(ValueError, match='no shard 9'):
    list(told.lines_of_document('two:9:2', most=1))


def test_a_list_that_changed_since_is_refused(run):
  cfg, anchors, _, _ = run
  told = samples.RunSamples(
      caches.config(
          cfg.cache_dir, objective=cfg.objective, window_tokens=1024,
          rates_from_step=cfg.rates_from_step,
      ),
      anchors,
      feature_converter_cls=caches.ENCODER_DECODER,
  )  # fmt: skip
  with pytest.raises(ValueError, match='exclude_from_step'):
    list(told.lines_of_step(_LAST, with_text=False))


def test_batches_that_were_passed_over_were_not_seen(two_texts, tmp_path):
  cfg = caches.config(two_texts, window_tokens=1024, batch_size=8)
  reader = caches.reader(cfg)
  written = ledger.SampleLedger(tmp_path, batch_size=8)
  expected = collections.defaultdict(set)
  passed = set()
  for step in range(1, 13):
    if step % 5 == 1:
      written.note(step - 1, reader.state_dict())
    if step == 9:  # as a rewind does
      for _ in range(3):
        passed |= set(map(tuple, caches.origins_of(reader).tolist()))
      reader.start_at(step - 1)
      written.note(step - 1, reader.state_dict())
    for origin in map(tuple, caches.origins_of(reader).tolist()):
      expected[origin].add(step)
  written.note(12, reader.state_dict())
  sizes = [len(cache) for cache in cfg.open_caches()]
  found = {
      sighting.origin: set(sighting.steps)
      for sighting in sample_steps.SampleSteps(
          ledger.read_anchors(tmp_path), reader.phases, num_records=sizes
      ).find(
          sample_steps.Wanted(source=source, number=number)
          for source, size in enumerate(sizes)
          for number in range(size)
      )
  }
  assert passed - expected.keys()
  assert found == expected


def test_a_window_is_found_for_every_position():
  for records in (7, 100, 101, 333):
    for count in (1, 2, 3, 7):
      division = cached_windows.Division(
          epoch_records=records, epoch_windows=count
      )
      for number in range(2 * count):
        start, size = division.span(number)
        assert {
            division.window_of(place) for place in range(start, start + size)
        } == {number}


def test_names_of_documents_are_read_as_they_are_printed():
  document = exclusions.Document(task='a:b', shard=3, number=12)
  assert exclusions._parse(str(document), tasks=['a:b', 'c'], place='') == (
      document
  )


def test_a_step_that_was_not_trained_is_refused(run):
  cfg, anchors, _, _ = run
  told = samples.RunSamples(
      cfg, anchors, feature_converter_cls=caches.ENCODER_DECODER, last_step=7
  )
  with pytest.raises(ValueError, match='step 8 was not trained: expected 1 to'):
    list(told.lines_of_step(8, with_text=False))


def test_steps_are_not_told_by_another_list_of_exclusions(run):
  cfg, anchors, _, _ = run
  other = dataclasses.replace(
      cfg, exclude_from_step={16: ['two:0:2', 'one:1:1']}
  )
  told = samples.RunSamples(
      other, anchors, feature_converter_cls=caches.ENCODER_DECODER
  )
  for step in (1, 17):
    with pytest.raises(ValueError, match='what was changed at steps before'):
      list(told.lines_of_step(step, with_text=False))


@pytest.mark.parametrize('objective', [objectives.span_corruption, _MERGED])
def test_a_part_of_a_record_is_found_in_the_steps_that_had_that_part(
    objective, tmp_path
):
  numbers = np.random.default_rng(0)
  sizes = numbers.integers(20, 400, 7)
  ends = 300 + np.cumsum(sizes)  # no token stands twice
  documents = [
      np.arange(end - size, end, dtype=np.int32)
      for end, size in zip(ends, sizes, strict=True)
  ]
  caches.write(tmp_path, documents, num_shards=2)
  cfg = caches.config(
      tmp_path, objective=objective, window_tokens=1024, batch_size=3
  )
  reader = caches.reader(cfg)
  written = ledger.SampleLedger(tmp_path, batch_size=3)
  seen = collections.defaultdict(set)
  for step in range(1, 21):
    written.note(step - 1, reader.state_dict())
    examples = [each for row in reader.examples() for each in row]
    parts = [tokens for each in examples for tokens in each.values()]
    for token in np.concatenate(parts).tolist():
      seen[token].add(step)
    next(reader)
  written.note(20, reader.state_dict())
  (cache,) = cfg.open_caches()
  steps = sample_steps.SampleSteps(
      ledger.read_anchors(tmp_path), reader.phases, num_records=[len(cache)]
  )
  records = cache.read(np.arange(len(cache))).features['targets'].split()
  for number, tokens in enumerate(records):
    for place in {0, tokens.size // 2, tokens.size - 1}:
      wanted = sample_steps.Wanted(
          source=0, number=number, part=(place, place + 1)
      )
      found = {
          step for sight in steps.find([wanted]) for step in sight.steps
      }
      assert found == seen[int(tokens[place])], (number, place)
  assert max(map(len, seen.values())) > 1  # several epochs


def _told_of_pairs(tmp_path, pairs, converter, **changes) -> samples.RunSamples:
  encode = caches.VOCABULARY.encode
  caches.write(
      tmp_path,
      [
          {
              name: np.array([*encode(text), 1], np.int32)
              for name, text in zip(('inputs', 'targets'), pair, strict=True)
          }
          for pair in pairs
      ],
  )
  cfg = caches.pairs_config(tmp_path, batch_size=2, **changes)
  reader = caches.reader(cfg, feature_converter_cls=converter)
  written = ledger.SampleLedger(tmp_path, batch_size=2)
  for step in range(4):
    written.note(step, reader.state_dict())
    next(reader)
  written.note(4, reader.state_dict())
  return samples.RunSamples(
      cfg, ledger.read_anchors(tmp_path), feature_converter_cls=converter
  )


@pytest.mark.parametrize('pack', [True, False])
@pytest.mark.parametrize('converter', [caches.DECODER, caches.ENCODER_DECODER])
def test_pairs_are_told_with_input_and_target_in_every_layout(
    converter, pack, tmp_path
):
  told = _told_of_pairs(
      tmp_path, [(f'ask {n}?', f'say {n}') for n in range(9)], converter,
      pack=pack,
  )  # fmt: skip
  lines = list(told.lines_of_step(2, with_text=True))
  asked = [line[-5] for line in lines if line.startswith("  inputs: 'ask ")]
  pairs = [
      (f"  inputs: 'ask {line[-6]}?</s>'", f"  targets: 'say {line[-6]}</s>'")
      for line in lines
      if line.startswith('  targets')
  ]
  assert asked and len(asked) == len(pairs)
  for pair in pairs:
    assert set(pair) <= set(lines)


def test_a_text_that_lengths_cut_off_was_in_no_step(tmp_path):
  told = _told_of_pairs(
      tmp_path, [('x' * 60 + 'needle', 'hay')] * 9, caches.ENCODER_DECODER,
      task_feature_lengths={'inputs': 40, 'targets': 40},
  )  # fmt: skip
  assert list(told.lines_of_text('needle', most=9)) == [
      "9 records have 'needle'", 'no step up to 4 had any of it'
  ]
  assert list(told.lines_of_text('xxx', most=9))[1].startswith('steps ')
