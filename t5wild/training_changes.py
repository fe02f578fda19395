# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Tells what of configuration and environment changes as a run is resumed.

People change values on purpose, so nothing is refused; but the files of both
are written anew, and would hide what the steps before had.
"""

from collections.abc import Iterator, Mapping
import contextlib
import json
from typing import Any

from absl import logging
from etils import epath

from t5wild import run_dir as run_dir_lib
from t5wild.vitals import environment
from t5wild.vitals import gin_statements
from t5wild.vitals import redaction
from t5wild.vitals import run_events

_NOTHING = '(not set)'
_MOST_NAMED = 20
_MOST_CHARACTERS = 200  # of one value


@contextlib.contextmanager
def told(run_dir: run_dir_lib.RunDir, *, step: int) -> Iterator[None]:
  """Compares the configuration before and after a block that writes it anew.

  Where they differ, `config/changed` in the run's events names the bindings,
  and the former files stay, by the step from which on they no longer hold.

  Args:
    run_dir: The run's.
    step: Where it goes on.
  """
  before = _read(run_dir)
  kept = _keep(run_dir, before, step=step)
  yield
  changes = differences(before, _read(run_dir))
  is_known = any(text.strip() for text in before.values())
  if is_known and not changes:
    for path in kept:
      path.unlink(missing_ok=True)
    return
  events = run_events.RunEvents(run_dir.path, prefix='config')
  with contextlib.closing(events):
    if not is_known:
      events.add(
          'unknown',
          step=step,
          value=1.0,
          text=f'{run_dir.operative_config_gin} and config.gin are gone or '
          f'empty: nobody can tell whether from step {step} on the run has the '
          'configuration that it had before',
      )
      return
    events.add(
        'changed',
        step=step,
        value=float(len(changes)),
        text=f'from step {step} on the run has another configuration than '
        f'before: {_in_words(changes)}. The former is '
        f'{run_dir.operative_config_before(step)}',
    )


@contextlib.contextmanager
def environment_told(
    run_dir: run_dir_lib.RunDir, *, step: int
) -> Iterator[None]:
  """The same of `environment.json`: `environment/changed` names what differs.

  Versions, commits, numbers of devices, JAX's and XLA's settings: another
  generator of random numbers is a variable of a shell.

  Args:
    run_dir: The run's.
    step: Where it goes on.
  """
  before = _environment(run_dir)
  former = epath.Path(run_dir.environment_before(step))
  is_new = bool(before) and _write_once(former, json.dumps(before, indent=2))
  yield
  changes = environment_differences(before, _environment(run_dir))
  if not changes:
    if is_new:
      former.unlink(missing_ok=True)
    return
  events = run_events.RunEvents(run_dir.path, prefix='environment')
  with contextlib.closing(events):
    events.add(
        'changed',
        step=step,
        value=float(len(changes)),
        text=f'from step {step} on the run is computed in another environment '
        f'than before: {_in_words(changes)}. The former is {former}',
    )


def environment_differences(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> dict[str, tuple[str, str]]:
  """Returns what of two `environment.json` may differ in numbers, by name.

  Of a former file without some part nothing of that part is a difference.
  """
  old, new = (environment.what_computes(found) for found in (before, after))
  found = {}
  for name in sorted(old.keys() | new.keys()):
    pair = old.get(name, _NOTHING), new.get(name, _NOTHING)
    if pair[0] != pair[1] and name.partition('.')[0] in before:
      found[name] = pair
  return found


def differences(
    before: Mapping[str, str], after: Mapping[str, str]
) -> dict[str, tuple[str, str]]:
  """Returns what of two configurations differs: name to (old, new).

  Names and defaults of the operative configuration; of what is in one of them
  alone only what its recipe set, since another version has other defaults.
  Paths that moved with MODEL_DIR are the same. Where the former operative
  configuration is gone, what the recipes set is compared.

  Args:
    before: Text of `config.gin` and `operative_config.gin`, by these names.
    after: The same, of now.
  """
  old, new = _values(before), _values(after)
  old_set, new_set = _set_by_recipe(before), _set_by_recipe(after)
  places = _model_dir(old), _model_dir(new)
  if not old:
    old, new = _given(before), _given(after)
  if not old:  # nothing is known of what was
    return {}
  found = {}
  for name in sorted(old.keys() | new.keys()):
    pair = old.get(name, _NOTHING), new.get(name, _NOTHING)
    is_in_both = name in old and name in new
    if not is_in_both and name not in old_set | new_set:
      continue
    if pair[0] != pair[1] and _moved(pair[0], *places) != pair[1]:
      found[name] = pair
  return found


def _values(texts: Mapping[str, str]) -> dict[str, str]:
  return dict(gin_statements.statements(texts.get('operative_config.gin', '')))


def _given(texts: Mapping[str, str]) -> dict[str, str]:
  return dict(gin_statements.statements(texts.get('config.gin', '')))


def _set_by_recipe(texts: Mapping[str, str]) -> set[str]:
  return set(_given(texts))


def _model_dir(values: Mapping[str, str]) -> str:
  for name, value in values.items():
    is_place = name == 'MODEL_DIR' or name.endswith('train.model_dir')
    if is_place and value[0] in '\'"':  # no macro
      return value[1:-1]
  return ''


def _moved(value: str, old_place: str, new_place: str) -> str:
  return value.replace(old_place, new_place) if old_place else value


def _in_words(changes: Mapping[str, tuple[str, str]]) -> str:
  parts = [
      f'{_safe(name, old)} -> {_safe(name, new).removeprefix(f"{name} = ")}'
      for name, (old, new) in list(changes.items())[:_MOST_NAMED]
  ]
  if len(changes) > _MOST_NAMED:
    parts.append(f'and {len(changes) - _MOST_NAMED} more')
  return '; '.join(parts)


def _safe(name: str, value: str) -> str:
  """A binding without secrets, judged together with its name."""
  text = redaction.redacted(f'{name} = {value}')
  end = len(name) + _MOST_CHARACTERS
  return text if len(text) <= end else f'{text[:end]} ...'


def _read(run_dir: run_dir_lib.RunDir) -> dict[str, str]:
  texts = {}
  for path in (run_dir.config_gin, run_dir.operative_config_gin):
    file = epath.Path(path)
    try:
      texts[file.name] = file.read_text()
    except (OSError, ValueError):  # none yet, or not text
      continue
  return texts


def _keep(
    run_dir: run_dir_lib.RunDir, texts: Mapping[str, str], *, step: int
) -> list[epath.Path]:
  """Copies the files before they are written anew; returns the new copies.

  The first copy of a step stays: what came up to it was made with that one.
  """
  copies = {
      'config.gin': run_dir.config_before(step),
      'operative_config.gin': run_dir.operative_config_before(step),
  }
  paths = {name: epath.Path(copies[name]) for name in texts}
  return [
      path for name, path in paths.items() if _write_once(path, texts[name])
  ]


def _write_once(path: epath.Path, text: str) -> bool:
  """Writes what is not there yet; whether it did."""
  try:
    if not path.exists():
      path.write_text(text)
      return True
  except OSError as error:
    logging.warning('%s is not kept: %s', path, error)
  return False


def _environment(run_dir: run_dir_lib.RunDir) -> dict[str, Any]:
  try:
    found = json.loads(epath.Path(run_dir.environment_json).read_text())
  except (OSError, ValueError):  # none yet, or half of one
    return {}
  return found if isinstance(found, dict) else {}
