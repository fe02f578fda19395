# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Judges gin files and flags before gin reads them.

gin accepts silently a misspelt macro, a misspelt scope, a wrong type, and a
second binding of one name in one file; here each is refused with its file and
line. What a later file or flag overrides is left alone: so T5X recipes work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
import difflib
import importlib
from typing import Any

import gin

from t5wild.gin_config import findings
from t5wild.gin_config import names
from t5wild.gin_config import reader
from t5wild.gin_config import signatures

Report = findings.Report
Seen = findings.Seen

REQUIRED = reader.Macro('gin.REQUIRED')
# Placeholders for the example line of a missing macro.
_EXAMPLES = {
    'BATCH_SIZE': '128',
    'DROPOUT_RATE': '0.1',
    'INITIAL_CHECKPOINT_PATH': '/path/to/checkpoint_1000000',
    'MIXTURE_OR_TASK_MODULE': 't5wild.tasks.local_text',
    'MIXTURE_OR_TASK_NAME': 'my_task',
    'MODEL_DIR': '/path/to/my_run',
    'TASK_FEATURE_LENGTHS': '"{\'inputs\': 512, \'targets\': 114}"',
    'TRAIN_STEPS': '10000',
}
_MENDS = {
    'MODEL': 'add a model file before it: --gin_file=models/t5_1_1/small.gin',
}
_SCOPES_ENTERED_BY_PYTHON: set[str] = set()


def declare_scopes(*names: str) -> None:
  """Tells the lint of scopes that Python enters (`gin.config_scope(name)`)."""
  _SCOPES_ENTERED_BY_PYTHON.update(names)


def lint(
    files: Sequence[reader.GinFile],
    bindings: Sequence[reader.Binding] = (),
    *,
    skip_unknown: bool | Sequence[str] = False,
    load: Callable[[str], Any] = importlib.import_module,
) -> Report:
  """Checks `files`, then `bindings` (from flags), as gin will read them.

  Imports the modules that the files import, and changes nothing in gin.

  Args:
    files: in the order gin is to read them.
    bindings: from flags.
    skip_unknown: as gin's: names that may be unknown without being an error.
    load: imports a module by its name; ImportError where there is none.
  """
  report = Report()
  walker = _Walker(report, skip_unknown, load)
  for file in files:
    walker.visit(file)
  report.flag_names = names.CommandLineNames(
      report.tables, report.targets.values()
  )
  for binding in bindings:
    walker.binding(binding, report.flag_names.find, None)
  last = last_bindings(report.seen)
  _check_macros(report, last)
  _check_scopes(report)
  _check_types(report, last)
  _check_required(report, last)
  return report


