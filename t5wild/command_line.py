# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What the binaries have in common: T5X's flags, processes, how errors read."""

from collections.abc import Callable, Mapping, Sequence
import contextlib
import os
import signal
import sys
import threading
import traceback
from typing import Any

from absl import flags
from absl import logging

from t5wild import compilation_cache
from t5wild import exit_codes
from t5wild import foreign_logs
from t5wild import gin_utils
from t5wild import vocabulary_files
from t5wild.compat import frameworks
from t5wild.compat import install
from t5wild.data import providers
from t5wild.partitioning import distributed

_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
# Of ends that may come to one process of several, and not by agreement.
_OF_ONE = frozenset(
    end.code
    for end in (
        exit_codes.FAILED, exit_codes.BAD_CONFIG, exit_codes.LOST_PEER,
        exit_codes.DISK_FULL, exit_codes.RUN_DIR_LOST,
    )
)  # fmt: skip
_KNOWN = frozenset(end.code for end in exit_codes.ALL)
_LEAVE_SECONDS = 10  # for all to come to the same end, of a mistake of all


def define_flags() -> None:
  """Defines the flags of every binary, once, with T5X's names."""
  gin_utils.define_gin_flags()
  if 'multiprocess_gpu' in flags.FLAGS:
    return
  flags.DEFINE_string(
      'tfds_data_dir',
      None,
      "Folder of TFDS data sets; T5's tasks read plain files there too.",
  )
  flags.DEFINE_string(
      'vocab_dir',
      None,
      'Folder in which SentencePiece models are looked for, by the ends of '
      f'their paths; also the variable {vocabulary_files.VARIABLE}.',
  )
  flags.DEFINE_list(
      'seqio_additional_cache_dirs', [], 'More folders of cached tasks.'
  )
  flags.DEFINE_bool('multiprocess_gpu', False, 'Start jax.distributed.')
  flags.DEFINE_string('coordinator_address', None, 'host:port of process 0.')
  flags.DEFINE_integer('process_count', None, 'Number of processes.')
  flags.DEFINE_integer('process_index', None, 'Index of this process.')
  flags.DEFINE_integer(
      'initialization_timeout', None, 'Seconds to wait for all processes.'
  )
  for name in ('jax_backend', 'jax_backend_target', 'jax_xla_backend'):
    if name not in flags.FLAGS:
      flags.DEFINE_string(name, None, 'Accepted as T5X users pass it.')


def flags_help(*modules: str) -> str:
  """Help on the flags of some modules, and on those of every binary."""
  names = (*modules, __name__, gin_utils.__name__)
  return ''.join(map(flags.FLAGS.module_help, names))


def parse_flags(argv: Sequence[str]) -> None:
  """Parses a command line, and starts the log.

  Raises:
    flags.Error: A flag is unknown or has no such value.
    ValueError: There is no such --vocab_dir, or words are left over.
  """
  try:
    _, *left = flags.FLAGS(gin_utils.rewrite_gin_args(list(argv)))
  except flags.UnrecognizedFlagError as error:
    error.args = (_with_the_way_of_gin(error),)
    raise
  if left:
    example = next((word for word in left if '=' in word), 'NAME=VALUE')
    raise ValueError(
        f'The words {left} belong to no flag: expected --NAME=VALUE, and what '
        'a recipe sets as --gin.NAME=VALUE, each in one word. Write '
        f'--gin.{example.removeprefix("gin.")}, or leave it out.'
    )
  if flags.FLAGS.vocab_dir:
    vocabulary_files.set_folder(flags.FLAGS.vocab_dir)
  logging.use_absl_handler()
  if not flags.FLAGS['verbosity'].present:
    logging.set_verbosity(logging.INFO)
  foreign_logs.quiet()


def _with_the_way_of_gin(error: flags.UnrecognizedFlagError) -> str:
  text, name = str(error), error.flagname
  if 'Did you mean' in text:
    return text
  return (
      f'{text}. What a recipe sets is given to gin: --gin.{name.upper()}=VALUE '
      f'where it is a macro, --gin.module.Class.{name}=VALUE where it is an '
      'argument.'
  )


def exit_code_of_flags(
    argv: Sequence[str],
    *,
    make_help: Callable[[], str],
    check: Callable[[], None] = lambda: None,
) -> int | None:
  """Parses a command line; returns how to exit, or None to go on.

  Args:
    argv: Program name and flags, which are defined.
    make_help: What to print where help is asked for.
    check: Raises ValueError where flags do not go together.
  """
  if {'--help', '-h', '--helpfull'} & set(argv[1:]):
    print(make_help())  # noqa: T201 -- the product
    return exit_codes.DONE.code
  try:
    parse_flags(argv)
    check()
  except (flags.Error, ValueError) as error:
    tell(f'{error}\nTry --help.')
    return exit_codes.BAD_CONFIG.code
  return None


def check_run_flags(values: Any, module: str) -> None:
  """Refuses flags that are about --run where it is not given.

  Args:
    values: The flags.
    module: Name of the module that defined --run and what goes with it.

  Raises:
    ValueError: What to give.
  """
  if values.run is not None:
    return
  given = [
      f'--{flag.name}'
      for flag in values.flags_by_module_dict()[module]
      if flag.present
  ]
  if given or not values.gin_file:
    raise ValueError(
        f'--run is missing (given: {given}, gin files: {values.gin_file}): '
        'expected --run=MODEL_DIR, or --gin_file, which says all that flags '
        'beside --run say. Name the run, or leave them out.'
    )


