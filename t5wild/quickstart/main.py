# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild quickstart`: fills in the macros of a recipe and runs it."""

import argparse
import ast
from collections.abc import Sequence
import difflib
import glob
import os
import pathlib
import re
import shlex
import time

from t5wild import exit_codes
from t5wild import run_dir as run_dir_lib

RECIPE = 'recipes/quickstart.gin'
FINETUNE_RECIPE = 'recipes/finetune_function_name.gin'
FINETUNE_STEPS = 600  # of that recipe
DEFAULT_MODEL_DIR = 't5wild_quickstart'
DEFAULT_STEPS = 3600
MAX_LOSS_FRACTION = 0.75
MIN_EXACT_FACTOR = 2.0
_STANDARD_TEXT = "the Python standard library's sources"
_OPTIONS = ('text', 'model_dir', 'steps')


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(
      prog='t5wild quickstart',
      description=(
          'Trains a small byte-level encoder-decoder by span corruption, in '
          'a few minutes on two CPU cores. Run again, it resumes. Other flags '
          '(--gin.NAME=value, ...) go to `t5wild train` as they are.'
      ),
  )
  parser.add_argument(
      '--text',
      metavar='PATH',
      help='your own text: a file, a folder or a glob; without it, the '
      "Python standard library's sources",
  )
  parser.add_argument(
      '--model_dir',
      default=DEFAULT_MODEL_DIR,
      help='folder of everything the run leaves (default: %(default)s)',
  )
  parser.add_argument(
      '--steps',
      type=int,
      default=DEFAULT_STEPS,
      help='number of updates to train to (default: %(default)s)',
  )
  return parser


def _train_argv(options, rest: Sequence[str]) -> list[str]:
  argv = [
      't5wild train',
      f'--gin_file={RECIPE}',
      f"--gin.MODEL_DIR='{options.model_dir}'",
      f'--gin.TRAIN_STEPS={options.steps}',
  ]
  if options.text:
    argv.append(f"--gin.TEXT='{os.path.abspath(options.text)}'")
  return [*argv, *rest]


def _check(options, rest: Sequence[str]) -> str | None:
  """Returns what is wrong with the options, or None; imports nothing."""
  for flag in rest:
    name = flag.partition('=')[0].replace('-', '_').lstrip('_')
    close = difflib.get_close_matches(name, _OPTIONS, n=1, cutoff=0.8)
    if flag.startswith('--') and close:
      return (
          f'there is no flag {flag!r} (did you mean --{close[0]}?): expected '
          f'{", ".join("--" + one for one in _OPTIONS)}, or a flag of `t5wild '
          'train`. Correct it.'
      )
  if options.steps < 1:
    return (
        f'--steps is {options.steps}: expected at least 1. Leave it out for '
        f'{DEFAULT_STEPS}.'
    )
  if "'" in options.model_dir or "'" in (options.text or ''):
    return (
        f'a path holds a quote: {options.model_dir!r}, {options.text!r}. '
        'Expected paths without one; rename the folder.'
    )
  return _check_text(options, rest)


def _check_text(options, rest: Sequence[str]) -> str | None:
  """Returns what is wrong with the text, for this run or at all."""
  text = options.text and os.path.expanduser(options.text)
  if text and not _is_there(text):
    return (
        f'--text is {options.text!r}, and nothing is there (seen from '
        f'{os.getcwd()}): expected a file, a folder or a glob. Correct the '
        f'path, or leave it out for {_STANDARD_TEXT}.'
    )
  known, trained_on = _text_of_run(options.model_dir)
  wanted = os.path.abspath(options.text) if options.text else None
  if not known or trained_on == wanted or any('.TEXT' in each for each in rest):
    return None
  if trained_on and wanted and not _is_there(trained_on):
    return None  # moved: whether it is the same text the first batch tells
  return (
      f'the run in {options.model_dir} is on other text:\n'
      f'  there: {trained_on or _STANDARD_TEXT}\n'
      f'  asked: {wanted or _STANDARD_TEXT}\n'
      'Expected the same text: a run that goes on gets the batches that '
      'follow. Give --model_dir another folder, or go on '
      + (f'with --text {shlex.quote(trained_on)}.' if trained_on
         else 'without --text.')
  )


def _is_there(text: str) -> bool:
  # The name of a file may hold brackets.
  return os.path.exists(text) or bool(glob.glob(text, recursive=True))