class _Walker:
  """Walks statements in gin's order and resolves every name in them."""

  def __init__(
      self,
      report: Report,
      skip_unknown: bool | Sequence[str],
      load: Callable[[str], Any],
  ):
    self._report = report
    self._skip_unknown = skip_unknown
    self._load = load

  def visit(self, file: reader.GinFile) -> None:
    """Reads one file, and the files it includes where it includes them."""
    symbols = names.Symbols(self._report.targets, self._load)
    self._report.tables.append(symbols)
    first: dict[Any, Seen] = {}
    for statement in file.statements:
      if isinstance(statement, reader.Include):
        self.visit(statement.file)
      elif isinstance(statement, reader.Import):
        self._import(statement, symbols)
      elif isinstance(statement, reader.Block):
        self._resolve(statement.name, symbols.find, statement.place)
      else:
        seen = self.binding(statement, symbols.find, file)
        self._check_duplicate(seen, first)

  def binding(
      self,
      binding: reader.Binding,
      find: Callable[[str], names.Target],
      file: reader.GinFile | None,
  ) -> Seen:
    """Resolves what `binding` binds and what its value refers to."""
    target = None
    if not binding.is_macro:
      target = self._resolve(binding.name, find, binding.place)
      self._check_parameter(binding, target)
    for value in leaves(binding.value):
      if isinstance(value, reader.Macro):
        self._report.reads.setdefault(value.name, []).append(binding)
      elif isinstance(value, reader.Reference):
        self._reference(value, find, binding)
    seen = Seen(binding, target, file)
    self._report.seen.append(seen)
    return seen

  def _import(
      self, statement: reader.Import, symbols: names.Symbols
  ) -> None:
    try:
      symbols.add(statement.statement)
    except ImportError as error:
      self._report.add(
          'import', statement.place,
          what=names.import_problem(statement.statement, error),
          expected='a module that Python can import, written `from a import '
          'b` or `import a.b`.',
          do='mend the name, install what is missing, or put its folder on '
          'PYTHONPATH.',
          is_hint=bool(self._skip_unknown),
      )

  def _reference(
      self,
      reference: reader.Reference,
      find: Callable[[str], names.Target],
      binding: reader.Binding,
  ) -> None:
    if reference.name in ('macro', 'gin.macro'):
      name = '/'.join(reference.scopes)
      self._report.reads.setdefault(name, []).append(binding)
      return
    for end in range(len(reference.scopes)):
      self._report.entered.add('/'.join(reference.scopes[: end + 1]))
    self._resolve(reference.name, find, binding.place)

  def _resolve(
      self,
      name: str,
      find: Callable[[str], names.Target],
      place: reader.Place,
  ) -> names.Target | None:
    try:
      target = find(name)
    except names.UnknownNameError as error:
      self._report.add(
          'name', place,
          what=f'unknown name {name!r}: {error}',
          expected='a function or class of a module that this file imports.',
          do='mend the name, or import its module at the head of the file.',
          is_hint=self._may_be_unknown(name),
      )
      return None
    self._report.targets.setdefault(target.path, target)
    self._report.names_of.setdefault(place.file, {})[name] = target
    return target

  def _may_be_unknown(self, name: str) -> bool:
    if isinstance(self._skip_unknown, bool):
      return self._skip_unknown
    return name in self._skip_unknown

  def _check_parameter(
      self, binding: reader.Binding, target: names.Target | None
  ) -> None:
    if target is None:
      return
    source = target.signature_source
    if signatures.accepts(source, binding.parameter):
      return
    known = list(signatures.parameters_of(source) or ())
    hint = reader.did_you_mean(binding.parameter, known)
    self._report.add(
        'parameter', binding.place,
        what=f'{binding.name!r} has no parameter {binding.parameter!r}{hint}',
        expected=f'one of {", ".join(known) or "no parameter at all"}.',
        do='mend the name, or remove the line.',
    )

  def _check_duplicate(self, seen: Seen, first: dict[Any, Seen]) -> None:
    binding = seen.binding
    owner = seen.target.identity if seen.target else binding.name
    key = (binding.scope, owner, binding.parameter)
    before = first.setdefault(key, seen).binding
    first[key] = seen
    # T5X recipes declare a macro as REQUIRED and set it further down.
    if before is binding or before.value == REQUIRED:
      return
    self._report.add(
        'duplicate', binding.place,
        what=f'{binding.key!r} is bound a second time in this file; the first '
        f'is\n    {before.place}',
        expected='one binding of a name in one file (a later file or flag may '
        'override it).',
        do='remove one of the two lines.',
    )


def leaves(value: Any) -> Iterator[Any]:
  """Every value inside `value` that is no container."""
  if isinstance(value, dict):
    for key, item in value.items():
      yield from leaves(key)
      yield from leaves(item)
  elif isinstance(value, (list, tuple)):
    for item in value:
      yield from leaves(item)
  else:
    yield value


def last_bindings(seen: Iterable[Seen]) -> dict[Any, Seen]:
  """What holds in the end: the last binding of each name."""
  last = {}
  for each in seen:
    binding = each.binding
    if binding.is_macro:
      last['macro', binding.macro_name] = each
    elif each.target is not None:
      key = (binding.scope, each.target.identity, binding.parameter)
      last[key] = each
  return last


def _check_macros(report: Report, last: dict[Any, Seen]) -> None:
  defined = {key[1] for key in last if key[0] == 'macro' and len(key) == 2}
  defined |= _macros_gin_has()
  for name, readers in report.reads.items():
    if name in defined or gin.config._CONSTANTS.matching_selectors(name):
      continue
    known = [*defined, 'gin.REQUIRED']
    report.add(
        'macro', readers[0].place,
        what=f'unknown macro %{name}{reader.did_you_mean(name, known)}',
        expected='a macro that some file or flag sets.',
        do=_MENDS.get(name)
        or f'mend the name, or set it: --gin.{name}={_example(name)}',
    )
  for name in sorted(defined - report.reads.keys()):
    if ('macro', name) in last:
      _report_unread(report, last['macro', name])


def _report_unread(report: Report, seen: Seen) -> None:
  """An unread macro: an error in our recipes, else a hint.

  A flag that is nearly the name of a macro that is read is an error too: it
  would train another model than asked for.
  """
  name = seen.binding.macro_name
  hint = reader.did_you_mean(name, list(report.reads), cutoff=0.75)
  report.add(
      'unread', seen.binding.place,
      what=f'nothing reads the macro {name!r}{hint}',
      expected=f'a macro that some binding reads as %{name}.',
      do='mend the name, or remove the line.',
      is_hint=not (seen.is_ours or (seen.file is None and hint)),
  )


