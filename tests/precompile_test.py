# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Compiling alone leaves the step's programs and trains nothing."""

import pytest

from t5wild import precompile
from t5wild.data import synthetic
from t5wild.partitioning import partitioner
from t5wild.partitioning import rules
from tests.trainer import conftest as small_runs


@pytest.mark.slow
def test_the_step_is_written_lowered_and_compiled(tmp_path):
  memory = precompile.precompile(
      model=small_runs.make_model(config_changes=small_runs.SMALL),
      train_dataset_cfg=synthetic.SyntheticConfig(
          batch_size=8,
          task_feature_lengths={'inputs': 8, 'targets': 8},
          vocab_size=384,
      ),
      partitioner=partitioner.PjitPartitioner(
          num_partitions=1,
          logical_axis_rules=rules.standard_logical_axis_rules(),
      ),
      model_dir=str(tmp_path),
      random_seed=0,
      verify_matching_vocabs_fn=None,
  )
  assert memory['arguments'] > 0
  assert 'stablehlo' in (tmp_path / 'lowered_step.txt').read_text()
  assert 'HloModule' in (tmp_path / 'compiled_step.txt').read_text()
  assert 'parameters: ' in (tmp_path / 'model-info.txt').read_text()