def _text_of_run(model_dir: str) -> tuple[bool, str | None]:
  """Whether a run's TEXT is known, and what it is."""
  path = pathlib.Path(run_dir_lib.RunDir(model_dir).operative_config_gin)
  if not _is_begun(model_dir) or not path.exists():
    return False, None
  line = re.search('^TEXT = (.*)$', path.read_text(), re.MULTILINE)
  try:
    text = ast.literal_eval(line[1]) if line else ()
  except (ValueError, SyntaxError):  # what a flag made of it
    return False, None
  return text is None or isinstance(text, str), text


def _is_begun(model_dir: str) -> bool:
  return bool(glob.glob(os.path.join(glob.escape(model_dir), 'checkp*')))


def _plan(options) -> list[str]:
  """What is known before JAX is imported, so that it is told at once."""
  text = options.text or _STANDARD_TEXT
  first_loss = (
      'the run that is there already goes on after imports and compilation'
      if _is_begun(options.model_dir)
      else 'the first loss comes after imports, compilation and an evaluation '
      'of the untrained model'
  )
  return [
      f'Trains a small byte-level encoder-decoder to fill gaps in {text},',
      f'to step {options.steps}; all it leaves goes to {options.model_dir}. '
      'Size and device are told below;',
      first_loss,
      '(half a minute on two CPU cores). Ctrl-C saves and leaves; the same '
      'command resumes.',
  ]


def _summary(options) -> list[str]:
  from t5wild.quickstart import held_out  # after training, JAX is there

  results = held_out.load_results(options.model_dir)
  if not results:
    return ['No evaluation finished, so there is nothing to compare.']
  first, last = results[0], results[-1]
  fraction = last.nats_per_byte / last.unigram_entropy
  is_low = fraction <= MAX_LOSS_FRACTION
  is_exact = _exact_factor(last) >= MIN_EXACT_FACTOR
  verdict = 'at most' if is_low else _against(last, 'more than')
  lines = [
      '',
      f'Held-out text (a sample of {last.num_bytes:,} bytes of gaps in files '
      'the model never saw;',
      'sentinels not counted, so these are not the losses per target token '
      'above):',
      f'  loss before   {first.nats_per_byte:.3f} nats per byte '
      f'(step {first.step})',
      f'  loss after    {last.nats_per_byte:.3f} nats per byte '
      f'(step {last.step})',
      f'  unigram       {last.unigram_entropy:.3f} nats per byte: the loss is '
      f'{fraction:.2f} x that ({verdict} {MAX_LOSS_FRACTION}, the goal)',
      *_infilling_lines(last),
      *([] if is_low and is_exact else _more_steps(options, last.step)),
      '',
      'Infilled examples, gaps in brackets (true text first):',
  ]
  for example in last.examples:
    for name in ('true', 'infilled'):
      lines += [f'  --- {name}', *_indented(example[name])]
  return lines


def _exact_factor(result) -> float:
  return result.exact_fraction / max(result.most_frequent_fraction, 1e-9)


def _against(result, words: str) -> str:
  """The verdict of a bar missed: loud only where it should be reached."""
  return words if result.step < DEFAULT_STEPS else words.upper()


def _more_steps(options, step: int) -> list[str]:
  """What to run to get over the bars that a run has missed."""
  if step < DEFAULT_STEPS:
    steps, why = DEFAULT_STEPS, f'is made to reach both; this was {step}'
  else:
    steps, why = 2 * step, 'may reach both: this text takes longer'
  return [
      f'  A run of {steps} steps {why}:',
      f'    {_command(options)} --steps {steps}',
  ]


def _command(options) -> str:
  text = f' --text {shlex.quote(options.text)}' if options.text else ''
  return f't5wild quickstart{text} --model_dir {shlex.quote(options.model_dir)}'


def _infilling_lines(result) -> list[str]:
  most_frequent = result.most_frequent_fraction
  factor = _exact_factor(result)
  is_exact = factor >= MIN_EXACT_FACTOR
  verdict = 'at least' if is_exact else _against(result, 'less than')
  return [
      f'  infilling     {100 * result.exact_fraction:.1f} % of '
      f'{result.num_spans} gaps ({result.mean_span_bytes:.2f} bytes on '
      'average) filled exactly by',
      '                greedy decoding, which is not told their lengths; the '
      'most',
      '                frequent byte, told the lengths, would fill '
      f'{100 * most_frequent:.1f} %:',
      f'                {factor:.2f} x that ({verdict} {MIN_EXACT_FACTOR:g}, '
      'the goal)',
  ]


