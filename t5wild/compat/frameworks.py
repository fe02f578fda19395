# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Knows the configurations of other frameworks from those of T5X."""

from __future__ import annotations

from collections.abc import Iterable
import os
import pathlib
import re

# Module, by which a gin file is known -> whose files those are.
_OF_MODULES = {
    'ddsp': 'DDSP',
    'dopamine': 'Dopamine',
    'magenta': 'Magenta',
    'mesh_tensorflow': 'Mesh-TensorFlow',
    't5.models': 'T5 on Mesh-TensorFlow',
    'tensor2tensor': 'Tensor2Tensor',
    'tf_agents': 'TF-Agents',
    'trax': 'Trax',
}
# A gin file that imports one of these is for T5X or for us.
_T5X = ('t5x', 't5wild', 'seqio', 't5.data', 't5.evaluation', 'flaxformer')
_YAML = ('.yaml', '.yml')
# Framework, endings of its files, and what all of them have.
_OF_TEXTS = (
    (
        'MaxText', _YAML,
        (r'^(base_emb_dim|per_device_batch_size|ici_\w+_parallelism'
         r'|base_num_decoder_layers|base_config)\s*:',),
    ),
    ('Axolotl', _YAML, (r'^base_model\s*:', r'^(sequence_len|adapter)\s*:')),
    ('NeMo', _YAML, (r'^trainer\s*:', r'^exp_manager\s*:')),
    ('Levanter', _YAML, (r'^trainer\s*:', r'^\s+(tracker|mp)\s*:')),
    (
        'torchtitan', ('.toml',),
        (r'^\[(job|training|parallelism|model)\]',
         r'^(flavor|dump_folder|data_parallel_shard_degree)\s*='),
    ),
    ('DeepSpeed', ('.json',), (r'"zero_optimization"\s*:',)),
    ('Hugging Face transformers', ('.json',), (r'"model_type"\s*:',)),
)  # fmt: skip
_IMPORT = re.compile(r'^(?:import|from)\s+([\w.]+)', re.MULTILINE)
# Endings of configurations that are never gin.
_NOT_GIN = (*_YAML, '.toml', '.json', '.ini', '.cfg', '.xml', '.pbtxt')


def is_never_gin(path: str) -> bool:
  """Whether a file of this name is no gin file, whatever is in it."""
  return path.lower().endswith(_NOT_GIN)


def of_modules(modules: Iterable[str]) -> tuple[str, str] | None:
  """The framework that a gin file's imports are of, and the import that tells.

  None where there is none of these, or where T5X's are among them.
  """
  found = None
  for module in modules:
    if any(_is_within(module, ours) for ours in _T5X):
      return None
    for known, framework in _OF_MODULES.items():
      if found is None and _is_within(module, known):
        found = framework, module
  return found


def of_text(path: str, text: str) -> str | None:
  """The framework whose configuration this is, told by its keys; or None."""
  ending = os.path.splitext(path)[1].lower()
  for framework, endings, marks in _OF_TEXTS:
    if ending in (*endings, '.gin') and all(
        re.search(mark, text, re.MULTILINE) for mark in marks
    ):
      return framework
  return None


def told_of_files(paths: Iterable[str]) -> str:
  """Which of a command's gin files are another framework's; '' if none is."""
  told = []
  for path in paths:
    try:
      text = pathlib.Path(path).read_text(encoding='utf-8', errors='replace')
    except OSError:
      continue  # it is somewhere else, or not there: told by who reads it
    found = of_modules(_IMPORT.findall(text))
    framework = found[0] if found else of_text(path, text)
    if framework:
      told.append(
          f'{path} is a configuration of {framework}, no recipe of T5X.\n'
          '  expected: a gin file that names code of T5X or of t5wild.\n'
          '  do: write it anew as a recipe: docs/recipes.md shows how.\n'
      )
  return '\n'.join(told)


def _is_within(module: str, package: str) -> bool:
  return f'{module}.'.startswith(f'{package}.')
