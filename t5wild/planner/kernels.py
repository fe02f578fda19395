# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Which kernels a compiled program holds for attention and for products.

No JAX: read from the program's text.
"""

from collections.abc import Mapping
import dataclasses
import re

from t5wild.planner import hlo

NO_KERNEL = 'xla: products and a softmax'
_TARGET = re.compile(r'custom_call_target="([^"]+)"')
_ATTENTION_NAMES = ('attention', 'flash', 'splash')
_ATTENTION_TARGETS = ('fmha', 'flash_attention')
# Kinds of fusions around matrix products that XLA writes kernels for itself.
_FUSED_PRODUCTS = re.compile(
    r'"kind":"(__(?:triton|cublas)[a-z_]*gemm[a-z_]*)"'
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kernels:
  """What was found.

  Attributes:
    attention_forward: targets of fused attention calls, or `NO_KERNEL`.
    attention_backward: the same for their gradients.
    products: kind of kernel -> how often such a product runs in a call.
  """

  attention_forward: str
  attention_backward: str
  products: Mapping[str, int]


def of_module(module: hlo.Module) -> Kernels:
  """Finds the kernels of a program."""
  forward, backward = set(), set()
  products: dict[str, int] = {}
  for computation, instruction in module.instructions():
    times = module.runs[computation]
    target = _TARGET.search(instruction.rest)
    if target and _is_attention(target[1], instruction.rest):
      is_gradient = 'ackward' in target[1] or (
          'transpose(jvp' in instruction.rest
          and 'rematted_computation' not in instruction.rest
      )
      (backward if is_gradient else forward).add(target[1])
    kind = _kind_of_product(instruction, target[1] if target else '')
    if kind:
      products[kind] = products.get(kind, 0) + times
  return Kernels(
      attention_forward=', '.join(sorted(forward)) or NO_KERNEL,
      attention_backward=', '.join(sorted(backward)) or NO_KERNEL,
      products=dict(sorted(products.items(), key=lambda item: -item[1])),
  )


def _is_attention(target: str, rest: str) -> bool:
  if any(name in target.lower() for name in _ATTENTION_TARGETS):
    return True
  is_kernel = target in ('tpu_custom_call', '__gpu$xla.gpu.triton')
  return is_kernel and any(name in rest.lower() for name in _ATTENTION_NAMES)


def _kind_of_product(instruction: hlo.Instruction, target: str) -> str | None:
  if 'gemm' in target or 'matmul' in target:
    return target
  if instruction.opcode == 'convolution':
    return 'convolution'  # what products are on TPUs
  if instruction.opcode == 'fusion':
    fused = _FUSED_PRODUCTS.search(instruction.rest)
    return fused[1] if fused else None
  return None
