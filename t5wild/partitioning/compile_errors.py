# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Compilers' errors that a setting mends, told as such."""

from collections.abc import Iterator
import contextlib
import re

# As XLA and NVIDIA's frontend of cuDNN say that no kernel serves a graph, and
# as JAX says that the library is not there.
_CUDNN = re.compile(
    r'cudnn|cuda_dnn|no valid engine configs|no execution plans support',
    re.IGNORECASE,
)
# Tells of memory, and only names the calls that wanted it.
_MEMORY = 'RESOURCE_EXHAUSTED'
_SHOWN = 400  # characters; a compiler may add its whole program


class CudnnError(ValueError):
  """cuDNN cannot do what a program asks of it."""


@contextlib.contextmanager
def told_with_their_mend() -> Iterator[None]:
  """Has compilers' errors that a setting mends say which.

  Raises:
    CudnnError: cuDNN has no plan for an attention layer, or is not there.
  """
  try:
    yield
  except RuntimeError as error:  # JaxRuntimeError and NotImplementedError too
    text = str(error)
    if _MEMORY in text or not _CUDNN.search(text):
      raise
    raise CudnnError(
        f'cuDNN cannot serve this program: {text[:_SHOWN]}\n'
        'Expected a plan of cuDNN for every attention layer that the log gave '
        "to it ('Attention ...: cudnn').\n"
        "Set T5Config.attention_implementation = 'xla' (decoders: "
        'TransformerConfig), which needs more memory and goes on from the same '
        'checkpoints; `tools/gpu_check.py` tells which paths this GPU serves.'
    ) from error
