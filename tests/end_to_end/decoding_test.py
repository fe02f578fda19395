# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A run decodes its task and computes the task's metrics while it trains."""

import json

import pytest

from t5wild.vitals import records
from tests import multiprocess
from tests.end_to_end import copy_task
from tests.end_to_end import runs

pytestmark = [pytest.mark.slow, pytest.mark.multiprocess]

_RECIPE = runs.RECIPE.with_name('decoding.gin')
_PREFIX = 'inference_eval/t5wild_copy/'


def _metrics(folder) -> dict[tuple[str, int], float]:
  return {
      (record.name.removeprefix(_PREFIX), record.step): record.value
      for record in records.read_records(folder / 'metrics.jsonl')
      if record.name.startswith(_PREFIX) and '/timing/' not in record.name
  }


@pytest.fixture(scope='module')
def one_process(tmp_path_factory):
  folder = tmp_path_factory.mktemp('one_process') / 'run'
  assert runs.train(folder, recipe=_RECIPE, num_devices=4) == 0
  return folder


def test_metrics_and_predictions_of_each_evaluation_are_left(one_process):
  metrics = _metrics(one_process)
  assert {step for _, step in metrics} == {6, 12}
  assert metrics['num_predictions', 12] == copy_task.NUM_EXAMPLES['validation']
  assert 0 <= metrics['character_accuracy', 12] <= 1
  # Decoding is what the metric says: recomputed from what was written.
  lines = one_process / 'inference_eval' / 't5wild_copy-000012.jsonl'
  results = [json.loads(line) for line in lines.open()]
  again = copy_task.character_accuracy(
      [result['target'] for result in results],
      [result['prediction'] for result in results],
  )
  assert again['character_accuracy'] == metrics['character_accuracy', 12]
  assert list((one_process / 'inference_eval' / 't5wild_copy').iterdir())


def test_two_processes_have_the_metrics_of_one(one_process, tmp_path):
  folder = tmp_path / 'run'
  multiprocess.run_processes(
      runs.arguments(folder, recipe=_RECIPE),
      num_processes=2,
      devices_per_process=2,
      timeout=runs.TIMEOUT_SECONDS,
  )
  assert _metrics(folder) == pytest.approx(_metrics(one_process), rel=1e-5)
