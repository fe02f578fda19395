# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What XLA asks of a GPU that is not here, as it writes it down; no JAX.

Sources: NVIDIA's A100 and H100 architecture white papers (multiprocessors, L2,
shared memory), the CUDA C++ programming guide's table of technical
specifications by compute capability (threads, registers, shared memory of a
block), and the data sheets for memory (what CUDA tells is a little more than
the "80 GB" on the sheet: 81,559 MiB less what the driver keeps).
"""

import dataclasses

_MIB = 2**20
_DEFAULT_SHARED_BYTES = 48 * 1024  # of a block that does not ask for more
_CUDNN = (9, 10, 0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GpuFacts:
  """One GPU.

  Attributes:
    device_kind: what JAX would call it.
    compute_capability: (major, minor).
    multiprocessors: that are enabled.
    shared_kib: shared memory of a multiprocessor.
    l2_bytes: second cache.
    clock_ghz: boost clock.
    memory_bytes: what CUDA tells.
    memory_bytes_per_second: bandwidth.
  """

  device_kind: str
  compute_capability: tuple[int, int]
  multiprocessors: int
  shared_kib: int
  l2_bytes: int
  clock_ghz: float
  memory_bytes: int
  memory_bytes_per_second: int

  def target_config(self) -> str:
    """The text of XLA's GpuTargetConfigProto."""
    major, minor = self.compute_capability
    shared = self.shared_kib * 1024
    info = {
        'threads_per_block_limit': 1024,
        'threads_per_warp': 32,
        'shared_memory_per_block': _DEFAULT_SHARED_BYTES,
        'shared_memory_per_core': shared,
        'shared_memory_per_block_optin': shared - 1024,  # 1 KiB is CUDA's
        'threads_per_core_limit': 2048,
        'core_count': self.multiprocessors,
        'fpus_per_core': 64 if major == 8 else 128,
        'block_dim_limit_x': 2**31 - 1,
        'block_dim_limit_y': 65535,
        'block_dim_limit_z': 65535,
        'memory_bandwidth': self.memory_bytes_per_second,
        'l2_cache_size': self.l2_bytes,
        'clock_rate_ghz': self.clock_ghz,
        'device_memory_size': self.memory_bytes,
        'registers_per_core_limit': 65536,
        'registers_per_block_limit': 65536,
    }
    lines = [f'{name}: {value}' for name, value in info.items()]
    cudnn = dict(zip(('major', 'minor', 'patch'), _CUDNN, strict=True))
    version = ' '.join(f'{name}: {n}' for name, n in cudnn.items())
    return '\n'.join([
        'gpu_device_info {',
        f'cuda_compute_capability {{ major: {major} minor: {minor} }}',
        *lines,
        '}',
        'platform_name: "CUDA"',
        f'dnn_version_info {{ {version} }}',
        'runtime_version { major: 13 minor: 0 }',
        f'device_description_str: "{self.device_kind}"',
    ])


FACTS = {
    'h100': GpuFacts(
        device_kind='NVIDIA H100 80GB HBM3', compute_capability=(9, 0),
        multiprocessors=132, shared_kib=228, l2_bytes=50 * _MIB,
        clock_ghz=1.98, memory_bytes=81079 * _MIB,
        memory_bytes_per_second=3_352_000_000_000,
    ),
    'h200': GpuFacts(
        device_kind='NVIDIA H200', compute_capability=(9, 0),
        multiprocessors=132, shared_kib=228, l2_bytes=50 * _MIB,
        clock_ghz=1.98, memory_bytes=143156 * _MIB,
        memory_bytes_per_second=4_800_000_000_000,
    ),
    'a100': GpuFacts(
        device_kind='NVIDIA A100-SXM4-80GB', compute_capability=(8, 0),
        multiprocessors=108, shared_kib=164, l2_bytes=40 * _MIB,
        clock_ghz=1.41, memory_bytes=81037 * _MIB,
        memory_bytes_per_second=2_039_000_000_000,
    ),
    'a100-40gb': GpuFacts(
        device_kind='NVIDIA A100-SXM4-40GB', compute_capability=(8, 0),
        multiprocessors=108, shared_kib=164, l2_bytes=40 * _MIB,
        clock_ghz=1.41, memory_bytes=40337 * _MIB,
        memory_bytes_per_second=1_555_000_000_000,
    ),
}  # fmt: skip
