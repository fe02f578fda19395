# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Which attention kernel serves which layer, and why not another one.

- `xla`: products and a softmax, with an array of all pairs in memory. Any
  device, type, mask and bias.
- `cudnn`: NVIDIA's fused kernels, through `jax.nn.dot_product_attention`.
- `splash`: JAX's sparse kernel for TPUs, which adds no bias.
- `flash`: JAX's older kernel for TPUs, which adds a bias and has its gradient.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
from typing import Any

from absl import logging
from flax.core import meta
import jax
import jax.numpy as jnp
import numpy as np

IMPLEMENTATIONS = ('auto', 'xla', 'cudnn', 'splash', 'flash')
# What 'auto' tries in turn, by the platform of the devices.
_AUTO = {'gpu': ('cudnn',), 'tpu': ('splash', 'flash')}
_HALF = (jnp.bfloat16, jnp.float16)
_TPU_BLOCK = 128  # positions; the kernels of TPUs cut lengths into these
_AMPERE = 8.0  # compute capability; cuDNN's attention is for it and newer
_MAX_HEAD_DIM = {'cudnn': 256, 'cudnn before Hopper': 128}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Site:
  """What is known of an attention layer when it is traced.

  Attributes:
    platform: 'cpu', 'gpu' or 'tpu'.
    max_head_dim: that cuDNN serves on these devices; 0 = it serves none.
    dtype: of queries, keys and values.
    head_dim: size of a head.
    queries: number of queries in a row, on all devices together.
    keys: the same of keys.
    is_step: a decoding step, or the one that makes its cache.
    has_bias: a bias is added to the logits.
    mask: 'none', 'pairs' (an array) or 'sight'.
    is_packed: of a sight.
    has_prefix: of a sight.
    is_causal: of a sight.
    window: of a sight; 'some layers' = one program serves layers that differ
      in it: scanned or rematerialised ones.
    softcap: logits are capped.
    sequence_shards: pieces that a row's queries are cut into.
  """

  platform: str
  max_head_dim: int = 128
  dtype: np.dtype
  head_dim: int
  queries: int
  keys: int
  is_step: bool = False
  has_bias: bool = False
  mask: str = 'none'
  is_packed: bool = False
  has_prefix: bool = False
  is_causal: bool = False
  window: int | str | None = None
  softcap: bool = False
  sequence_shards: int = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Choice:
  """What serves a layer.

  Attributes:
    kernel: 'xla', 'cudnn', 'splash' or 'flash'.
    reason: why not another one; '' = it is what was asked for.
  """

  kernel: str
  reason: str = ''


def platform() -> str:
  """'cpu', 'gpu' or 'tpu': for which devices is being traced.

  Those of the mesh in force, which need not be here; else this process's.
  """
  device = getattr(meta.get_global_mesh(), 'abstract_device', None)
  return getattr(device, 'platform', None) or jax.default_backend()


def may_fuse(implementation: str) -> bool:
  """Whether any layer may get a fused kernel: sights are then worth making."""
  return bool(_candidates(implementation, platform()))


def max_head_dim(device: str) -> int:
  """The largest head that JAX lets cuDNN serve; 0 = no head.

  JAX asks a device of this process, so that for one that is not here it is the
  least.

  Args:
    device: see `platform`.
  """
  if device != 'gpu' or jax.default_backend() != 'gpu':
    return _MAX_HEAD_DIM['cudnn before Hopper']
  capability = float(jax.local_devices()[0].compute_capability)
  if capability < _AMPERE:
    return 0
  return _MAX_HEAD_DIM['cudnn' if capability >= 9.0 else 'cudnn before Hopper']


def choose(implementation: str, site: Site) -> Choice:
  """Chooses the kernel of a layer.

  Args:
    implementation: one of `IMPLEMENTATIONS`; one that cannot serve the layer
      leaves it to `xla`.
    site: what is known of the layer.
  """
  candidates = _candidates(implementation, site.platform)
  if not candidates:
    why = '' if implementation == 'xla' else (
        f'there is no fused kernel for {site.platform.upper()}s'
        if implementation == 'auto'
        else f'{implementation} is not for {site.platform.upper()}s'
    )
    return Choice(kernel='xla', reason=why)
  reasons = []
  for kernel in candidates:
    reason = _REFUSES[kernel](site) or _any_refuses(site)
    if reason is None:
      return Choice(kernel=kernel, reason='; '.join(reasons))
    reasons.append(f'{kernel}: {reason}')
  return Choice(kernel='xla', reason='; '.join(reasons))


