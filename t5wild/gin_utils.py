# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""gin for the binaries: T5X's flags, checked parsing, and what a run records.

Configurations are refused before anything is compiled: `gin_config/lint` says
what is refused and why. The small functions at the end are for use inside gin
files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import os
import pathlib
import sys
from typing import Any

from absl import app
from absl import flags
from absl import logging
import gin

from t5wild.gin_config import flags as gin_flags
from t5wild.gin_config import lint as lint_lib
from t5wild.gin_config import loading
from t5wild.gin_config import operative
from t5wild.gin_config import reader
from t5wild.gin_config import unmade

GinError = reader.GinError
gin_root = reader.gin_root
lint = lint_lib.lint
bindings_behind = operative.bindings_behind
is_bound = operative.is_bound
operative_config_str = operative.operative_config_str
explain_missing_arguments = unmade.explain
rewrite_gin_args = gin_flags.rewrite_gin_args

_CONFIG_TEXT_NAME = 'config'


def define_gin_flags() -> None:
  """Defines T5X's gin flags, once per process."""
  if 'gin_file' in flags.FLAGS:
    return
  flags.DEFINE_multi_string(
      'gin_file',
      None,
      'A gin file. May be given several times: later files override earlier '
      'ones. Looked for in the working directory, in --gin_search_paths, then '
      "among t5wild's own (--gin_file=recipes/quickstart.gin).",
  )
  flags.DEFINE_multi_string(
      'gin_bindings',
      [],
      'One gin binding, the same as --gin.NAME=VALUE. Overrides every file.',
  )
  flags.DEFINE_list(
      'gin_search_paths', ['.'], 'Comma-separated folders of gin files.'
  )


def parse_gin_flags(
    gin_search_paths: Sequence[str],
    gin_files: Sequence[str],
    gin_bindings: Sequence[str],
    skip_unknown: bool | Sequence[str] = False,
    finalize_config: bool = True,
) -> None:
  """Checks gin files and bindings, then makes them gin's configuration.

  Args:
    gin_search_paths: folders for gin files, after the working directory.
    gin_files: read in order; later ones override earlier ones.
    gin_bindings: `NAME = value` each; they override every file. A value that
      is no gin literal is taken as a string.
    skip_unknown: names that may be unknown: all (True), none, or a list.
    finalize_config: whether to lock the configuration afterwards.

  Raises:
    GinError: everything that is wrong, in one message, with files and lines.
  """
  files, bindings, report = lint_gin_flags(
      gin_search_paths, gin_files, gin_bindings, skip_unknown
  )
  for hint in report.hints:
    logging.warning('%s', hint)
  report.raise_errors()
  loading.load(files, report, skip_unknown)
  for binding in bindings:
    text = gin_flags.to_gin_text(binding, report.flag_names)
    gin.parse_config(
        reader.named_text(text, name=reader.COMMAND_LINE), skip_unknown
    )
  if finalize_config:
    gin.finalize()
  logging.debug('gin configuration:\n%s', get_gin_config_str())


def lint_gin_flags(
    gin_search_paths: Sequence[str],
    gin_files: Sequence[str],
    gin_bindings: Sequence[str],
    skip_unknown: bool | Sequence[str] = False,
) -> tuple[list[reader.GinFile], list[reader.Binding], lint_lib.Report]:
  """Checks gin files and bindings, and changes nothing in gin.

  Takes the first arguments of `parse_gin_flags`.

  Returns:
    The files in gin's order, the bindings after them, and what was found.

  Raises:
    GinError: A file is not there or cannot be read.
  """
  files = [
      reader.read_file(path, search_paths=gin_search_paths)
      for path in gin_files or ()
  ]
  bindings = []
  for text in map(gin_flags.quoted, gin_bindings or ()):
    from_flag = reader.read_text(text, search_paths=gin_search_paths)
    if all(isinstance(s, reader.Binding) for s in from_flag.statements):
      bindings.extend(from_flag.statements)
    else:  # an import or an include
      files.append(from_flag)
  report = lint_lib.lint(files, bindings, skip_unknown=skip_unknown)
  return files, bindings, report


