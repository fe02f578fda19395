# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild infer --run`: all that is needed, read from a run's own directory."""

from collections.abc import Callable, Iterator
import contextlib
import dataclasses
import io
import os
import shutil
import sys
import tempfile
from typing import Any

from absl import flags
from absl import logging

from t5wild import inference_state
from t5wild import run_config
from t5wild.checkpoints import configs
from t5wild.inferring import inputs
from t5wild.inferring import interactive
from t5wild.inferring import jobs
from t5wild.inferring import lengths as lengths_lib
from t5wild.inferring import session
from t5wild.inferring import writing
from t5wild.partitioning import distributed


def define_flags() -> None:
  """Defines the flags of inference from a run's directory."""
  if 'step' in flags.FLAGS:
    return
  if 'run' not in flags.FLAGS:  # that of `eval`, in one process with it
    flags.DEFINE_string('run', None, 'MODEL_DIR of the run to infer with.')
  flags.DEFINE_integer('step', None, 'Which checkpoint; default: the newest.')
  flags.DEFINE_string(
      'input', None,
      'A .jsonl with a field "inputs", a .tfrecord, a text file (an input a '
      'line), or - for standard input.',
  )
  flags.DEFINE_string(
      'output', None,
      'The .jsonl file to write; without it the lines go to standard output, '
      'and a killed run starts over.',
  )
  flags.DEFINE_bool('interactive', False, 'A prompt line in, text out.')
  flags.DEFINE_enum(
      'mode', inputs.PREDICT, inputs.MODES,
      'What to write of each input; score needs a field "targets".',
  )
  flags.DEFINE_enum(
      'input_type', 'auto', ['auto', 'text', 'jsonl', 'tfrecord'],
      'What --input is; auto goes by its name.',
  )
  flags.DEFINE_string('inputs_key', 'inputs', 'Field of the inputs.')
  flags.DEFINE_string('targets_key', 'targets', 'Field of the targets.')
  flags.DEFINE_integer(
      'input_length', None,
      'Most tokens of an input; default: as trained. 0 scores whole texts by '
      'a language model of one sequence.',
  )
  flags.DEFINE_integer(
      'decode_length', None, 'Most tokens to decode; default: as trained.'
  )
  flags.DEFINE_bool(
      'input_eos', None,
      'Whether inputs end with the end token; default: as trained.',
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
    return
  lowest = dict.fromkeys(
      ('input_length', 'decode_length', 'batch_size', 'checkpoint_period'), 1
  )
  if values.mode == inputs.SCORE:
    lowest['input_length'] = 0
  for name, least in lowest.items():
    value = values[name].value
    if value is not None and value < least:
      raise ValueError(
          f'--{name} is {value}: expected at least {least}. Raise it, or leave '
          'it out.'
      )
  if values.interactive and values.mode != inputs.PREDICT:
    raise ValueError(
        f'--mode is {values.mode!r} and --interactive is given: expected '
        f'{inputs.PREDICT!r} with it. Drop one of them.'
    )
  output = values.output
  if output and (output.endswith(os.sep) or os.path.isdir(output)):
    raise ValueError(
        f'--output is {output!r}, a folder: expected a file to write. Give '
        f'--output={os.path.join(output, "out.jsonl")}.'
    )
  if not values.input and not values.interactive:
    raise ValueError(
        f'--input is {values.input!r}: expected a file, - for standard input, '
        'or --interactive. Give one.'
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunCommand:
  """What to infer with, and on what."""

  flags: Any
  model: Any
  partitioner: Any
  checkpoint: str
  lengths: lengths_lib.Lengths

  @property
  def restore_cfg(self) -> configs.RestoreCheckpointConfig:
    """The checkpoint, parameters as they were saved."""
    return configs.RestoreCheckpointConfig(
        path=self.checkpoint, mode='specific'
    )

  @contextlib.contextmanager
  def infer_arguments(self) -> Iterator[dict[str, Any]]:
    """Gives the arguments of `infer`, which must end within the context."""
    if self.flags.input == '-' and distributed.process_count() > 1:
      raise ValueError(
          f'--input is - and there are {distributed.process_count()} '
          'processes: expected a file, which all of them can read. Save the '
          'inputs to one.'
      )
    arguments = {
        'mode': self.flags.mode,
        'model': self.model,
        'restore_checkpoint_cfg': self.restore_cfg,
        'partitioner': self.partitioner,
        'checkpoint_period': self.flags.checkpoint_period,
    }
    if self.flags.output:
      folder, name = os.path.split(os.path.abspath(self.flags.output))
      yield {
          **arguments,
          'dataset_cfg': self.file_config(name=name),
          'output_dir': folder,
          'output_name': name,
      }
      return
    if isinstance(sys.stdout, io.TextIOWrapper):  # not a notebook's
      sys.stdout.reconfigure(encoding='utf-8')  # as JSON is, in any locale
    with tempfile.TemporaryDirectory() as folder:
      yield {
          **arguments,
          'dataset_cfg': self.file_config(name='outputs'),
          'output_dir': folder,
          'write_fn': _write_and_show,
          'merge_chunked_results': False,
      }

  def file_config(self, *, name: str) -> inputs.FileConfig:
    """How inputs are read."""
    return inputs.FileConfig(
        paths=self.flags.input or '-',
        task_feature_lengths=self.lengths.by_feature,
        batch_size=self._batch_size(),
        file_type=self.flags.input_type,
        inputs_key=self.flags.inputs_key,
        targets_key=self.flags.targets_key,
        add_eos=self.lengths.add_eos,
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


def _write_and_show(path: str, *arguments: Any) -> None:
  """Writes a chunk, then to standard output."""
  writing.write_inferences_to_file(path, *arguments)
  with open(path, encoding='utf-8') as file:
    shutil.copyfileobj(file, sys.stdout)
  sys.stdout.flush()


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
      gin_files=values.gin_file or (),
      gin_bindings=values.gin_bindings,
      gin_search_paths=values.gin_search_paths,
  )
  return RunCommand(
      flags=values,
      lengths=lengths_lib.Lengths.of_run(values, bound),
      model=bound.need('model'),
      partitioner=bound.make_partitioner(),
      checkpoint=checkpoint,
  )