def _indented(text: str) -> list[str]:
  return ['  | ' + line for line in text.splitlines()]


def _draw(model_dir: str) -> str:
  from t5wild.quickstart import held_out
  from t5wild.reports import loss_curve

  results = held_out.load_results(model_dir)
  if not results:
    return loss_curve.draw(model_dir, title='t5wild quickstart')
  # Nats per byte and per target token (a sentinel is one, too) are two things.
  return loss_curve.draw(
      model_dir,
      title='t5wild quickstart',
      compared=loss_curve.Compared(
          label='held-out text, nats per byte',
          points=[(each.step, each.nats_per_byte) for each in results],
          level_label='unigram entropy, nats per byte',
          level=results[-1].unigram_entropy,
      ),
  )


def _next_commands(options) -> list[str]:
  model_dir = options.model_dir
  gin_text = (
      f" --gin.TEXT={os.path.abspath(options.text)}" if options.text else ''
  )
  return [
      '',
      'Next:',
      f'  t5wild report {model_dir}',
      '      one page: curves, events, where the time went, samples',
      f'  {_command(options)} --steps {2 * options.steps}',
      '      resumes and trains on; the learning rate, which fell to 0, rises '
      'once more',
      "  echo 'def __init_<extra_id_0>(self<extra_id_1>):' | \\",
      f'  t5wild infer --run={model_dir} --input=-',
      '      fills gaps in a line of yours: the answer names each gap before '
      'its bytes. Rows of',
      '      training had about 15 gaps, so it goes on with some that the line '
      'has not',
      f'  t5wild eval --run={model_dir}',
      '      its newest checkpoint on all of the held-out files: loss per '
      'target token',
      f'  t5wild train --gin_file={FINETUNE_RECIPE}{_from(options)}',
      '      fine-tunes it to name Python functions',
      '  XLA_FLAGS=--xla_force_host_platform_device_count=8 \\',
      f'  t5wild train --gin_file={RECIPE} --gin.MODEL_DIR={model_dir}_mesh'
      f'{gin_text} \\',
      f'      --gin.TRAIN_STEPS={options.steps} '
      '--gin.partitioning.PjitPartitioner.num_partitions=2',
      '      the same run, and the same losses, on a mesh of 4 x 2 devices',
      f'  tensorboard --logdir {model_dir}',
      f'  less {run_dir_lib.RunDir(model_dir).operative_config_gin}',
  ]


def _from(options) -> str:
  """Flags by which the fine-tuning recipe begins with this very run."""
  if (options.model_dir, options.steps) == (DEFAULT_MODEL_DIR, DEFAULT_STEPS):
    return ''  # the recipe's own
  return (
      ' \\\n      --gin.INITIAL_CHECKPOINT_PATH='
      f'{options.model_dir}/checkpoint_{options.steps} \\\n'
      f'      --gin.TRAIN_STEPS={options.steps + FINETUNE_STEPS} \\\n'
      '      --gin.optimizers.create_learning_rate_scheduler.warmup_steps='
      f'{options.steps}'
  )


def main(argv: Sequence[str]) -> int:
  """Runs the quickstart.

  Args:
    argv: Arguments after `t5wild quickstart`.

  Returns:
    One of `exit_codes`.
  """
  options, rest = _parser().parse_known_args(list(argv))
  problem = _check(options, rest)
  if problem:
    print(problem)  # noqa: T201 -- the command's product
    return exit_codes.BAD_CONFIG.code
  print('\n'.join(_plan(options)), flush=True)  # noqa: T201 -- the product
  start = time.monotonic()
  from t5wild import train  # JAX and TensorFlow: not for --help

  code = train.run(_train_argv(options, rest))
  if code:
    return code
  lines = [
      *_summary(options),
      '',
      f'Loss curve:  {_draw(options.model_dir)}',
      f'Took {time.monotonic() - start:.0f} s.',
      *_next_commands(options),
  ]
  print('\n'.join(lines))  # noqa: T201 -- the command's product
  return exit_codes.DONE.code
