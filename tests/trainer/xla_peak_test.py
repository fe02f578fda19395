# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The peak that steps are held against."""

import concurrent.futures

import jax
import jax.numpy as jnp
import pytest

from t5wild import hardware
from t5wild.trainer import model_info
from t5wild.trainer import xla_peak


def test_no_product_here_is_much_faster_than_the_measured_peak():
  size = 512
  peak = xla_peak.measure_matmul_flops_per_second(size)
  matrix = jnp.ones((size, size))
  product = jax.jit(lambda x: x @ x)
  seconds = hardware.fastest_seconds(
      lambda: product(matrix).block_until_ready(), seconds=0.05
  )
  # A noisy neighbour may have left one of the two measurements halved.
  assert 0.3 < 2 * size**3 / seconds / peak < 3


@pytest.fixture
def start(tmp_path, monkeypatch):
  """Starts where a product is measured to be so fast; returns the peak."""
  folder = tmp_path / 'cache'
  monkeypatch.setattr(xla_peak.compilation_cache, 'folder', lambda: str(folder))

  def measure(value):
    monkeypatch.setattr(
        xla_peak, 'measure_matmul_flops_per_second', lambda: value
    )
    return xla_peak.highest_matmul_flops_per_second()

  return measure


def test_a_start_under_load_is_held_against_the_highest_peak_of_all(start):
  measured = [163e9, 478e9, 163e9, 500e9, 478e9]
  assert list(map(start, measured)) == [163e9, 478e9, 478e9, 500e9, 500e9]


def test_mfu_is_of_the_highest_peak(start, make_run):
  model = make_run.model(config_changes=make_run.small)
  shapes = {'encoder_input_tokens': (2, 4), 'decoder_target_tokens': (2, 4)}
  start(3e15)
  start(1e9)
  cost = model_info.step_cost(model, shapes)
  assert cost.peak_flops_per_second == 3e15


@pytest.mark.parametrize(
    ('name', 'value'),
    [('cpu', 'another'), ('cores', 1000), ('share', '1 2'), ('jax', '0.1')],
)
def test_the_peak_of_another_machine_is_not_taken(
    start, monkeypatch, name, value
):
  here = xla_peak._machine()
  start(5e9)
  monkeypatch.setattr(xla_peak, '_machine', lambda: here | {name: value})
  assert start(2e9) == 2e9
  monkeypatch.setattr(xla_peak, '_machine', lambda: here)
  assert start(2e9) == 5e9


@pytest.mark.parametrize(
    'content',
    [
        b'', b'\x80\xff\n', b'[1, 2]\n7\nnull\n"text"\n', b'[' * 100_000,
        b'{"matmul_flops_per_second": ', b'1' * 9000,
    ],
)  # fmt: skip
def test_a_bad_file_is_ignored_and_added_to(start, tmp_path, content):
  (tmp_path / 'cache').mkdir()
  (tmp_path / 'cache' / xla_peak.FILE).write_bytes(content)
  assert start(4e9) == 4e9
  assert start(2e9) == 4e9


@pytest.mark.parametrize(
    'value', ['Infinity', 'NaN', '-1.0', 'true', '"9e9"', 'null', '1' * 400]
)
def test_a_number_that_is_no_speed_is_ignored(start, tmp_path, value):
  start(1e9)
  file = tmp_path / 'cache' / xla_peak.FILE
  assert file.read_text().count('1000000000.0') == 1
  file.write_text(file.read_text().replace('1000000000.0', value))
  assert start(4e9) == 4e9


def test_a_folder_that_cannot_be_written_is_no_error(start, tmp_path):
  (tmp_path / 'cache').write_text('a file')
  assert start(4e9) == 4e9
  assert start(2e9) == 2e9


@pytest.mark.parametrize('folder', [None, 'gs://bucket/cache'])
def test_without_a_local_folder_nothing_is_kept(start, monkeypatch, folder):
  monkeypatch.setattr(xla_peak.compilation_cache, 'folder', lambda: folder)
  assert start(4e9) == 4e9
  assert start(2e9) == 2e9


def test_processes_at_one_time_lose_none_of_their_measurements(start, tmp_path):
  file = tmp_path / 'cache' / xla_peak.FILE
  machine = xla_peak._machine()
  records = [
      {**machine, 'matmul_flops_per_second': float(i)} for i in range(1, 201)
  ]
  with concurrent.futures.ThreadPoolExecutor(8) as pool:
    list(pool.map(lambda record: xla_peak._add(file, record), records))
  assert sorted(xla_peak._known(file, machine)) == list(range(1, 201))
  assert start(5.0) == 200
