# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The command line of the benchmark; sets the process up before JAX starts."""

import argparse
import importlib
import os
import sys

from t5wild import huge_pages

_COMMANDS = {
    'step': 'a training step of t5wild against the tuned plain-JAX reference',
    'loop': 'the whole training loop against the bare step',
    'memory': 'peak memory of the process and temporaries of the step',
    'quantization': 'losses with FP8 and int8 beside those with bfloat16',
    'remat': 'time and temporary memory of each remat policy',
    'start': 'process start to the first finished step, cache cold and warm',
    'checkpoint': 'saving and restoring a state of 2 GB',
    'objectives': 'examples of span corruption and UL2 per CPU-second',
    'data': 'caching text, and rows read from caches, corrupted and packed',
    'decode': 'tokens decoded per CPU-second: greedy, beam search, top-k',
    'prefill': "a decoder's prefill against its forward pass in training",
    'infer': 'inference from text to text against bare decoding',
    'predict': "steps on this CPU beside the planner's arithmetic",
    'vitals': 'what watching costs a step: CPU of the host, FLOPs, time',
    'scale': 'T5 1.1 XXL compiled for 256 virtual CPU devices',
    'peers': 'T5X and Hugging Face T5, where they are installed',
}


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
  """Parses the command line."""
  parser = argparse.ArgumentParser(
      prog='benchmark.py', description='Prints one JSON line per figure.'
  )
  parser.add_argument(
      'command',
      choices=sorted(_COMMANDS),
      help='; '.join(f'{name}: {text}' for name, text in _COMMANDS.items()),
  )
  parser.add_argument(
      '--runs', type=int, default=7, help='timed runs of each side'
  )
  parser.add_argument(
      '--core',
      type=int,
      default=None,
      help='core to run on; -1 for all; default: the last one',
  )
  parser.add_argument(
      '--small', action='store_true', help='a tiny model, to try it out'
  )
  parser.add_argument(
      '--folder', default=None, help='where checkpoints and caches go'
  )
  return parser.parse_args(arguments)


def pin(core: int | None) -> list[int]:
  """Keeps this process on one core (None: the last, -1: all of them).

  Two sides of a ratio then run on the same core, and XLA starts one thread.
  """
  if not hasattr(os, 'sched_setaffinity') or core == -1:
    return []
  usable = sorted(os.sched_getaffinity(0))
  chosen = usable[-1] if core is None else core
  if chosen not in usable:
    raise ValueError(
        f'--core={chosen}: expected one of {usable}; choose one of those, or '
        '-1 for all.'
    )
  os.sched_setaffinity(0, {chosen})
  return [chosen]


def main(arguments: list[str] | None = None) -> None:
  """Runs one command."""
  options = parse(arguments)
  if arguments is None:
    huge_pages.start_again()  # as `t5wild train` does
  if options.command not in ('start', 'scale', 'checkpoint'):
    pin(options.core)
  os.environ.setdefault('JAX_PLATFORMS', 'cpu')
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
  # Imported late: JAX counts the cores when it starts.
  module = importlib.import_module(f'benchmarks.run_{options.command}')
  sys.stderr.write(f'{options.command}: {_COMMANDS[options.command]}\n')
  module.run(options)
