# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Which checkpoints an output directory has figures of, and of what evaluation.

`evaluation.json` says what is evaluated; `evaluation.jsonl` has a line for each
checkpoint and task that is done. Both are written by process 0.
"""

from collections.abc import Iterable, Mapping, Sequence
import json
import time
from typing import Any

from t5wild import run_dir

_IDENTITY = 'evaluation.json'
_RESULTS = 'evaluation.jsonl'
# Files by which a directory is known for that of a training run.
_OF_A_RUN = ('metrics.jsonl', 'operative_config.gin')


class AnotherEvaluationError(ValueError):
  """An output directory that holds something else."""


class UnwritableError(ValueError):
  """An output directory that nothing can be written into."""


class NotWrittenError(OSError):
  """One that could be written at first, and then no more."""


class EvaluationLog:
  """The finished checkpoints of one evaluation."""

  def __init__(self, output_dir: str, *, identity: Mapping[str, Any]):
    """Reads what is there; writes nothing.

    Args:
      output_dir: a folder or bucket path.
      identity: name -> JSON value of what tells this evaluation from others.

    Raises:
      AnotherEvaluationError: the directory holds another one, or a run.
      UnwritableError: it cannot be written, as far as looking tells.
    """
    from etils import epath  # bucket paths as well as folders

    self._folder = epath.Path(output_dir)
    self._identity = json.loads(json.dumps(identity))
    self._check_identity()
    self._results = self._read()
    why = run_dir.why_unwritable(output_dir)
    if why is not None:
      raise self.unwritable(why)

  def unwritable(self, why: object) -> UnwritableError:
    """The error for a directory that cannot be written."""
    return UnwritableError(
        f'{self._folder} cannot be written ({why}): expected a directory that '
        'this user may write, with space left. Choose another EVAL_OUTPUT_DIR '
        '(--output_dir).'
    )

  @property
  def path(self) -> str:
    """The file of lines."""
    return str(self._folder / _RESULTS)

  def is_done(self, identity: str, tasks: Sequence[str]) -> bool:
    """Whether all these tasks have their line of a checkpoint.

    Args:
      identity: from `inference_state.identity_of`.
      tasks: names.
    """
    done = {
        result['task']
        for result in self._results
        if result.get('identity', result['checkpoint']) == identity
    }
    return set(tasks) <= done

  def results(self) -> list[dict[str, Any]]:
    """The lines, oldest first."""
    return list(self._results)

  def open(self) -> None:
    """Makes the directory and says what it is for."""
    self._folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(self._identity, indent=1, sort_keys=True)
    self._write(_IDENTITY, text + '\n')

  def add(
      self,
      *,
      step: int,
      checkpoint: str,
      identity: str,
      metrics: Mapping[str, Mapping[str, float | str]],
  ) -> None:
    """Adds a line for each task; all of a checkpoint, or none, are there.

    Raises:
      NotWrittenError: in vain.
    """
    now = time.time()
    self._results += [
        {
            'step': step,
            'seconds': now,
            'host': 0,
            'checkpoint': checkpoint,
            'identity': identity,
            'task': task,
            'metrics': dict(values),
        }
        for task, values in metrics.items()
    ]
    lines = (json.dumps(result) + '\n' for result in self._results)
    try:
      self._write(_RESULTS, ''.join(lines))
    except OSError as error:
      raise NotWrittenError(
          f'{self.path} could not be written ({error}): expected space for it. '
          'Free some; the same command evaluates what has no line there.'
      ) from error

  def _write(self, name: str, text: str) -> None:
    """Writes a file that appears whole or not at all."""
    unfinished = self._folder / f'{name}.unfinished'
    try:
      unfinished.write_text(text)
    except OSError:
      unfinished.unlink(missing_ok=True)
      raise
    unfinished.replace(self._folder / name)

  def _check_identity(self) -> None:
    file = self._folder / _IDENTITY
    if not file.exists():
      self._check_is_no_run()
      return
    (there,) = self._parsed(file, [file.read_text()])
    names = sorted(there.keys() | self._identity.keys())
    different = [n for n in names if there.get(n) != self._identity.get(n)]
    if different:
      lines = [
          line
          for name in different
          for line in _both_sides(
              name, there.get(name), self._identity.get(name)
          )
      ]
      raise AnotherEvaluationError(
          f'{self._folder} holds another evaluation:\n'
          + '\n'.join(lines)
          + '\nExpected the same, so that its figures go together. Choose '
          'another EVAL_OUTPUT_DIR (--output_dir), or delete that one.'
      )

  def _check_is_no_run(self) -> None:
    found = [name for name in _OF_A_RUN if (self._folder / name).exists()]
    if found:
      raise AnotherEvaluationError(
          f'{self._folder} holds {found}, the files of a training run: '
          'expected a directory of evaluations alone, since config.gin and '
          'metrics.jsonl would be mixed up. Choose another EVAL_OUTPUT_DIR '
          f'(--output_dir), such as {self._folder}/eval.'
      )

  def _read(self) -> list[dict[str, Any]]:
    file = self._folder / _RESULTS
    if not file.exists():
      return []
    return self._parsed(file, filter(None, file.read_text().split('\n')))

  def _parsed(self, file: Any, texts: Iterable[str]) -> list[dict[str, Any]]:
    """The JSON objects of a file."""
    found = []
    for text in texts:
      try:
        found.append(dict(json.loads(text)))
      except (ValueError, TypeError):
        raise AnotherEvaluationError(
            f'{file} holds {text[:60]!r}: expected a JSON object, as an '
            'evaluation writes it. Mend or remove the file, or choose another '
            'EVAL_OUTPUT_DIR (--output_dir).'
        ) from None
    return found


def _both_sides(name: str, there: Any, now: Any) -> list[str]:
  """Two lines that differ; of lists only what one of them lacks."""
  if isinstance(there, list) and isinstance(now, list):
    there, now = (
        [x for x in there if x not in now], [x for x in now if x not in there]
    )  # fmt: skip
  return [f'  {name} there: {there}', f'  {name} now:   {now}']
