# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What outputs depend on, as JSON: of other settings they are not mixed.

The mesh is not among them: a run killed on one may go on on another.
"""

from collections.abc import Mapping, Sequence
import hashlib
import re
from typing import Any

from t5wild import inference_state
from t5wild.inferring import session
from t5wild.models import base as models_base

_ADDRESS = re.compile(r' at 0x[0-9a-f]+')


def describe(
    plan: session.Plan,
    source: Any,
    *,
    checkpoint: str,
    bindings: Sequence[str],
) -> dict[str, Any]:
  """Returns the settings of one output."""
  return {
      'bindings': list(bindings),
      'mode': plan.mode,
      'checkpoint': inference_state.identity_of(checkpoint),
      'model': _digest(plan.model),
      'decoding': _function(getattr(plan.model, 'decode_fn', None)),
      'task_feature_lengths': dict(plan.lengths),
      'batch_size': plan.batch_size,
      'examples_per_chunk': plan.chunk_size,
      'num_buckets': plan.num_buckets,
      'token_scores': plan.token_scores,
      'write_fn': _function(plan.write_fn),
      **source.identity,
  }


def _digest(model: models_base.BaseModel) -> str:
  """A hash of what a model is made of."""
  names = ('module', 'input_vocabulary', 'output_vocabulary')
  parts = [type(model).__name__]
  parts += [repr(getattr(model, name, None)) for name in names]
  parts.append(repr(getattr(model, '_default_decoder_params', None)))
  text = _ADDRESS.sub('', '\n'.join(parts))
  return hashlib.sha256(text.encode()).hexdigest()


def _function(function: Any) -> str:
  """A function by its name, with the arguments of functools.partial."""
  if function is None:
    return 'None'
  given: Mapping[str, Any] = getattr(function, 'keywords', {})
  inner = getattr(function, 'func', function)
  name = getattr(inner, '__qualname__', type(inner).__name__)
  arguments = ', '.join(f'{k}={given[k]!r}' for k in sorted(given))
  return _ADDRESS.sub('', f'{name}({arguments})')
