# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""One table of chips: peak FLOP/s by dtype, memory and link speeds; no JAX.

A row is what JAX calls one device: a GPU, a TPU chip, or one of a chip's two
cores where JAX shows two devices (TPU v2, v3, v7x). Peaks are the makers' dense
figures (no sparsity), in the arithmetic that XLA picks for the dtype unless
told otherwise: float32 products run as TF32 on NVIDIA GPUs from Ampere on, and
as one bfloat16 pass on TPUs. A CPU has no row: its peak is measured, with XLA.

Sources: NVIDIA's data sheets (dense figures are half of those "with sparsity"),
Google Cloud's pages on TPU versions. Link speeds are of one device in one
direction. GPUs: NVLink's "total" halved (V100 300, A100 600, H100 and H200 900,
Blackwell 1800 GB/s), PCIe where there is none; the network of NVIDIA's own
DGX machines, a port for each GPU (A100 200 Gb/s, later 400). TPUs: what is
given for a chip, over its ports (v5e 400 and v6e 800 GB/s both ways over 4, v4
2400 and v5p 4800 Gb/s over 6), is the speed of one port; the network between
slices is a pod's share (v5e 6.4, v6e 25.6 Tb/s over 256 chips) or a host's
200 Gb/s over its four chips (v4, v5p).
"""

from collections.abc import Callable
import dataclasses
import math
import re
import time
from typing import Any

_GIB = 2**30
_GB = 10**9
_TERA = 1e12


@dataclasses.dataclass(frozen=True, kw_only=True)
class Chip:
  """One kind of device.

  Attributes:
    name: short name for people.
    pattern: regular expression that JAX's `device_kind` matches whole, in any
      case.
    peak_flops_per_second: by dtype name.
    memory_bytes: of the device's own memory.
    memory_bytes_per_second: its bandwidth.
    link_bytes_per_second: one way, to the devices of its host or slice: of a
      GPU altogether, of a TPU each of its ports. None: not known.
    num_links: ports of a TPU, 1 of a GPU.
    network_bytes_per_second: one way, to other hosts or slices, or None.
  """

  name: str
  pattern: str
  peak_flops_per_second: dict[str, float]
  memory_bytes: int
  memory_bytes_per_second: float
  link_bytes_per_second: float | None = None
  num_links: int = 1
  network_bytes_per_second: float | None = None

  def peak(self, dtype: str) -> float:
    """Peak FLOP/s of matrix products of operands of this dtype.

    Raises:
      ValueError: the chip's row has no such dtype.
    """
    if dtype not in self.peak_flops_per_second:
      raise ValueError(
          f'no peak for dtype {dtype!r} on {self.name}; expected one of '
          f'{sorted(self.peak_flops_per_second)}; add it to the chip\'s row in '
          't5wild/hardware.py.'
      )
    return self.peak_flops_per_second[dtype]


def _gpu(name, pattern, memory, bandwidth, *, link, network=None, **tera):
  """A GPU's row: memory in GB, speeds in GB/s, peaks in TFLOP/s."""
  return Chip(
      link_bytes_per_second=link * _GB,
      network_bytes_per_second=network and network * _GB,
      name=name,
      pattern=pattern,
      memory_bytes=int(memory * _GB),
      memory_bytes_per_second=bandwidth * _GB,
      peak_flops_per_second=_peaks(tera),
  )


def _tpu(name, pattern, memory, bandwidth, *, links=None, network=None, **tera):
  """A TPU's row: memory in GiB, speeds in GB/s, peaks in TFLOP/s.

  `links` is (ports, GB/s of each one way).
  """
  tera.setdefault('float32', tera['bfloat16'])
  count, link = links or (1, None)
  return Chip(
      num_links=count,
      link_bytes_per_second=link and link * _GB,
      network_bytes_per_second=network and network * _GB,
      name=name,
      pattern=pattern,
      memory_bytes=int(memory * _GIB),
      memory_bytes_per_second=bandwidth * _GB,
      peak_flops_per_second=_peaks(tera),
  )


def _peaks(tera):
  peaks = {dtype: value * _TERA for dtype, value in tera.items()}
  if 'bfloat16' in peaks:
    peaks.setdefault('float16', peaks['bfloat16'])
  return peaks


