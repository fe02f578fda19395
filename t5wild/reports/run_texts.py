# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a run left in words: configuration, model, samples, environment."""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses
import json
import math
import re
from typing import Any

from t5wild import run_dir as run_dir_lib
from t5wild.reports import gin_text
from t5wild.reports import held_out
from t5wild.reports import history as history_lib
from t5wild.reports import programs
from t5wild.vitals import gin_statements
from t5wild.vitals import redaction

_TOTAL_STEPS = ('train_script.train.total_steps', 'TRAIN_STEPS')
_MESH = re.compile(r'mesh: (.+)')
_PARAMETERS = re.compile(r'parameters: ([\d,]+)')
_PARAMETER = re.compile(r'target/(\S+)\s+([\d,]+)\s')
_MAX_TEXT = 2000  # characters of one sample
_MAX_SAMPLE_STEPS = 12


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sample:
  """What the model wrote for one example: label -> text."""

  step: int
  texts: dict[str, str]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Texts:
  """What the report shows beside numbers; secrets are taken out.

  Attributes:
    settings: the configuration.
    total_steps: where training ends; None = not known.
    mesh: as model-info.txt has it; '' = not known.
    num_devices: of the mesh; None = not known.
    num_parameters: None = not known.
    parameter_counts: by parameter path.
    samples: in order of steps.
    environment: names and values, flat.
    program: names and values of the compiled training step.
    data: names and values of the samples read, by their ledger.
    missing: what is not there.
  """

  settings: list[gin_text.Setting]
  total_steps: int | None
  mesh: str
  num_devices: int | None
  num_parameters: int | None
  parameter_counts: dict[str, int]
  samples: list[Sample]
  environment: dict[str, str]
  program: dict[str, str]
  data: dict[str, str]
  missing: list[str]


def read_texts(history: history_lib.History) -> Texts:
  """Reads what is there; what is absent or broken is told in `missing`."""
  run = run_dir_lib.RunDir(history.path)
  missing: list[str] = []
  operative = _text(run.operative_config_gin)
  given = _text(run.config_gin)
  if operative is None:
    missing.append('no operative_config.gin: the configuration is not known')
  elif given is None:
    missing.append('no config.gin: what differs from defaults is not known')
  info = _text(run.model_info) or ''
  if not info:
    missing.append('no model-info.txt: parameters and mesh are not known')
  samples = _samples(history)
  if not samples:
    missing.append('no samples of what the model writes were recorded')
  mesh = _MESH.search(info)
  parameters = _PARAMETERS.search(info)
  return Texts(
      settings=[
          dataclasses.replace(
              each, value=_without_secret(each.name, each.value)
          )
          for each in gin_text.settings(operative or '', given)
      ],
      total_steps=_total_steps(operative or ''),
      mesh=mesh.group(1) if mesh else '',
      num_devices=_num_devices(mesh.group(1)) if mesh else None,
      num_parameters=_whole(parameters.group(1)) if parameters else None,
      parameter_counts={
          path: _whole(count) for path, count in _PARAMETER.findall(info)
      },
      samples=_some(samples),
      environment=_environment(run, missing),
      program=programs.described_program(programs.read_program(run)),
      data=programs.read_samples(run),
      missing=missing,
  )


def read_total_steps(history: history_lib.History) -> int | None:
  """Where training ends by the configuration; None = not known."""
  run = run_dir_lib.RunDir(history.path)
  return _total_steps(_text(run.operative_config_gin) or '')


def _text(path: str) -> str | None:
  try:
    with open(path, encoding='utf-8', errors='replace') as file:
      return file.read()
  except OSError:
    return None


def _without_secret(name: str, value: str) -> str:
  """The value, judged together with its name."""
  head = f'{name} = '
  return redaction.redacted(head + value).removeprefix(head)


def _total_steps(operative: str) -> int | None:
  for name in _TOTAL_STEPS:
    value = gin_statements.resolved(operative, name)
    if value is not None and value.isdigit():
      return int(value)
  return None


def _num_devices(mesh: str) -> int | None:
  sizes = [int(number) for number in re.findall(r'\b\d+\b', mesh)]
  return math.prod(sizes) if sizes else None


def _whole(text: str) -> int:
  return int(text.replace(',', ''))


def _samples(history: history_lib.History) -> list[Sample]:
  """Samples of held_out.jsonl and of event files' texts."""
  found = []
  for row in held_out.read_rows(history.path):
    for example in row.get('examples') or []:
      if isinstance(example, dict):
        found.append(_sample(row['step'], example))
  for name, texts in history.texts.items():
    if name.startswith(('inference_eval/', 'eval/')) or '/inference' in name:
      found += [_sample(step, {name: text}) for step, text in texts]
  return sorted(found, key=lambda sample: sample.step)


def _sample(step: int, texts: dict[str, Any]) -> Sample:
  return Sample(
      step=step,
      texts={
          str(label): redaction.redacted(str(text)[:_MAX_TEXT])
          for label, text in texts.items()
      },
  )


def _some(samples: list[Sample]) -> list[Sample]:
  """Those of a few steps: the first, the last, and evenly between them."""
  steps = sorted({sample.step for sample in samples})
  if len(steps) > _MAX_SAMPLE_STEPS:
    last = len(steps) - 1
    chosen = {
        steps[round(i * last / (_MAX_SAMPLE_STEPS - 1))]
        for i in range(_MAX_SAMPLE_STEPS)
    }
  else:
    chosen = set(steps)
  return [sample for sample in samples if sample.step in chosen]


def _environment(
    run: run_dir_lib.RunDir, missing: list[str]
) -> dict[str, str]:
  text = _text(run.environment_json)
  if text is None:
    missing.append(
        'no environment.json: hardware, versions and host are not known'
    )
    return {}
  try:
    return dict(_flat(json.loads(text), ''))
  except ValueError:
    missing.append('environment.json is torn or no JSON')
    return {}


def _flat(value: Any, name: str) -> Iterator[tuple[str, str]]:
  if isinstance(value, dict):
    for key, inner in value.items():
      yield from _flat(inner, f'{name}.{key}' if name else str(key))
  elif isinstance(value, list):
    yield name, ', '.join(map(str, value))
  else:
    yield name, _without_secret(name, str(value))