def _candidates(implementation: str, device: str) -> tuple[str, ...]:
  own = _AUTO.get(device, ())
  if implementation == 'auto':
    return own
  return (implementation,) if implementation in own else ()


def _any_refuses(site: Site) -> str | None:
  if site.is_step:
    return 'decoding has one query at a time'
  if site.window == 'some layers':
    return 'one program serves layers that differ in their window'
  if site.window is not None and (site.has_prefix or not site.is_causal):
    return 'a window of queries that see what comes after them'
  return None


def _cudnn_refuses(site: Site) -> str | None:
  """Why cuDNN cannot serve a layer; None = it can."""
  size = site.head_dim + code_features(site)
  if site.dtype not in _HALF:
    return f'it computes in bfloat16 or float16, not in {site.dtype.name}'
  if not site.max_head_dim:
    return 'it serves GPUs from Ampere on, and this one is older'
  if site.softcap:
    return 'it does not cap logits'
  if site.head_dim % 8:
    return f'head_dim {site.head_dim} is not a multiple of 8'
  if site.head_dim > site.max_head_dim:
    return f'head_dim {site.head_dim} is above {site.max_head_dim}'
  if site.has_bias and (site.queries % 2 or site.keys % 2):
    return f'a bias of odd lengths, {site.queries} x {site.keys}'
  if site.has_bias and site.mask == 'pairs':
    return 'a mask of pairs beside a bias would make an array of every head'
  if site.has_bias and size > site.max_head_dim:
    return (
        f'packed examples beside a bias need head_dim <= '
        f'{site.max_head_dim - size + site.head_dim}, not {site.head_dim}'
    )
  if site.window is not None and site.has_bias:
    return 'a window beside a bias'
  return None


def _tpu_refuses(site: Site) -> str | None:
  for name, length in (('queries', site.queries), ('keys', site.keys)):
    here = length // (site.sequence_shards if name == 'queries' else 1)
    if here % _TPU_BLOCK:
      return f'{here} {name} are not a multiple of {_TPU_BLOCK}'
  if site.mask == 'pairs':
    return 'it takes no mask of pairs'
  return None


def _splash_refuses(site: Site) -> str | None:
  """Why splash attention cannot serve a layer; None = it can."""
  if site.has_bias:
    return 'it adds no bias'
  return _tpu_refuses(site)


def _flash_refuses(site: Site) -> str | None:
  """Why flash attention for TPUs cannot serve a layer; None = it can."""
  if site.softcap:
    return 'it does not cap logits'
  if site.window is not None:
    return 'it has no window'
  if site.head_dim > _TPU_BLOCK and site.head_dim % _TPU_BLOCK:
    return f'head_dim {site.head_dim} is above 128 and no multiple of it'
  return _tpu_refuses(site)


_REFUSES: Mapping[str, Callable[[Site], str | None]] = {
    'cudnn': _cudnn_refuses,
    'splash': _splash_refuses,
    'flash': _flash_refuses,
}


def code_features(site: Site) -> int:
  """Features that cuDNN's queries and keys get to tell packed examples apart.

  There are at most as many examples in a row as positions, and as many numbers
  as patterns of so many signs.
  """
  if not site.is_packed:
    return 0
  return 8 if max(site.queries, site.keys) < 2**8 - 1 else 16


def kernel_options(
    kernel: str, site: Site, softcap: float | None
) -> dict[str, Any]:
  """What a kernel is given besides arrays.

  Args:
    kernel: which was chosen.
    site: for the layer.
    softcap: of the layer's logits.
  """
  if kernel == 'cudnn':
    features = code_features(site)
    fits = site.head_dim + features <= site.max_head_dim
    return {'features': features if fits else 0}
  return {'softcap': softcap} if kernel == 'splash' else {}


_told: set[str] = set()


def tell(
    implementation: str, path: Sequence[str], choice: Choice, site: Site
) -> None:
  """Logs once what serves a layer, and why nothing else does.

  Args:
    implementation: what was asked for.
    path: of the layer's module.
    choice: what it got.
    site: what is known of it.
  """
  why = f' ({choice.reason})' if choice.reason else ''
  where = 'all layers'
  if _candidates(implementation, site.platform):
    where = _layer_name(path)
  line = f"Attention '{implementation}', {where}: {choice.kernel}{why}"
  if line in _told:
    return
  _told.add(line)
  asked = implementation in ('auto', choice.kernel) or site.is_step
  (logging.info if asked else logging.warning)('%s', line)


def _layer_name(path: Sequence[str]) -> str:
  """The path without numbers of layers and repeated names."""
  kept: list[str] = []
  for part in path:
    if not part.startswith('layers_') and part not in kept:
      kept.append(part)
  return '/'.join(kept)
