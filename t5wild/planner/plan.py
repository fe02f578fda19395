# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild plan`: how to spread a recipe over a machine, before renting it."""

from collections.abc import Mapping, Sequence
import dataclasses
import pathlib
import sys
import tempfile
from typing import Any

from absl import flags

from t5wild import command_line
from t5wild import exit_codes
from t5wild.planner import compile as compile_lib
from t5wild.planner import environment
from t5wild.planner import flag_values
from t5wild.planner import search
from t5wild.planner import timing
from t5wild.planner import topologies

_GIB = 2**30
_SHOWN = 12
_TRIED_PER_CONFIRMED = 2  # as many more are tried where a compiler says no
_DAY = 86400


@dataclasses.dataclass(frozen=True, kw_only=True)
class Confirmed:
  """What the real compiler says of a candidate.

  Attributes:
    peak_bytes: of a device; None where it compiled nothing.
    seconds: that compiling took.
    note: why there is no figure.
  """

  peak_bytes: int | None
  seconds: float
  note: str = ''


def define_flags() -> None:
  """Defines the command line, once."""
  command_line.define_flags()
  if 'devices' in flags.FLAGS:
    return
  flags.DEFINE_string(
      'devices', None, 'The machine: h100:64, h100:8x8, v5p:64, v5e:16x16, ...'
  )
  flags.DEFINE_integer(
      'confirm', 2, 'How many of the best the real compiler confirms; 0: none.'
  )
  flags.DEFINE_list(
      'dtypes', None, "Precisions to try: types of activations, such as "
      "bfloat16; 'fp8' or 'int8' (bfloat16 whose dense layers multiply such "
      "numbers). Else the recipe's own."
  )
  flags.DEFINE_float(
      'price_per_device_hour', None, 'For the money; in any currency.'
  )
  flags.DEFINE_string(
      'plan_gin', None, 'Where the best is written as a gin file.'
  )
  flags.DEFINE_float(
      'confirm_timeout_seconds', 1200.0, 'After which a compiler is ended.'
  )


def _help() -> str:
  return (
      'usage: t5wild plan --gin_file=FILE ... --devices=h100:64\n\n'
      'Searches meshes, parameter and activation partitioning, '
      'rematerialisation,\nmicrobatches and precision by arithmetic, has the '
      'real compiler confirm the best,\nand prints them ranked. '
      '--plan_gin=FILE writes the best as gin.\n\n'
      + command_line.flags_help(__name__)
  )


def _check_flags() -> None:
  values = flags.FLAGS
  if not values.devices:
    raise ValueError(
        '--devices is missing.\nExpected the machine to plan for.\nGive for '
        'example --devices=h100:64.'
    )
  topology = topologies.parse(values.devices)
  if topology.chip is None:
    raise ValueError(
        f'--devices={values.devices} are CPUs.\nExpected GPUs or TPUs, whose '
        'speeds are known.\nGive for example --devices=h100:64.'
    )
  if not values.gin_file:
    raise ValueError(
        '--gin_file is missing: expected a recipe, at least. Give one of '
        'yours, or one of ours, such as --gin_file=recipes/quickstart.gin.'
    )
  if values.confirm < 0:
    raise ValueError(
        f'--confirm={values.confirm}: expected how many to compile, at least '
        '0. Give --confirm=2.'
    )
  flag_values.check_above_zero(
      'price_per_device_hour', values.price_per_device_hour, example='2.5'
  )
  flag_values.check_above_zero(
      'confirm_timeout_seconds', values.confirm_timeout_seconds, example='1200'
  )
  flag_values.check_file('plan_gin', values.plan_gin)
  known = search.precisions_on(topology.chip)
  for precision in values.dtypes or ():
    if precision not in known:
      raise ValueError(
          f'--dtypes names {precision!r}.\nExpected one of {known} on '
          f'{topology.chip.name}.\nGive for example --dtypes=bfloat16.'
      )


def run(argv: Sequence[str]) -> int:
  """Runs the command; returns one of `exit_codes`."""
  define_flags()
  code = command_line.exit_code_of_flags(
      argv, make_help=_help, check=_check_flags
  )
  if code is not None:
    return code
  values = flags.FLAGS
  topology = topologies.parse(values.devices)
  arguments = recipe_arguments(argv[1:])
  try:
    if values.confirm:
      environment.check_plugin(topology.platform)
    described = compile_lib.describe_splits(arguments, topology)
  except (compile_lib.RefusedError, environment.MissingPluginError) as error:
    print(  # noqa: T201 -- the product
        f'{error}\n(--confirm=0 plans by arithmetic alone.)'
        if isinstance(error, environment.MissingPluginError)
        else error,
        file=sys.stderr,
    )
    return exit_codes.BAD_CONFIG.code
  except compile_lib.CompilerEndedError as error:
    print(error, file=sys.stderr)  # noqa: T201 -- the product
    return exit_codes.FAILED.code
  return _tell(described, topology, arguments, values)


