# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A compiler's error that a setting mends says which setting."""

import jax
import pytest

from t5wild import partitioning
from t5wild.partitioning import compile_errors
from t5wild.partitioning import partitioned_function

# As XLA 0.10 and older, NVIDIA's frontend and JAX word it.
_NO_PLAN = (
    'INTERNAL: No valid engine configs for Matmul_MUL_Reduction_SUB_EXP_\n'
    "in xla/stream_executor/cuda/cuda_dnn.cc(8382): 'graph_.create_plans()'"
)


class Refusing:
  """A function that no compiler compiles, at any of the three ways in."""

  def __init__(self, error):
    self._error = error

  def __call__(self, *args):
    raise self._error

  def lower(self, *args):
    del args
    return self

  def compile(self):
    raise self._error


def _compile(error):
  partitioner = partitioning.PjitPartitioner(num_partitions=1)
  return partitioner.compile(Refusing(error))


def _call(error):
  mesh = partitioning.PjitPartitioner(num_partitions=1).mesh
  partitioned_function.PartitionedFunction(Refusing(error), mesh=mesh)(1)


@pytest.mark.parametrize('use', [_compile, _call])
@pytest.mark.parametrize(
    'text',
    [
        _NO_PLAN,
        'INTERNAL: [cudnn_frontend] Error: No execution plans support the '
        'graph.',
        'UNIMPLEMENTED: custom call __cudnn$fmhaSoftmax',
        'cuDNN is not detected.',
    ],
)
def test_what_cudnn_cannot_serve_names_the_setting_that_does_without(
    use, text
):
  with pytest.raises(compile_errors.CudnnError) as told:
    use(jax.errors.JaxRuntimeError(text))
  shown = str(told.value)
  assert text in shown
  assert 'Expected a plan of cuDNN' in shown
  assert "T5Config.attention_implementation = 'xla'" in shown
  assert 'TransformerConfig' in shown


@pytest.mark.parametrize('use', [_compile, _call])
@pytest.mark.parametrize(
    'error',
    [
        # The buffers of a program without room are named by their makers.
        jax.errors.JaxRuntimeError(
            'RESOURCE_EXHAUSTED: Out of memory: __cudnn$fmhaSoftmax 8 GiB'
        ),
        jax.errors.JaxRuntimeError('INTERNAL: ptxas exited with 255'),
        ValueError('no setting of cuDNN'),
    ],
)
def test_any_other_error_stays_what_it_is(use, error):
  with pytest.raises(type(error)) as raised:
    use(error)
  assert raised.value is error


def test_a_program_in_an_error_is_not_shown_whole():
  with pytest.raises(compile_errors.CudnnError) as told:
    _compile(RuntimeError(_NO_PLAN + 'x' * 10_000))
  assert len(str(told.value)) < 1200
