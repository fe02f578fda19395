# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Has a recipe compiled for a machine that need not be here, in a process.

No JAX: a compiler that aborts takes down its own process only, and what it said
at last is told.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from typing import Any

from t5wild import exit_codes
from t5wild.planner import environment
from t5wild.planner import topologies

_MODULE = 't5wild.planner.worker'
_LAST_LINES = 20


class CompilerEndedError(RuntimeError):
  """The compiler's process ended before it had compiled."""


class RefusedError(ValueError):
  """The recipe was refused; the message is the user's."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Request:
  """What to compile.

  Attributes:
    arguments: flags that name the recipe: --gin_file, --gin.NAME=VALUE, ...
    topology: for which machine.
    programs: of `for_topology.PROGRAMS`.
    timeout_seconds: after which the compiler is ended; None waits.
    timeout_flag: by which the user says so.
  """

  arguments: Sequence[str]
  topology: topologies.Topology
  programs: Sequence[str] = ('train',)
  timeout_seconds: float | None = None
  timeout_flag: str = 'compile_timeout_seconds'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Compiled:
  """What was found.

  Attributes:
    recipe: facts of the recipe: mesh, bytes by kind, model operations, ...
    programs: program -> memory, collectives, kernels, seconds.
    texts: program -> the compiled program as text, where it compiled.
  """

  recipe: Mapping[str, Any]
  programs: Mapping[str, Mapping[str, Any]]
  texts: Mapping[str, str]


def compile_recipe(
    request: Request, *, inherited: Mapping[str, str] | None = None
) -> Compiled:
  """Compiles in a process of its own.

  Args:
    request: what.
    inherited: the environment to start from; None: this process's.

  Raises:
    environment.MissingPluginError: the compiler is not installed.
    RefusedError: the recipe is wrong, or the mesh does not fit.
    CompilerEndedError: the compiler aborted or took too long.
  """
  environment.check_plugin(request.topology.platform)
  inherited = os.environ if inherited is None else inherited
  with tempfile.TemporaryDirectory(prefix='t5wild-compile-') as folder:
    out = pathlib.Path(folder)
    job = out / 'job.json'
    job.write_text(json.dumps({
        'arguments': list(request.arguments),
        'topology': request.topology.name,
        'programs': list(request.programs),
        'out': folder,
        'parent': os.getpid(),
    }))
    _run(job, request, environment.variables(request.topology, inherited))
    return Compiled(
        recipe=json.loads((out / 'recipe.json').read_text()),
        programs={
            name: json.loads((out / f'{name}.json').read_text())
            for name in request.programs
        },
        texts={
            name: (out / f'{name}.hlo.txt').read_text()
            for name in request.programs
            if (out / f'{name}.hlo.txt').exists()
        },
    )


def describe_splits(
    arguments: Sequence[str], topology: topologies.Topology
) -> Mapping[str, Any]:
  """The recipe's facts and the bytes of each split; nothing is compiled.

  Virtual CPUs stand in for the devices, so that no other compiler is needed.

  Raises:
    RefusedError: the recipe is wrong.
    CompilerEndedError: the process ended.
  """
  cpus = topologies.parse(f'cpu:{topology.num_devices}')
  request = Request(arguments=arguments, topology=cpus)
  with tempfile.TemporaryDirectory(prefix='t5wild-plan-') as folder:
    job = pathlib.Path(folder, 'job.json')
    job.write_text(json.dumps({
        'arguments': list(arguments),
        'topology': cpus.name,
        'plan_for': topology.name,
        'out': folder,
        'parent': os.getpid(),
    }))
    _run(job, request, environment.variables(cpus, os.environ))
    return json.loads(pathlib.Path(folder, 'splits.json').read_text())


def _run(
    job: pathlib.Path, request: Request, variables: Mapping[str, str]
) -> None:
  # -P and the path of this process: a queue.py in the working directory is not
  # to stand in for Python's, and a recipe finds what it finds here.
  command = [sys.executable, '-P', '-m', _MODULE, str(job)]
  path = os.pathsep.join(filter(None, sys.path))
  # A log in a file, not a pipe: it may be long, and outlives the process.
  log = job.with_name('log.txt')
  with log.open('wb') as stream:
    process = subprocess.Popen(
        command, env={**variables, 'PYTHONPATH': path}, stdout=stream,
        stderr=stream, stdin=subprocess.DEVNULL, start_new_session=True,
    )
    try:
      code = process.wait(timeout=request.timeout_seconds)
    except BaseException as error:
      # Ctrl-C too: a compiler that nobody waits for would go on for minutes.
      os.killpg(process.pid, signal.SIGKILL)
      process.wait()
      if not isinstance(error, subprocess.TimeoutExpired):
        raise
      raise CompilerEndedError(
          f'The compiler for {request.topology.name} was ended after '
          f'{request.timeout_seconds:.0f} s.\n'
          'Expected it to be done by then.\n'
          f'Raise --{request.timeout_flag}, set scan_layers = True, or choose '
          'a smaller topology.'
      ) from None
  if code == exit_codes.DONE.code:
    return
  text = log.read_text(errors='replace')
  if code == exit_codes.BAD_CONFIG.code:
    raise RefusedError(_without_log_lines(text))
  raise CompilerEndedError(
      f'The compiler for {request.topology.name} ended by itself '
      f'({exit_codes.explain(code).meaning}). Its last lines:\n'
      + '\n'.join(text.splitlines()[-_LAST_LINES:])
      + '\nExpected a compiled program; this process is unharmed.\n'
      'Look for a flag in XLA_FLAGS that this compiler does not know, or try '
      'another topology, mesh or remat policy.'
  )


def _without_log_lines(text: str) -> str:
  """The complaint without the lines that libraries log before it."""
  kept = [
      line
      for line in text.splitlines()
      if not _is_log_line(line) and line.strip()
  ]
  return '\n'.join(kept)


def _is_log_line(line: str) -> bool:
  """absl's format: a letter, date, time, thread, file."""
  head = line.split(' ', 1)[0]
  is_stamp = len(head) == 5 and head[0] in 'IWEF' and head[1:].isdigit()
  return is_stamp or line.startswith((
      'WARNING: All log messages before absl',
      'Failed to find host bounds for accelerator type',
  ))
