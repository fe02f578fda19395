# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild infer --run`: all that is needed, read from a run's own directory."""

from collections.abc import Callable, Iterator, Mapping
import dataclasses
import os
import sys
from typing import Any

from absl import flags
from absl import logging

from t5wild import inference_state
from t5wild import run_config
from t5wild.checkpoints import configs
from t5wild.data import datasets
from t5wild.inferring import inputs
from t5wild.inferring import interactive
from t5wild.inferring import jobs
from t5wild.inferring import session
from t5wild.inferring import writing
from t5wild.partitioning import distributed


def define_flags() -> None:
  """Defines the flags of inference from a run's directory."""
  if 'run' in flags.FLAGS:
    return
  flags.DEFINE_string('run', None, 'MODEL_DIR of the run to infer with.')
  flags.DEFINE_integer('step', None, 'Which checkpoint; default: the newest.')
  flags.DEFINE_string(
      'input', None,
      'A .jsonl with a field "inputs", a .tfrecord, a text file (an input a '
      'line), or - for standard input.',
  )
  flags.DEFINE_string('output', None, 'The .jsonl file to write.')
  flags.DEFINE_bool('interactive', False, 'A prompt line in, text out.')
  flags.DEFINE_enum(
      'mode', inputs.PREDICT, inputs.MODES,
      'What to write of each input; score needs a field "targets".',
  )
  flags.DEFINE_enum(
      'input_type', 'auto', ['auto', 'text', 'jsonl', 'tfrecord'],
      'What --input is; auto goes by its name.',
  )
  flags.DEFINE_integer(
      'input_length', None, 'Most tokens of an input; default: as trained.'
  )
  flags.DEFINE_integer(
      'decode_length', None, 'Most tokens to decode; default: as trained.'
  )
  flags.DEFINE_integer('batch_size', 32, 'Inputs decoded together.')
  flags.DEFINE_integer(
      'checkpoint_period', 20,
      'Batches between writes: what a killed run repeats at most.',
  )