def recipe_arguments(argv: Sequence[str]) -> list[str]:
  """The command line without the flags of this command."""
  own = {flag.name for flag in flags.FLAGS.flags_by_module_dict()[__name__]}
  kept, skip = [], False
  for word in argv:
    name, equals, _ = word.lstrip('-').partition('=')
    if skip:
      skip = False
    elif word.startswith('-') and name in own:
      skip = not equals
    else:
      kept.append(word)
  return kept


def _tell(
    described: Mapping[str, Any],
    topology: topologies.Topology,
    arguments: Sequence[str],
    values: Any,
) -> int:
  facts = described['recipe']
  found = search.candidates(
      facts,
      topology,
      sizes_of={
          search.Split(**each['split']): each['bytes']
          for each in described['splits']
      },
      precisions=(
          values.dtypes or [search.precision_of(facts, topology.chip)]
      ),
  )
  if not found:
    print(_no_split(facts, topology), file=sys.stderr)  # noqa: T201 -- the product
    return exit_codes.BAD_CONFIG.code
  confirmed = _confirm(found, facts, topology, arguments, values)
  best = best_of(found, confirmed, topology)
  print(text(  # noqa: T201 -- the product
      found, confirmed, facts, topology, price=values.price_per_device_hour
  ))
  if best is None:
    print(  # noqa: T201 -- the product
        '\nNothing fits: take more or larger devices, or a smaller batch.'
    )
    return exit_codes.DOES_NOT_FIT.code
  if values.plan_gin:
    path = pathlib.Path(values.plan_gin)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_gin(
        best, facts, topology, confirmed=confirmed.get(found.index(best))
    ))
    print(  # noqa: T201 -- the product
        f'\nwritten: {path}; train with --gin_file={path} after the recipe'
    )
  return exit_codes.DONE.code


def _no_split(facts: Mapping[str, Any], topology: topologies.Topology) -> str:
  rows = facts['batch']['decoder_target_tokens'][0]
  least = search.least_rows(
      topology,
      num_heads=facts['shape']['num_heads'],
      lengths=search.lengths_of(facts),
  )
  devices = topology.num_devices
  return (
      f'BATCH_SIZE {rows} divides over none of the meshes of {devices} '
      'devices.\n'
      f'Expected a multiple of {least}'
      + (f', better of {devices}: ' if least < devices else ': ')
      + 'a row of each batch for each device, or for as many as share it.\n'
      f'Set BATCH_SIZE = {-(-rows // devices) * devices}, or take fewer '
      'devices.'
  )


def _gin(
    candidate: search.Candidate,
    facts: Mapping[str, Any],
    topology: topologies.Topology,
    *,
    confirmed: Confirmed | None = None,
) -> str:
  time = candidate.time
  compiled = ''
  if confirmed is not None and confirmed.peak_bytes is not None:
    compiled = f'; compiled: {confirmed.peak_bytes / _GIB:.1f}'
  return search.gin_text(
      candidate,
      config=facts['config'],
      head=(
          f'Written by t5wild plan --devices={topology.name}. Give it after '
          f'the recipe.\nPredicted: {time.best:.3g} to {time.worst:.3g} s a '
          f'step, {candidate.memory.peak / _GIB:.1f} GiB of a device{compiled}.'
      ),
  )


def _confirm(
    found: Sequence[search.Candidate],
    facts: Mapping[str, Any],
    topology: topologies.Topology,
    arguments: Sequence[str],
    values: Any,
) -> dict[int, Confirmed]:
  """Index of a candidate -> what the compiler says, until enough fit."""
  confirmed: dict[int, Confirmed] = {}
  fitting = 0
  for index in range(min(len(found), values.confirm * _TRIED_PER_CONFIRMED)):
    if fitting == values.confirm or not found[index].fits:
      break
    with tempfile.TemporaryDirectory(prefix='t5wild-plan-') as folder:
      file = pathlib.Path(folder, 'plan.gin')
      file.write_text(_gin(found[index], facts, topology))
      request = compile_lib.Request(
          arguments=[*arguments, f'--gin_file={file}'],
          topology=topology,
          timeout_seconds=values.confirm_timeout_seconds,
          timeout_flag='confirm_timeout_seconds',
      )
      confirmed[index] = _compiled(request)
    peak = confirmed[index].peak_bytes
    fitting += peak is not None and peak <= topology.chip.memory_bytes
  return confirmed


