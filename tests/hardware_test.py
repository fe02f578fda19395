# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The table of chips against JAX's own table and known device kinds."""

import pytest

from t5wild import hardware


@pytest.mark.parametrize(
    ('device_kind', 'name'),
    [
        ('NVIDIA H100 80GB HBM3', 'H100'),
        ('NVIDIA H100 PCIe', 'H100 PCIe'),
        ('NVIDIA H100 NVL', 'H100 NVL'),
        ('NVIDIA H200', 'H200'),
        ('NVIDIA GH200 480GB', 'GH200'),
        ('NVIDIA A100-SXM4-40GB', 'A100 40GB'),
        ('NVIDIA A100-SXM4-80GB', 'A100 80GB'),
        ('NVIDIA A100-PCIE-40GB', 'A100 40GB'),
        ('NVIDIA A100 80GB PCIe', 'A100 80GB PCIe'),
        ('NVIDIA B200', 'B200'),
        ('NVIDIA L4', 'L4'),
        ('NVIDIA L40S', 'L40S'),
        ('NVIDIA A10G', 'A10G'),
        ('NVIDIA A10', 'A10'),
        ('Tesla T4', 'T4'),
        ('Tesla V100-SXM2-16GB', 'V100 16GB'),
        ('TPU v3', 'TPU v3 core'),
        ('TPU v4', 'TPU v4'),
        ('TPU v5 lite', 'TPU v5e'),
        ('TPU v5', 'TPU v5p'),
        ('TPU v5p', 'TPU v5p'),
        ('TPU v6 lite', 'TPU v6e'),
        ('TPU v6e', 'TPU v6e'),
        ('TPU7x', 'TPU v7x core'),
    ],
)
def test_device_kinds_that_jax_reports_find_their_row(device_kind, name):
  assert hardware.chip_of(device_kind).name == name


def test_an_unknown_chip_is_none_and_no_error():
  assert hardware.chip_of('Quantum Abacus 3000') is None


@pytest.mark.parametrize(
    ('device_kind', 'version', 'num_cores'),
    [
        ('TPU v4', 'TPU_V4', 2),
        ('TPU v5 lite', 'TPU_V5E', 1),
        ('TPU v5p', 'TPU_V5P', 2),
        ('TPU v6e', 'TPU_V6E', 1),
    ],
)
def test_tpu_rows_agree_with_the_table_inside_jax(
    device_kind, version, num_cores
):
  tpu_info = pytest.importorskip('jax._src.pallas.mosaic.tpu_info')
  if not hasattr(tpu_info, '_get_tpu_info_impl'):
    pytest.skip('this JAX keeps its table elsewhere')
  theirs = tpu_info._get_tpu_info_impl(
      tpu_info.ChipVersion[version], num_cores
  )
  ours = hardware.chip_of(device_kind)
  # JAX's figures are per core, rounded to three digits; ours per device.
  assert ours.peak('bfloat16') == pytest.approx(
      num_cores * theirs.bf16_ops_per_second, rel=0.02
  )
  if version != 'TPU_V5P':  # JAX has 2460 GB/s, Google Cloud's page 2765
    assert ours.memory_bytes_per_second == pytest.approx(
        num_cores * theirs.mem_bw_bytes_per_second, rel=0.02
    )
  assert ours.memory_bytes == pytest.approx(
      num_cores * theirs.hbm_capacity_bytes, rel=0.08
  )


def test_every_row_has_float32_memory_and_sane_order_of_dtypes():
  for chip in hardware.CHIPS:
    peaks = chip.peak_flops_per_second
    assert chip.memory_bytes >= 8e9
    assert chip.memory_bytes_per_second >= 3e11
    half = peaks.get('bfloat16', peaks.get('float16'))
    assert peaks['float32'] <= half <= peaks.get('float8', half)


def test_a_missing_dtype_is_told_with_those_there_are():
  with pytest.raises(ValueError, match=r"'float4'.*A10.*expected.*bfloat16"):
    hardware.chip_of('NVIDIA A10').peak('float4')


def test_a_cpu_has_no_row():
  assert hardware.chip_of('cpu') is None


def test_fastest_seconds_is_the_shortest_of_several_calls():
  ticks = iter([0.0, 1.0, 4.0, 5.0, 5.5, 5.5, 6.0, 8.0, 9.0])
  calls = []
  seconds = hardware.fastest_seconds(
      lambda: calls.append(1), seconds=5.2, repeats=2,
      clock=lambda: next(ticks),
  )
  assert seconds == 0.5
  assert len(calls) == 3  # one to warm up


@pytest.mark.parametrize(
    'name', ['A100 80GB', 'H100', 'H200', 'TPU v4', 'TPU v5e', 'TPU v6e']
)
def test_a_chip_that_is_planned_for_has_links_faster_than_its_network(name):
  (chip,) = [chip for chip in hardware.CHIPS if chip.name == name]
  assert chip.link_bytes_per_second > 5 * chip.network_bytes_per_second


def test_ports_of_a_tpu_add_up_to_what_google_gives_for_a_chip():
  # https://cloud.google.com/tpu/docs: 400 GB/s both ways, 4800 Gb/s one way.
  v5e, v5p = hardware.chip_of('TPU v5e'), hardware.chip_of('TPU v5p')
  assert 2 * v5e.num_links * v5e.link_bytes_per_second == 400e9
  assert 8 * v5p.num_links * v5p.link_bytes_per_second == 4800e9