def unset_macros(
    gin_search_paths: Sequence[str],
    gin_files: Sequence[str],
    gin_bindings: Sequence[str],
    *,
    names: Sequence[str],
) -> list[str]:
  """Those of some macros that a recipe requires, and that nothing sets.

  Takes the first arguments of `parse_gin_flags`, and changes nothing in gin.
  """
  _, _, report = lint_gin_flags(gin_search_paths, gin_files, gin_bindings)
  last = lint_lib.last_bindings(report.seen)
  found = {name: last.get(('macro', name)) for name in names}
  return [
      name
      for name, seen in found.items()
      if seen is not None and seen.binding.value == lint_lib.REQUIRED
  ]


def run(main: Callable[[Sequence[str]], Any]) -> None:
  """`app.run` with `--gin.NAME=VALUE` flags understood."""
  app.run(
      main,
      flags_parser=lambda args: app.parse_flags_with_usage(
          list(rewrite_gin_args(args))
      ),
  )


@gin.configurable
def get_gin_config_str(show_provenance: bool = False) -> str:
  """The configuration as given, macros and all, as gin text.

  Args:
    show_provenance: kept for T5X recipes; gin 0.5 has no provenance to show.
  """
  if show_provenance:
    logging.warning('gin cannot show where a binding came from.')
  return gin.config_str()


@gin.register
def summarize_gin_config(
    model_dir: str, summary_writer: Any, step: int
) -> None:
  """Writes `config.gin` and `operative_config.gin`, and a text summary.

  The first is the configuration as given, the second has every default.

  Args:
    model_dir: the run's folder or bucket.
    summary_writer: has `write_text(step, name, text)`, or clu's `write_texts`;
      None writes no summary.
    step: the step the summary is written at.
  """
  if not _is_first_process():
    return
  _write(model_dir, 'config.gin', get_gin_config_str())
  text = operative_config_str()
  _write(model_dir, 'operative_config.gin', text)
  if summary_writer is None:
    return
  markdown = gin.markdown(text)
  if hasattr(summary_writer, 'write_texts'):
    summary_writer.write_texts(step, {_CONFIG_TEXT_NAME: markdown})
  else:
    summary_writer.write_text(step, _CONFIG_TEXT_NAME, markdown)
  summary_writer.flush()


def configured(what: Callable[..., Any], *, mend: str) -> Callable[..., Any]:
  """What a recipe calls, with the arguments that the recipe gives it.

  Args:
    what: a function or class that the recipes read so far may name.
    mend: what to include, or to start instead, where they do not.

  Raises:
    GinError: they do not name it.
  """
  try:
    return gin.get_configurable(what)
  except ValueError:
    name = f'{what.__module__}.{what.__qualname__}'
    raise GinError(
        f'no gin file names {name}: expected a recipe that imports and sets '
        f'it. {mend}'
    ) from None


def bound(what: Callable[..., Any]) -> dict[str, Any]:
  """Arguments that the recipes give a function or class, as they are written.

  Args:
    what: a function or class; one that no recipe names has none.
  """
  try:
    return gin.get_bindings(what, resolve_references=False)
  except ValueError:
    return {}


@gin.configurable
def sum_fn(var1: Any = gin.REQUIRED, var2: Any = gin.REQUIRED) -> Any:
  """`var1 + var2`, for gin files."""
  return var1 + var2


@gin.configurable
def bool_fn(var1: Any = gin.REQUIRED) -> bool:
  """`bool(var1)`, for gin files."""
  return bool(var1)


@gin.configurable
def string_split_fn(
    text: str = gin.REQUIRED,
    separator: str = gin.REQUIRED,
    maxsplit: int = -1,
    index: int | None = None,
) -> list[str] | str:
  """`text.split(...)`, or its part `index`, for gin files."""
  parts = text.split(separator, maxsplit)
  return parts if index is None else parts[index]


def _is_first_process() -> bool:
  """Whether this is process 0; without JAX there is only one."""
  jax = sys.modules.get('jax')
  return jax is None or jax.process_index() == 0


def _write(folder: str, name: str, text: str) -> None:
  if '://' not in str(folder):
    path = pathlib.Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    (path / name).write_text(text, encoding='utf-8')
    return
  from etils import epath  # cloud paths only

  epath.Path(os.fspath(folder)).mkdir(parents=True, exist_ok=True)
  (epath.Path(os.fspath(folder)) / name).write_text(text)