# Sources: the docstring.
CHIPS = (
    _gpu('GB200', r'NVIDIA GB200.*', 186, 8000,
         link=900, network=50,
         float8=5000, bfloat16=2500, float32=1250),
    _gpu('B300', r'NVIDIA G?B300.*', 288, 8000,
         link=900, network=100,
         float8=4500, bfloat16=2250, float32=1125),
    _gpu('B200', r'NVIDIA B200.*', 180, 7700,
         link=900, network=50,
         float8=4500, bfloat16=2250, float32=1125),
    _gpu('GH200 144GB', r'NVIDIA GH200 144G.*', 141, 4900,
         link=450, network=50,
         float8=1979, bfloat16=989.5, float32=494.7),
    _gpu('GH200', r'NVIDIA GH200.*', 96, 4000,
         link=450, network=50,
         float8=1979, bfloat16=989.5, float32=494.7),
    _gpu('H200 NVL', r'NVIDIA H200 NVL.*', 141, 4800,
         link=450, network=50,
         float8=1671, bfloat16=835.5, float32=417.5),
    _gpu('H200', r'NVIDIA H200.*', 141, 4800,
         link=450, network=50,
         float8=1979, bfloat16=989.5, float32=494.7),
    _gpu('H100 PCIe', r'NVIDIA H100 PCIe.*', 80, 2000,
         link=64, network=50,
         float8=1513, bfloat16=756, float32=378),
    _gpu('H100 NVL', r'NVIDIA H100 NVL.*', 94, 3900,
         link=300, network=50,
         float8=1671, bfloat16=835.5, float32=417.5),
    _gpu('H100', r'NVIDIA H100.*', 80, 3350,
         link=450, network=50,
         float8=1979, bfloat16=989.5, float32=494.7),
    _gpu('A100 80GB PCIe', r'NVIDIA A100 80GB PCIe.*', 80, 1935,
         link=32, network=25,
         bfloat16=312, float32=156),
    _gpu('A100 80GB', r'(NVIDIA )?A100-SXM.*-80GB', 80, 2039,
         link=300, network=25,
         bfloat16=312, float32=156),
    _gpu('A100 40GB', r'(NVIDIA )?A100-.*-40GB', 40, 1555,
         link=300, network=25,
         bfloat16=312, float32=156),
    _gpu('L40S', r'NVIDIA L40S.*', 48, 864,
         link=32,
         float8=733, bfloat16=362, float32=183),
    _gpu('L4', r'NVIDIA L4', 24, 300,
         link=32,
         float8=242.5, bfloat16=121, float32=60),
    _gpu('A10G', r'NVIDIA A10G.*', 24, 600,
         link=32, bfloat16=70, float32=35),
    _gpu('A10', r'NVIDIA A10', 24, 600,
         link=32, bfloat16=125, float32=62.5),
    _gpu('RTX 5090', r'NVIDIA GeForce RTX 5090', 32, 1792,
         link=64,
         float8=419, bfloat16=209.5, float32=104.8),
    _gpu('RTX 4090', r'NVIDIA GeForce RTX 4090', 24, 1008,
         link=32,
         float8=330.3, bfloat16=165.2, float32=82.6),
    _gpu('RTX 3090', r'NVIDIA GeForce RTX 3090', 24, 936,
         link=32,
         bfloat16=71, float32=35.6),
    _gpu('T4', r'(NVIDIA )?(Tesla )?T4', 16, 320,
         link=16, float16=65, float32=8.1),
    _gpu('V100 32GB', r'(NVIDIA )?(Tesla )?V100-.*-32GB', 32, 900,
         link=150,
         float16=125, float32=15.7),
    _gpu('V100 16GB', r'(NVIDIA )?(Tesla )?V100-.*-16GB', 16, 900,
         link=150,
         float16=125, float32=15.7),
    _tpu('TPU v2 core', r'TPU v2', 8, 350, bfloat16=22.5),
    _tpu('TPU v3 core', r'TPU v3', 16, 450, bfloat16=61.5),
    _tpu('TPU v4', r'TPU v4', 32, 1228,
         links=(6, 50), network=6.25, bfloat16=275, int8=275),
    _tpu('TPU v5e', r'TPU v5 ?(lite|e)', 16, 819,
         links=(4, 50), network=3.125, bfloat16=197, int8=394),
    _tpu('TPU v5p', r'TPU v5p?', 95, 2765,
         links=(6, 100), network=6.25, bfloat16=459, int8=918),
    _tpu('TPU v6e', r'TPU v6 ?(lite|e)', 32, 1640,
         links=(4, 100), network=12.5, bfloat16=918, int8=1836),
    _tpu('TPU v7x core', r'TPU ?v?7x?', 96, 3690, bfloat16=1153.5,
         float8=2307),
)


def chip_of(device_kind: str) -> Chip | None:
  """The row of a JAX `device_kind`; None if unknown, as every CPU is.

  An unknown chip is no error: a run goes on without MFU, and says so.
  """
  for chip in CHIPS:
    if re.fullmatch(chip.pattern, device_kind, flags=re.IGNORECASE):
      return chip
  return None


def fastest_seconds(
    run: Callable[[], Any],
    *,
    seconds: float = 0.2,
    repeats: int = 3,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
  """Shortest time of a call, of several after one to warm up.

  Args:
    run: what is timed.
    seconds: time to go on trying for; 0: `repeats` are all.
    repeats: least number of tries.
    clock: seconds; `time.process_time` counts this process's alone.
  """
  run()
  fastest, tries = math.inf, 0
  end = clock() + seconds
  while tries < repeats or clock() < end:
    start = clock()
    run()
    fastest = min(fastest, clock() - start)
    tries += 1
  return fastest
