# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Devices that only have attributes, for machines we don't have here."""

import dataclasses
import itertools


@dataclasses.dataclass(frozen=True)
class Gpu:
  """A device without coordinates."""

  id: int
  process_index: int
  slice_index: int | None = None
  platform: str = 'gpu'
  device_kind: str = 'NVIDIA H100 80GB HBM3'


@dataclasses.dataclass(frozen=True)
class Tpu:
  """A device on a torus."""

  id: int
  process_index: int
  coords: tuple[int, int, int]
  core_on_chip: int = 0
  slice_index: int = 0
  platform: str = 'tpu'
  device_kind: str = 'TPU v4'


def gpus(hosts, per_host, *, slices=False):
  """GPUs numbered host by host; with `slices` each host is one."""
  return [
      Gpu(
          id=host * per_host + i,
          process_index=host,
          slice_index=host if slices else None,
      )
      for host in range(hosts)
      for i in range(per_host)
  ]


def tpus(x, y, z, *, cores=1, kind='TPU v4', slice_index=0, host=(2, 2, 1)):
  """A box of chips, hosts owning `host` chips each, cores adjacent."""
  hosts = {}
  devices = []
  places = itertools.product(range(z), range(y), range(x), range(cores))
  for i, (cz, cy, cx, core) in enumerate(places):
    key = (cx // host[0], cy // host[1], cz // host[2])
    process = hosts.setdefault(key, len(hosts))
    devices.append(
        Tpu(
            id=i,
            process_index=process,
            coords=(cx, cy, cz),
            core_on_chip=core,
            slice_index=slice_index,
            device_kind=kind,
        )
    )
  return devices