def start_processes() -> None:
  """Starts jax.distributed as flags and environment say."""
  values = flags.FLAGS
  distributed.start(
      multiprocess_gpu=values.multiprocess_gpu,
      coordinator_address=values.coordinator_address,
      process_count=values.process_count,
      process_index=values.process_index,
      timeout_seconds=values.initialization_timeout,
  )


def parse_gin(
    *, where_unset: Mapping[str, str] | None = None, **objects: Any
) -> None:
  """Reads the gin files and bindings of the flags.

  Args:
    where_unset: Macro to the text that stands in where the recipe requires it
      and nothing sets it.
    **objects: What recipes reach by `import __main__`, whatever was started.

  Raises:
    ValueError: No gin file was given.
  """
  if not flags.FLAGS.gin_file:
    raise ValueError(
        '--gin_file is missing: expected a recipe, at least. Give one of '
        'yours, or one of ours, such as --gin_file=recipes/quickstart.gin.'
    )
  install.install()
  for name, value in objects.items():
    setattr(sys.modules['__main__'], name, value)
  values = flags.FLAGS
  given = (values.gin_search_paths, values.gin_file, values.gin_bindings)
  stand_ins = where_unset or {}
  try:
    if stand_ins:
      unset = gin_utils.unset_macros(*given, names=list(stand_ins))
      given = (*given[:2], [
          *given[2], *(f'{name} = {stand_ins[name]!r}' for name in unset)
      ])
    gin_utils.parse_gin_flags(*given)
  except gin_utils.GinError as error:
    told = frameworks.told_of_files(flags.FLAGS.gin_file or ())
    if not told:
      raise
    raise gin_utils.GinError(f'{told}\n{error}') from None


def use_data_dirs() -> None:
  """Tells TFDS and seqio of the folders that flags name."""
  if flags.FLAGS.tfds_data_dir or flags.FLAGS.seqio_additional_cache_dirs:
    providers.set_data_dirs(
        tfds_data_dir=flags.FLAGS.tfds_data_dir,
        cache_dirs=flags.FLAGS.seqio_additional_cache_dirs,
    )


def leaving_alone(run: Callable[[], int]) -> int:
  """Runs, and ends this process where others of the run wait for it in vain.

  One that fails alone would be waited for in a collective, and would wait for
  the others at its exit; all that a supervisor saw was a hang. It leaves with
  its own error and exit code, which come first in its log.

  Args:
    run: Returns how to exit.
  """
  try:
    code = run()
  except Exception:
    if distributed.process_count() == 1:
      raise
    sys.excepthook(*sys.exc_info())
    code = exit_codes.FAILED.code
  except SystemExit as error:  # of code in a recipe
    if distributed.process_count() == 1 or not isinstance(error.code, int):
      raise
    code = error.code
  is_of_one = code in _OF_ONE or code not in _KNOWN
  if is_of_one and not distributed.all_leave(_LEAVE_SECONDS):
    # No word of it: the error's own are the last, for who reads the log.
    with contextlib.suppress(OSError, ValueError):
      sys.stdout.flush()
      sys.stderr.flush()
    os._exit(code)
  return code


def run_binary(
    start: Callable[[], None],
    *,
    is_ready: threading.Event,
    for_the_user: tuple[type[BaseException], ...],
    not_written: tuple[type[OSError], ...] = (),
) -> int:
  """Starts the processes and does what a binary does; returns how to exit.

  Args:
    start: Reads gin, and does it.
    is_ready: Set once no argument can be refused any more; errors before are
      of the recipe, which a restart would repeat.
    for_the_user: Errors that a restart would repeat, however late they come.
    not_written: Errors that say what could not be written, and the mend.
  """
  is_ready.clear()

  def run() -> int:
    return _run_binary(start, is_ready, for_the_user, not_written)

  return leaving_alone(run)


def _run_binary(start, is_ready, for_the_user, not_written) -> int:
  try:
    start_processes()
    logging.info('Compilation cache: %s', compilation_cache.start())
    start()
  except BrokenPipeError:
    # Who read the output has gone, as `head` does: nobody to tell.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + signal.SIGPIPE
  except KeyboardInterrupt:
    return interrupted()
  except not_written as error:
    tell(message_of(error))
    return exit_codes.DISK_FULL.code
  except (ValueError, LookupError, OSError, TypeError) as error:
    if is_ready.is_set() and not isinstance(error, for_the_user):
      raise
    tell(complaint(error))
    return exit_codes.BAD_CONFIG.code
  return exit_codes.DONE.code


def interrupted() -> int:
  """Tells of a Ctrl-C; returns how to exit."""
  tell('Stopped by Ctrl-C. The same command again goes on.')
  return 128 + signal.SIGINT


def tell(text: str) -> None:
  """Writes to standard error, or nothing where that lies on a full disk.

  The exit code tells a supervisor more than the text, and must come through.
  """
  with contextlib.suppress(OSError):
    print(text, file=sys.stderr, flush=True)  # noqa: T201 -- the product


def message_of(error: BaseException) -> str:
  """An error's own message, without the line on a call that gin adds."""
  return str(error).split('\n  In call to configurable')[0]


def complaint(error: BaseException) -> str:
  """What to tell of a bad recipe: our message, or how foreign code failed.

  A message of ours says what to mend; where other people's code raised it, the
  place is needed too.
  """
  missing = gin_utils.explain_missing_arguments(str(error))
  if missing is not None:
    return missing
  message = message_of(error)
  cause = error
  while cause.__cause__ is not None:
    cause = cause.__cause__
  frames = traceback.extract_tb(cause.__traceback__)
  if frames and not frames[-1].filename.startswith(_OURS):
    message = ''.join(traceback.format_exception(cause)) + message
  return message
