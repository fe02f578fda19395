# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The page of a dry run, of a state made up."""

import io
import types

import pytest

from t5wild.trainer import dry_run
from t5wild.trainer import model_info


def _variable(name, shape, spec='P()'):
  return model_info.Variable(
      name=name, shape=shape, dtype='float32', spec=spec, bytes_per_device=4
  )


def _info(num_layers=12):
  kernels = [f'encoder/layers_{i}/mlp/wi_0/kernel' for i in range(num_layers)]
  return model_info.ModelInfo(
      mesh={'data': 2, 'model': 4},
      variables=[
          *(_variable(f'state/param_states/{k}/{slot}', shape)
            for k in kernels for slot, shape in (('m', (1,)), ('v', (3, 5)))),
          _variable('state/step', ()),
          _variable('target/token_embedder/embedding', (7, 3), "P('model',)"),
          *(_variable(f'target/{k}', (3, 5)) for k in kernels),
      ],
  )  # fmt: skip


@pytest.fixture
def page() -> list[str]:
  memory = types.SimpleNamespace(
      argument_size_in_bytes=5000, output_size_in_bytes=700,
      alias_size_in_bytes=600, temp_size_in_bytes=30,
  )  # fmt: skip
  stream = io.StringIO()
  compiled = types.SimpleNamespace(memory_analysis=lambda: memory)
  dry_run.print_page(
      _info(), batch_bytes=2048, compile_step=lambda: compiled, stream=stream
  )
  return stream.getvalue().splitlines()


def test_layers_that_are_alike_share_one_line(page):
  lines = [line.split() for line in page if 'kernel' in line]
  assert lines == [
      ['12', 'x', 'encoder/layers_*/mlp/wi_0/kernel', '(3,', '5)', 'float32',
       'P()']
  ]  # fmt: skip
  assert any("token_embedder/embedding" in line and "P('model',)" in line
             for line in page)


def test_placeholders_of_an_optimizer_are_counted_and_not_listed(page):
  head = next(line for line in page if line.startswith('optimizer'))
  assert '12 placeholders' in head
  assert '181 numbers' in head  # twelve of 15, and the step
  assert not any(line.split()[:3] == ['12', 'x', 'm'] for line in page)
  assert any(line.split()[:4] == ['12', 'x', 'v', '180'] for line in page)


def test_memory_stands_by_kind_and_what_is_donated_counts_once(page):
  of_kind = {
      ' '.join(line.split()[1:2]): line.split()[0]
      for line in page[page.index('bytes per device:') + 1 :]
      if line.startswith('  ')
  }
  assert of_kind['batch'] == '2,048'
  assert of_kind['the'] == f'{5000 + 700 - 600 + 30:,}'
  assert of_kind['parameters'] == f'{4 * 13}'


def test_the_page_ends_with_the_configuration(page):
  assert 'operative config:' in page
