# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the names of T5X's in Python code, and which of them t5wild has.

The code is parsed, never run. Names are followed through imports and dotted
paths (`utils.DatasetConfig`), with Python's scopes.
"""

from __future__ import annotations

import ast
import collections
from collections.abc import Iterator
import dataclasses

from t5wild.compat import t5x_alias
from t5wild.compat import verdicts

_ROOT = 't5x'
_EXPECTED = 'a name that the table of docs/migrating_from_t5x.md lists.'
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclasses.dataclass(frozen=True)
class Call:
  """A call of an object of T5X's, with the keywords it is given by name."""

  place: str  # `module:name` of ours
  name: str  # T5X's
  line: int
  keywords: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Found:
  """What one file says of T5X."""

  names: tuple[verdicts.Name, ...]
  faults: tuple[verdicts.Fault, ...]
  calls: tuple[Call, ...]
  is_of_t5x: bool


def find(path: str, text: str) -> Found:
  """Finds T5X's names in `text`, which is the code of `path`.

  Raises:
    SyntaxError: it is no Python code.
  """
  try:
    tree = ast.parse(text, path)
  except (ValueError, RecursionError, MemoryError) as error:
    raise SyntaxError(f'{error or type(error).__name__}') from None
  visitor = _Visitor(path, text.splitlines())
  try:
    visitor.visit(tree)
  except RecursionError:
    raise SyntaxError('it is nested too deep') from None
  return Found(
      names=tuple(sorted(visitor.names)),
      faults=tuple(visitor.faults.values()),
      calls=tuple(visitor.calls),
      is_of_t5x=visitor.is_of_t5x,
  )


class _Visitor(ast.NodeVisitor):
  """Walks a file; `_scopes` says what each name means at that place.

  The value of a name is a module of T5X's, `module:name` of ours, or None
  where it is something else.
  """

  def __init__(self, path: str, lines: list[str]):
    self._path = path
    self._lines = lines
    self._scopes: list[dict[str, str | None]] = [{}]
    self.names: set[verdicts.Name] = set()
    self.faults: dict[tuple[int, str], verdicts.Fault] = {}
    self.calls: list[Call] = []
    self.is_of_t5x = False

  def visit_Module(self, node: ast.Module) -> None:
    # A function may use what is imported below it.
    for each in _within_scope(node):
      if isinstance(each, ast.Import | ast.ImportFrom):
        self._bind(each)
    self.generic_visit(node)

  def visit_Import(self, node: ast.Import) -> None:
    self._bind(node)

  def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
    self._bind(node)

  def visit_Attribute(self, node: ast.Attribute) -> None:
    if self._meaning(node) is None and not isinstance(node.value, ast.Name):
      self.visit(node.value)

  def visit_Name(self, node: ast.Name) -> None:
    self._meaning(node)

  def visit_Call(self, node: ast.Call) -> None:
    place = self._meaning(node.func)
    if place is not None and ':' in place:
      keywords = tuple(each.arg for each in node.keywords if each.arg)
      self.calls.append(
          Call(place, ast.unparse(node.func), node.lineno, keywords)
      )
    self.generic_visit(node)

  def visit(self, node: ast.AST) -> None:
    if not isinstance(node, (*_FUNCTIONS, *_COMPREHENSIONS)):
      super().visit(node)
      return
    self._scopes.append(dict.fromkeys(_own_names(node)))
    super().visit(node)
    self._scopes.pop()

  def _bind(self, node: ast.Import | ast.ImportFrom) -> None:
    scope = self._scopes[-1]
    if isinstance(node, ast.Import):
      for alias in node.names:
        if self._is_t5x(alias.name):
          known = self._module(alias.name, alias.lineno)
          scope[alias.asname or _ROOT] = (
              alias.name if alias.asname and known else _ROOT
          )
      return
    if node.level or not self._is_t5x(node.module or ''):
      return
    if not self._module(node.module, node.lineno):
      return
    for alias in node.names:
      if alias.name == '*':
        scope.update(t5x_alias.TABLE.aliases(node.module))
        continue
      scope[alias.asname or alias.name] = self._member(
          node.module, alias.name, alias.lineno
      )

  def _is_t5x(self, module: str) -> bool:
    is_t5x = module.partition('.')[0] == _ROOT
    self.is_of_t5x |= is_t5x
    return is_t5x

  def _module(self, name: str, line: int) -> bool:
    """Whether there is a module of this name; a fault where there is none."""
    if name in t5x_alias.TABLE.modules():
      return True
    self._fault('import', line, name, t5x_alias.TABLE.absent_module(name))
    return False

  def _meaning(self, node: ast.AST) -> str | None:
    """What a name or dotted path means, if it is of T5X's."""
    if isinstance(node, ast.Name):
      scopes = (s for s in reversed(self._scopes) if node.id in s)
      return next(scopes, {}).get(node.id)
    if not isinstance(node, ast.Attribute):
      return None
    owner = self._meaning(node.value)
    if owner is None or ':' in owner:
      return None
    return self._member(owner, node.attr, node.lineno)

  def _member(self, module: str, name: str, line: int) -> str | None:
    """What `name` of a module means; a fault where it is not there."""
    whole = f'{module}.{name}'
    if whole in t5x_alias.TABLE.modules():
      return whole
    places = t5x_alias.TABLE.aliases(module)
    if name in places:
      new = places[name].replace(':', '.')
      self.names.add(verdicts.Name(line, whole, new))
      return places[name]
    if name.startswith('__'):  # what every module has
      return None
    is_absent = t5x_alias.TABLE.is_absent(whole)
    what = t5x_alias.TABLE.unknown_name(module, name)
    self._fault('import' if is_absent else 'name', line, whole, what)
    return None

  def _fault(self, kind: str, line: int, name: str, what: str) -> None:
    head, *rest = what.split('\n')
    told = {
        part.partition(': ')[0].strip(): part.partition(': ')[2]
        for part in rest
    }
    self.faults[line, name] = verdicts.Fault(
        kind=kind,
        file=self._path,
        line=line,
        text=self._lines[line - 1].strip(),
        what=head,
        expected=told.get('expected', _EXPECTED),
        do=told.get('do', 'keep a copy of that code, or do without.'),
    )


def _own_names(node: ast.AST) -> Iterator[str]:
  """Names that a function or comprehension binds for itself."""
  arguments = getattr(node, 'args', None)
  if isinstance(arguments, ast.arguments):
    for each in ast.walk(arguments):
      if isinstance(each, ast.arg):
        yield each.arg
  for each in _within_scope(node):
    if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
      yield each.id


def _within_scope(node: ast.AST) -> Iterator[ast.AST]:
  """Nodes below `node`, but none of the functions inside it."""
  todo = collections.deque(ast.iter_child_nodes(node))
  while todo:
    each = todo.popleft()
    yield each
    if not isinstance(each, (*_FUNCTIONS, *_COMPREHENSIONS)):
      todo += ast.iter_child_nodes(each)
