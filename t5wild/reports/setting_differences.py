# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What differs between runs before their first step, most telling first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import re

from t5wild.reports import gin_text
from t5wild.reports import run_texts

# A kind, and names that are of it. The first that matches counts; the order is
# that of what explains a different loss best.
_KINDS = (
    ('place', r'.*model_dir|.*MODEL_DIR|.*output_dir'),
    ('seed', r'(?i).*seed.*'),
    ('data', r'.*(data\.|DatasetConfig|MIXTURE_OR_TASK|TASK_FEATURE|objectives|'
             r'text_task|BATCH_SIZE|batch_size|TEXT|VOCABULARY|Vocabulary|'
             r'SHUFFLE|USE_CACHED).*'),
    ('length', r'.*(total_steps|TRAIN_STEPS|steps_per_cycle).*'),
    ('precision', r'.*(dtype|float32_|precision).*'),
    ('optimizer', r'.*(optimizers|adafactor|optax|learning_rate|OPTIMIZER|'
                  r'LABEL_SMOOTHING|Z_LOSS|z_loss|DROPOUT|dropout|LOSS_NORM).*'),
    ('parallelism', r'.*(partitioning\.|microbatch|mesh).*'),
    ('model', r'.*(network\.|models\.|MODEL\b).*'),
    ('watching', r'.*(stats_period|eval_period|eval_steps|checkpoints\.|'
                 r'profil|watchdog|actions|held_out|weight_metrics).*'),
)  # fmt: skip
# Of the worth of telling: what changes the mathematics comes first.
ORDER = ('model', 'data', 'optimizer', 'precision', 'seed', 'length', 'setting',
         'code', 'hardware', 'parallelism', 'package', 'variable', 'program',
         'watching', 'place')  # fmt: skip
# These leave the numbers as they are.
HARMLESS = ('watching', 'place')
# Of no difference these are the cause: programs follow from the others.
NO_CAUSES = (*HARMLESS, 'program')
_ENVIRONMENT = (
    ('t5wild', 'code'), ('code', 'code'), ('packages.', 'package'),
    ('devices.', 'hardware'), ('processes', 'parallelism'),
    ('variables.', 'variable'), ('python', 'package'), ('system', 'package'),
    ('host', 'place'), ('cores', 'place'),
)  # fmt: skip
ABSENT = '(not there)'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Difference:
  """One thing that is not the same in all runs.

  Attributes:
    kind: one of `ORDER`.
    name: what it is.
    values: of each run, in their order; `ABSENT` where a run has none.
  """

  kind: str
  name: str
  values: Sequence[str]


def differences(texts: Sequence[run_texts.Texts]) -> list[Difference]:
  """All differences of what runs were made of, and of what was compiled."""
  found = [
      *map(
          _of_new_code(texts),
          _of_maps([_settings(e.settings) for e in texts], _kind_of_setting),
      ),
      *map(
          _of_counts,
          _of_maps([each.environment for each in texts], _kind_of_environment),
      ),
      *_of_maps([_model(each) for each in texts], lambda name: (
          'parallelism' if name == 'mesh' else 'model')),
      *_of_maps([each.data for each in texts], _kind_of_samples),
      *_of_maps([each.program for each in texts], lambda name: 'program'),
  ]  # fmt: skip
  return sorted(found, key=lambda each: ORDER.index(each.kind))


def _of_counts(difference: Difference) -> Difference:
  """Calls it parallelism where only the number of the same devices differs."""
  if difference.kind == 'hardware' and ABSENT not in difference.values:
    return dataclasses.replace(difference, kind='parallelism')
  return difference


def _of_new_code(
    texts: Sequence[run_texts.Texts],
) -> Callable[[Difference], Difference]:
  """Calls it code where one run's code has an argument that another's lacks.

  That is an argument nobody set, since a recipe cannot set what is not there.
  """
  was_set = {s.name for each in texts for s in each.settings if s.is_set}

  def judged(difference: Difference) -> Difference:
    if ABSENT in difference.values and difference.name not in was_set:
      return dataclasses.replace(difference, kind='code')
    return difference

  return judged


def _settings(settings: Sequence[gin_text.Setting]) -> dict[str, str]:
  return {each.name: each.value for each in settings}


def _model(texts: run_texts.Texts) -> dict[str, str]:
  if not texts.mesh and texts.num_parameters is None:
    return {}
  return {
      'mesh': texts.mesh,
      'number of parameters': f'{texts.num_parameters or 0:,}',
  }


def _of_maps(maps: Sequence[Mapping[str, str]], kind_of) -> list[Difference]:
  """Differences of runs that have such a map; one without tells nothing."""
  if not all(maps):
    return []
  names = dict.fromkeys(name for each in maps for name in each)
  found = []
  for name in names:
    values = [each.get(name, ABSENT) for each in maps]
    if len(set(values)) > 1:
      found.append(Difference(kind=kind_of(name), name=name, values=values))
  return found


def _kind_of_setting(name: str) -> str:
  for kind, pattern in _KINDS:
    if re.fullmatch(pattern, name):
      return kind
  return 'setting'


def _kind_of_samples(name: str) -> str:
  return 'seed' if name.rsplit('.', 1)[-1] == 'seed' else 'data'


def _kind_of_environment(name: str) -> str:
  for head, kind in _ENVIRONMENT:
    if name == head or head.endswith('.') and name.startswith(head):
      return kind
  return 'variable'
