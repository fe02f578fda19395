# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild precompile --topology=...`: flags, table, files, exit code."""

from collections.abc import Sequence
import pathlib
import sys

from absl import flags

from t5wild import command_line
from t5wild import exit_codes
from t5wild.planner import compile as compile_lib
from t5wild.planner import environment
from t5wild.planner import flag_values
from t5wild.planner import report
from t5wild.planner import topologies

PROGRAMS = ('train', 'eval', 'decode')


def define_flags() -> None:
  """Defines the command line, once, with T5X's names."""
  command_line.define_flags()
  if 'topology' in flags.FLAGS:
    return
  flags.DEFINE_string(
      'topology',
      None,
      'Compile for this machine, which need not be here: h100:32x8 (hosts x '
      'GPUs), h200:, a100:, v4:2x2x2, v5e:16x16, v5p:4x4x4, v6e:8x8 (a third '
      'part, as in v5e:16x16:2, is the number of slices), cpu:256.',
  )
  flags.DEFINE_list(
      'programs', ['train'], 'With --topology: of train, eval, decode.'
  )
  flags.DEFINE_string(
      'output_dir',
      None,
      'With --topology: where JSON, picture and program are written; else '
      'MODEL_DIR/precompile.',
  )
  flags.DEFINE_float(
      'compile_timeout_seconds', None, 'With --topology: end it after these.'
  )


def help_text() -> str:
  """The text of `t5wild precompile --help`."""
  return (
      'usage: t5wild precompile --gin_file=FILE ... [--gin.NAME=VALUE ...] '
      '[--topology=h100:32x8]\n\n'
      'Compiles the training step that the gin files describe, and trains '
      'nothing.\nWith --topology it is compiled for that machine, in a process '
      'of its own: bytes\nof one device, collectives, kernels. Exits with '
      f'{exit_codes.DOES_NOT_FIT.code} where it does not fit.\n\n'
      + command_line.flags_help(__name__)
  )


def check_flags() -> None:
  """Raises ValueError where flags do not go together."""
  values = flags.FLAGS
  if values.topology is None:
    own = ('programs', 'output_dir', 'compile_timeout_seconds')
    given = [f'--{name}' for name in own if values[name].present]
    if given:
      raise ValueError(
          f'{given} are given without --topology.\nExpected them beside it: '
          'without it the step is compiled for the devices here.\nAdd '
          '--topology, or leave them out.'
      )
    return
  topologies.parse(values.topology)
  unknown = [p for p in values.programs if p not in PROGRAMS]
  if unknown or not values.programs:
    raise ValueError(
        f'--programs={",".join(values.programs)} names {unknown}.\nExpected '
        f'one or more of {PROGRAMS}.\nWrite for example --programs=train,eval.'
    )
  flag_values.check_above_zero(
      'compile_timeout_seconds', values.compile_timeout_seconds, example='600'
  )
  flag_values.check_folder('output_dir', values.output_dir)
  if not values.gin_file:
    raise ValueError(
        '--gin_file is missing: expected a recipe, at least. Give one of '
        'yours, or one of ours, such as --gin_file=recipes/quickstart.gin.'
    )


def compile_and_tell(arguments: Sequence[str]) -> int:
  """Compiles for --topology and prints what it takes; returns how to exit.

  Args:
    arguments: the flags that name the recipe.
  """
  values = flags.FLAGS
  topology = topologies.parse(values.topology)
  try:
    compiled = compile_lib.compile_recipe(compile_lib.Request(
        arguments=arguments,
        topology=topology,
        programs=values.programs,
        timeout_seconds=values.compile_timeout_seconds,
    ))
  except (compile_lib.RefusedError, environment.MissingPluginError) as error:
    print(error, file=sys.stderr)  # noqa: T201 -- the product
    return exit_codes.BAD_CONFIG.code
  except compile_lib.CompilerEndedError as error:
    print(error, file=sys.stderr)  # noqa: T201 -- the product
    return exit_codes.FAILED.code
  verdicts = report.judge(compiled, topology)
  print(report.text(compiled, verdicts, topology))  # noqa: T201 -- the product
  folder = _folder(values.output_dir, compiled.recipe['model_dir'])
  try:
    paths = report.write(folder, compiled, verdicts, topology)
  except OSError as error:
    print(  # noqa: T201 -- the product
        f'\nThe files cannot be written to {folder}: {error}.\nExpected a '
        'folder that may be written.\nGive another one by --output_dir.',
        file=sys.stderr,
    )
    return exit_codes.DISK_FULL.code
  print(f'\nwritten: {", ".join(map(str, paths))}')  # noqa: T201 -- the product
  fits = all(verdict.fits for verdict in verdicts)
  return (exit_codes.DONE if fits else exit_codes.DOES_NOT_FIT).code


def _folder(output_dir: str | None, model_dir: str | None) -> pathlib.Path:
  """Where files go; a bucket need not be reached from where one plans."""
  if output_dir:
    return pathlib.Path(output_dir)
  is_local = model_dir and '://' not in model_dir
  return pathlib.Path(model_dir if is_local else '.', 'precompile')