def _check_scopes(report: Report) -> None:
  entered = report.entered | _SCOPES_ENTERED_BY_PYTHON
  for seen in report.seen:
    scope = seen.binding.scope
    if not scope or seen.binding.is_macro or scope in entered:
      continue
    hint = reader.did_you_mean(scope, list(entered), cutoff=0.75)
    known = ', '.join(map(repr, sorted(entered))) or 'none at all'
    report.add(
        'scope', seen.binding.place,
        what=f'nothing enters the scope {scope!r}, so this binds nothing{hint}',
        expected=f'a scope that some @scope/name enters: {known}.',
        do='mend the scope, or remove the line (Python code that enters it '
        'tells so with lint.declare_scopes).',
        is_hint=not (seen.is_ours or hint),
    )


def _check_types(report: Report, last: dict[Any, Seen]) -> None:
  told = set()  # one macro may be behind several bindings: it is one mistake
  for seen in last.values():
    if seen.target is None:
      continue
    source = seen.target.signature_source
    parameter = seen.binding.parameter
    annotation = signatures.annotation_of(source, parameter)
    value, place = _resolved(seen.binding, last)
    if signatures.fits(value, annotation):
      continue
    expected = signatures.describe(annotation)
    if (str(place), expected) in told:
      continue
    told.add((str(place), expected))
    report.add(
        'type', place,
        what=f'{seen.binding.key!r} is given {_shown(value)}, '
        f'of type {type(value).__name__}',
        expected=f'{expected} (as {seen.target.path} declares {parameter!r}).',
        do=f'write a value of that type{_mend(value, expected)}.',
        is_hint=not seen.target.is_ours,
    )


def _resolved(
    binding: reader.Binding, last: dict[Any, Seen]
) -> tuple[Any, reader.Place]:
  """The value behind a chain of macros, and where it was written."""
  value, place = binding.value, binding.place
  for _ in range(20):  # a chain of macros, or a circle that gin refuses
    if not isinstance(value, reader.Macro):
      break
    found = last.get(('macro', value.name))
    if found is None:
      break
    value, place = found.binding.value, found.binding.place
  return value, place


def _check_required(report: Report, last: dict[Any, Seen]) -> None:
  """Lists everything still to be set in one error, with one example line."""
  missing = {}
  for seen in last.values():
    if seen.binding.value == REQUIRED:
      binding = seen.binding
      key = binding.macro_name if binding.is_macro else binding.key
      missing[key] = binding.place
  if not missing:
    return
  lines = [
      f'    {key}  ({at.file}:{at.line}){_meant(key, report, last)}'
      for key, at in missing.items()
  ]
  flags = ' '.join(f'--gin.{key}={_example(key)}' for key in missing)
  report.add(
      'required',
      f'{len(missing)} required value{"s" * (len(missing) > 1)} not set:',
      what='\n'.join(lines)[2:],
      expected='a value for each, in a gin file or as a flag.',
      do=f'for example add\n    {flags}',
  )


def _meant(key: str, report: Report, last: dict[Any, Seen]) -> str:
  """A hint at a macro that is set, read by nothing and named almost so."""
  macros = {at[1] for at in last if at[0] == 'macro' and len(at) == 2}
  unread = sorted(macros - report.reads.keys())
  close = difflib.get_close_matches(key, unread, 1, 0.75)
  return f'; {close[0]!r} is set: did you mean {key!r}?' if close else ''


def _macros_gin_has() -> set[str]:
  """Macros set by an earlier call, which these files may read."""
  config = gin.config._CONFIG
  return {scope for scope, selector in config if selector == 'gin.macro'}


def _example(name: str) -> str:
  return _EXAMPLES.get(name, 'VALUE')


def _shown(value: Any) -> str:
  if isinstance(value, reader.Reference):
    return f'@{"/".join([*value.scopes, value.name])}'
  return repr(value)


def _mend(value: Any, expected: str) -> str:
  """A close value that would do, where one is plain to see."""
  if isinstance(value, float) and value.is_integer() and 'int' in expected:
    return f', such as {int(value)}'
  if isinstance(value, str) and reader.is_value(value.title()):
    return f', such as {value.title()} (without quotes)'
  is_reference = isinstance(value, reader.Reference)
  return f', such as {_shown(value)}()' if is_reference else ''