def _compiled(request: compile_lib.Request) -> Confirmed:
  try:
    found = compile_lib.compile_recipe(request).programs['train']
  except compile_lib.RefusedError as error:
    return Confirmed(peak_bytes=None, seconds=0.0, note=str(error))
  except compile_lib.CompilerEndedError as error:
    return Confirmed(
        peak_bytes=None, seconds=0.0, note=str(error).splitlines()[0]
    )
  memory = found['memory'] or {'peak': found.get('needed_bytes')}
  return Confirmed(
      peak_bytes=memory['peak'], seconds=found['compile_seconds']
  )


def best_of(
    found: Sequence[search.Candidate],
    confirmed: Mapping[int, Confirmed],
    topology: topologies.Topology,
) -> search.Candidate | None:
  """The first that fits: by the compiler's word where it was asked."""
  for index, candidate in enumerate(found):
    if index not in confirmed:
      if candidate.fits and not confirmed:
        return candidate
      continue
    peak = confirmed[index].peak_bytes
    if peak is not None and peak <= topology.chip.memory_bytes:
      return candidate
  return None


def text(
    found: Sequence[search.Candidate],
    confirmed: Mapping[int, Confirmed],
    facts: Mapping[str, Any],
    topology: topologies.Topology,
    *,
    price: float | None,
) -> str:
  """The ranked table."""
  heads = [
      'mesh', 'parameters', 'activations', 'remat', 'parts', 'dtype', 'fits',
      'GiB', 'compiled', 's/step', 'MFU', 'tokens/s', 'days',
      *(['money'] if price is not None else []),
  ]  # fmt: skip
  rows = [
      _row(found[i], confirmed.get(i), facts, topology, price)
      for i in _shown(found, confirmed)
  ]
  widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
  lines = [
      '  '.join(map(str.ljust, row, widths)).rstrip() for row in (heads, *rows)
  ]
  chip = topology.chip
  return '\n'.join([
      f'{topology.num_devices} x {chip.name} ({topology.name}), '
      f'{chip.memory_bytes / _GIB:.1f} GiB each; '
      f'{facts["num_parameters"]:,} parameters; {len(found)} ways looked at',
      'ranges: best to worst of planner/timing.py; fits: as compiled, else '
      f'predicted with {search.MARGIN - 1:.0%} to spare',
      '',
      *lines,
      *(f'the compiler, of the {i + 1}. of these: {each.note}'
        for i, each in confirmed.items() if each.note),
  ])


def _shown(
    found: Sequence[search.Candidate], confirmed: Mapping[int, Confirmed]
) -> list[int]:
  """Which candidates the table has: of like ones the best, and all compiled.

  Alike are those that differ only in the number of microbatches. The best of
  each precision is there, however many of another are better.
  """
  shown, seen, precisions = [], set(), set()
  for index, candidate in enumerate(found):
    precision = candidate.precision
    kind = (candidate.split, candidate.step.remat_policy, precision)
    is_new = index in confirmed or kind not in seen
    if (is_new and len(shown) < _SHOWN) or precision not in precisions:
      shown.append(index)
    seen.add(kind)
    precisions.add(precision)
  return shown


def _row(candidate, confirmed, facts, topology, price) -> list[str]:
  split, step, time = candidate.split, candidate.step, candidate.time
  mesh = ' x '.join(f'{a} {n}' for a, n in split.mesh.items() if n > 1)
  tokens = timing.tokens_of_step(step)
  steps = facts['total_steps'] or 0
  compiled, fits = '-', candidate.fits
  if confirmed is not None and confirmed.peak_bytes is not None:
    compiled = f'{confirmed.peak_bytes / _GIB:.1f}'
    fits = confirmed.peak_bytes <= topology.chip.memory_bytes
  efficiency = [
      timing.mfu(step, topology, dtype=candidate.dtype, seconds=seconds)
      for seconds in (time.worst, time.best)
  ]
  row = [
      mesh or 'one device',
      f'{split.parameter_dims}D', f'{split.activation_dims}D',
      step.remat_policy, str(step.num_microbatches), candidate.precision,
      'yes' if fits else 'no',
      f'{candidate.memory.peak / _GIB:.1f}', compiled,
      f'{time.best:.3g} to {time.worst:.3g}',
      f'{efficiency[0]:.0%} to {efficiency[1]:.0%}',
      f'{tokens / time.worst:.3g} to {tokens / time.best:.3g}',
      f'{steps * time.best / _DAY:.3g} to {steps * time.worst / _DAY:.3g}',
  ]  # fmt: skip
  if price is not None:
    costs = [
        timing.money(
            seconds=steps * seconds,
            num_devices=topology.num_devices,
            price_per_device_hour=price,
        )
        for seconds in (time.best, time.worst)
    ]
    row.append(f'{costs[0]:,.0f} to {costs[1]:,.0f}')
  return row
