# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild convert`: a checkpoint of T5X, or in another layout, as ours."""

import argparse
from collections.abc import Sequence
import dataclasses
import sys

import jax

from t5wild import exit_codes
from t5wild import run_config
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import conversion
from t5wild.checkpoints import hf
from t5wild.checkpoints import hf_export
from t5wild.checkpoints import transforms

# What the user can mend; anything else is a fault of ours.
_FOR_THE_USER = (
    steps.NotACheckpointError,
    steps.UnwritableError,
    transforms.DifferentModelError,
    ValueError,
    OSError,
    MemoryError,
)


def main(argv: Sequence[str] | None = None) -> int:
  """Converts, and returns an exit code; `argv` without the program's name."""
  arguments = _parse(argv)
  # The accelerators of this machine may be in use, and none is needed.
  jax.config.update('jax_platforms', 'cpu')
  try:
    conversion.Conversion(
        source=arguments.source,
        target=arguments.target,
        step=arguments.step,
        layers=arguments.layers,
        num_heads=arguments.num_heads,
        dtype=arguments.dtype,
        weights_only=arguments.weights_only,
        trust_paths=arguments.trust_paths,
        to_format=arguments.to_format,
        export=_what_is_known(arguments),
    ).run(report=_say)
  except _FOR_THE_USER as error:
    sys.stderr.write(f'{error}\n')
    return exit_codes.BAD_CONFIG.code
  except Exception as error:
    # Of buckets, TensorFlow's file systems raise errors of their own.
    if not type(error).__module__.startswith('tensorflow'):
      raise
    sys.stderr.write(
        f'{arguments.source} or {arguments.target} cannot be reached '
        f'({str(error)[:500]}), expected a folder, or a bucket that this '
        'machine may read: check its name and your credentials\n'
    )
    return exit_codes.BAD_CONFIG.code
  return exit_codes.DONE.code


def _what_is_known(arguments: argparse.Namespace) -> hf_export.Export:
  """The network and the vocabulary of the run, and what the flags say."""
  known = hf_export.Export(
      like=arguments.like,
      activation=arguments.activation,
      family=arguments.family,
  )
  if arguments.run is None:
    return known
  run = run_config.RunConfig.read(run_config.find_config(arguments.run))
  model = run.need('model')
  config = getattr(model.module, 'config', None)
  # By what it has: networks are joined to models by gin alone.
  if not (dataclasses.is_dataclass(config) and hasattr(config, 'positions')):
    raise ValueError(
        f'{arguments.run} has the network {type(model.module).__name__}, '
        'expected one of t5wild.networks: others are not written for '
        'transformers; leave --run out if its parameters are those of a T5'
    )
  values = {
      field.name: getattr(config, field.name)
      for field in dataclasses.fields(config)
  }
  return dataclasses.replace(
      known, network=values, vocabulary=model.output_vocabulary
  )


def _say(text: str) -> None:
  sys.stdout.write(f'{text}\n')


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
  parser = argparse.ArgumentParser(
      prog='t5wild convert',
      description=(
          'Reads a checkpoint of T5X (native or Orbax), of Mesh-TensorFlow T5, '
          "of Hugging Face or of t5wild, found out by what is there, and "
          'writes an ordinary checkpoint of t5wild, or one for transformers. '
          'Training, evaluation and inference read all of these as they are: '
          'convert to change layout or dtype, or once for good.'
      ),
  )
  parser.add_argument(
      '--from', dest='source', metavar='CHECKPOINT',
      help='a checkpoint folder, a run directory (its newest), or the first '
      'part of the names of a TensorFlow checkpoint (model.ckpt-1000); '
      'default: --run',
  )
  parser.add_argument(
      '--run', metavar='MODEL_DIR',
      help='the run of t5wild that it is of, whose config.gin is run: gives '
      'network and tokenizer for --to_format=hf',
  )
  parser.add_argument(
      '--to', dest='target', required=True, metavar='MODEL_DIR',
      help='directory to write checkpoint_N to',
  )
  parser.add_argument(
      '--to_format', choices=conversion.FORMATS, default='t5wild',
      help='t5wild, or hf: a folder for transformers, written to MODEL_DIR '
      'itself (default: %(default)s)',
  )
  _add_flags_of_hugging_face(parser)
  parser.add_argument(
      '--step', type=int, help='which checkpoint of a run directory'
  )
  layers = parser.add_mutually_exclusive_group()
  layers.add_argument(
      '--scan', dest='layers', action='store_const', const='stacked',
      help='stack plain layers, for scan_layers = True',
  )
  layers.add_argument(
      '--unscan', dest='layers', action='store_const', const='plain',
      help='take stacked layers apart, for scan_layers = False',
  )
  parser.add_argument(
      '--num_heads', type=int,
      help='number of attention heads; only for --scan of a network without '
      'relative biases',
  )
  parser.add_argument(
      '--dtype', choices=('float32', 'bfloat16'),
      help='of the parameters (default: as they are)',
  )
  parser.add_argument(
      '--weights_only', action='store_true',
      help="leave the optimizer's state out",
  )
  parser.add_argument(
      '--trust_paths', action='store_true',
      help='let the checkpoint have links and paths out of its own folder',
  )
  arguments = parser.parse_args(argv)
  arguments.source = arguments.source or arguments.run
  if arguments.source is None:
    parser.error('expected --from=CHECKPOINT, or --run=MODEL_DIR')
  if arguments.to_format != 'hf':
    for name in ('activation', 'family'):
      if getattr(arguments, name) is not None:
        parser.error(f'--{name} is for --to_format=hf: give that too')
  return arguments


def _add_flags_of_hugging_face(parser: argparse.ArgumentParser) -> None:
  parser.add_argument(
      '--like', metavar='FOLDER',
      help='a model for transformers of the same network, whose config.json '
      'and tokenizer files are taken, for --to_format=hf (default: what it '
      'had when it came from Hugging Face)',
  )
  parser.add_argument(
      '--activation',
      help='of the feed-forward blocks, for --to_format=hf of a T5 without '
      '--run and --like (default: gelu where they are gated, else relu; UL2 '
      'has silu)',
  )
  parser.add_argument(
      '--family', choices=hf.FAMILIES,
      help="Hugging Face's model_type, for --to_format=hf (default: the first "
      'that has the network)',
  )


if __name__ == '__main__':
  sys.exit(main())