def check_flags(values: Any) -> None:
  """Refuses flags that do not go together.

  Raises:
    ValueError: What to give.
  """
  if values.run is None:
    given = [n for n in ('input', 'output', 'step') if values[n].present]
    if values.interactive:
      given.append('interactive')
    if given or not values.gin_file:
      raise ValueError(
          f'--run is missing (given: {given}, gin files: {values.gin_file}): '
          'expected --run=MODEL_DIR, or --gin_file. Name the run.'
      )
    return
  for name in ('input_length', 'decode_length', 'batch_size'):
    value = values[name].value
    if value is not None and value < 1:
      raise ValueError(
          f'--{name} is {value}: expected at least 1. Raise it, or leave it '
          'out.'
      )
  if values.interactive:
    return
  missing = [f'--{n}' for n in ('input', 'output') if not values[n].value]
  if missing:
    raise ValueError(
        f'{missing} is missing: expected --input=FILE --output=FILE.jsonl, or '
        '--interactive. Give both.'
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunCommand:
  """What to infer with, and on what."""

  flags: Any
  model: Any
  partitioner: Any
  checkpoint: str
  lengths: Mapping[str, int]
  add_eos: bool

  @property
  def restore_cfg(self) -> configs.RestoreCheckpointConfig:
    """The checkpoint, parameters as they were saved."""
    return configs.RestoreCheckpointConfig(
        path=self.checkpoint, mode='specific'
    )

  def infer_arguments(self) -> dict[str, Any]:
    """Returns the arguments of `infer`."""
    output = os.path.abspath(self.flags.output)
    if self.flags.input == '-' and distributed.process_count() > 1:
      raise ValueError(
          f'--input is - and there are {distributed.process_count()} '
          'processes: expected a file, which all of them can read. Save the '
          'inputs to one.'
      )
    return {
        'mode': self.flags.mode,
        'model': self.model,
        'dataset_cfg': self.file_config(name=os.path.basename(output)),
        'restore_checkpoint_cfg': self.restore_cfg,
        'partitioner': self.partitioner,
        'output_dir': os.path.dirname(output),
        'output_name': os.path.basename(output),
        'checkpoint_period': self.flags.checkpoint_period,
    }

  def file_config(self, *, name: str) -> inputs.FileConfig:
    """How inputs are read."""
    return inputs.FileConfig(
        paths=self.flags.input or '-',
        task_feature_lengths=self.lengths,
        batch_size=self._batch_size(),
        file_type=self.flags.input_type,
        add_eos=self.add_eos,
        name=name,
    )

  def _batch_size(self) -> int:
    """As asked, or what the devices need at least."""
    least = self.partitioner.data_mesh_size
    if self.flags.interactive:
      return least
    return -(-self.flags.batch_size // least) * least

  def converse(self, *, when_ready: Callable[[], None]) -> None:
    """Answers the lines of standard input until it ends."""
    if distributed.process_count() > 1:
      raise ValueError(
          f'--interactive was asked of {distributed.process_count()} '
          'processes: expected one. Start it without a launcher.'
      )
    logging.set_verbosity(logging.WARNING)
    cfg = self.file_config(name='prompts')
    plan = session.Plan(
        mode=inputs.PREDICT,
        model=self.model,
        lengths=cfg.task_feature_lengths,
        batch_size=cfg.batch_size,
        chunk_size=cfg.batch_size,
        num_buckets=4,
        write_fn=writing.write_inferences_to_file,
    )
    engine = jobs.Engine(
        plan,
        partitioner=self.partitioner,
        restore_checkpoint_cfg=self.restore_cfg,
    )
    infer_fn = engine.start(interactive.EmptyPrompt(cfg, model=self.model))
    when_ready()
    _say(f'{self.checkpoint}: a prompt a line; end with Ctrl-D.')
    interactive.answer(
        _prompts(),
        plan=plan,
        cfg=cfg,
        infer_fn=infer_fn,
        tell=lambda text: print(text, flush=True),  # noqa: T201 -- the product
    )


def _prompts() -> Iterator[str]:
  while True:
    if sys.stdin.isatty():
      sys.stderr.write('> ')
      sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
      return
    yield line.rstrip('\r\n')


def _say(text: str) -> None:
  print(text, file=sys.stderr, flush=True)  # noqa: T201 -- for a person


def read_run(values: Any) -> RunCommand:
  """Reads a run's config and finds its checkpoint; restores nothing.

  Raises:
    ValueError: The directory is no run's, or has no such checkpoint.
  """
  config = run_config.find_config(values.run)
  checkpoint = inference_state.checkpoint_of_step(values.run, values.step)
  bound = run_config.RunConfig.read(
      config,
      gin_bindings=values.gin_bindings,
      gin_search_paths=values.gin_search_paths,
  )
  lengths, add_eos = _as_trained(values, bound)
  return RunCommand(
      flags=values,
      model=bound.need('model'),
      partitioner=bound.need('partitioner'),
      checkpoint=checkpoint,
      lengths=lengths,
      add_eos=add_eos,
  )


def _as_trained(
    values: Any, bound: run_config.RunConfig
) -> tuple[dict[str, int], bool]:
  """Lengths of inputs and targets, and whether inputs end with an end token."""
  lengths, add_eos = {}, True
  try:
    cfg = bound.need('train_dataset_cfg')
    lengths = dict(cfg.task_feature_lengths)
    features = datasets.open_provider(cfg).output_features
    add_eos = bool(features['inputs'].add_eos)
  except (ValueError, LookupError, OSError, ImportError, AttributeError) as e:
    logging.warning(
        "The run's data cannot be opened here (%s); inputs get an end token.",
        str(e).splitlines()[0],
    )
  given = {'inputs': values.input_length, 'targets': values.decode_length}
  lengths = {
      name: value or lengths.get(name) for name, value in given.items()
  }
  if None in lengths.values():
    raise ValueError(
        f'the lengths are {lengths}: the run does not say all of them here; '
        'expected both. Give --input_length and --decode_length.'
    )
  return lengths, add_eos
