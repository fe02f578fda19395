# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What is read out of a compiled program's text, against hand counts."""

import pathlib

import numpy as np
import pytest

from t5wild.planner import collectives
from t5wild.planner import hlo
from t5wild.planner import kernels

# As a GPU's and a TPU's compiler print: 16 devices, data 8 x model 2.
PROGRAM = pathlib.Path(__file__).with_name('small_program.hlo.txt')
MESH = {'replica': 1, 'data': 8, 'model': 2, 'sequence': 1, 'expert': 1}


@pytest.fixture(scope='module')
def module():
  return hlo.Module(PROGRAM.read_text())


@pytest.fixture(scope='module')
def traffic(module):
  return {(t.kind, t.axes): t for t in collectives.of_module(module, MESH)}


def test_a_loop_runs_as_often_as_its_bound_says_noted_or_not(module):
  assert module.runs['body'] == 24 + 6
  assert module.runs['fused'] == 2 * 30


def test_bytes_are_those_of_the_larger_side_times_the_calls(traffic):
  gathered = traffic['all-gather', ('data',)]
  assert gathered.count == 30 + 1
  assert gathered.bytes == 30 * 2 * (512 + 64 * 4) + 2 * 64
  assert traffic['all-reduce', ('model',)].bytes == 30 * 4 * 10
  assert traffic['collective-permute', ('model',)].bytes == 30 * 2 * 12


def test_groups_that_do_not_follow_the_axes_name_all_axes_they_cross(traffic):
  # Eight neighbours of 16 devices are four places of data by two of model.
  scattered = traffic['reduce-scatter', ('data', 'model')]
  assert scattered.bytes == 8 * 4 * 6
  assert scattered.group_size == 8


def test_only_what_work_is_scheduled_beside_counts_as_overlapped(traffic):
  gathered = traffic['all-gather', ('data',)]
  assert gathered.overlapped_bytes == gathered.bytes  # both of its ways
  assert traffic['all-reduce', ('model',)].overlapped_bytes == 0  # is_sync
  assert traffic['collective-permute', ('model',)].overlapped_bytes == 0


@pytest.mark.parametrize(
    'text',
    [
        "replica_groups=mesh['a'=2,'b'=4] {'a'}",
        "replica_groups=mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)) {'b'}",
        "replica_groups=mesh['a'=2,'b'=4], device_ids=([8]) {'a'}",
        "replica_groups=mesh['a'=4,'b'=2], device_ids=(0,4,1,5,2,6,3,7) {'b'}",
        'replica_groups=[4,2]<=[2,4]T(1,0)',
        'replica_groups={{0,4},{1,5},{2,6},{3,7}}',
    ],
)
def test_all_ways_to_write_groups_are_one(text):
  expected = [[0, 4], [1, 5], [2, 6], [3, 7]]
  np.testing.assert_array_equal(
      np.asarray(collectives._groups(text)), expected
  )


def test_groups_that_cannot_be_read_are_told_as_all_devices():
  assert collectives._groups('replica_groups=new{0..7}') is None
  assert collectives._axes(None, {'data': 4, 'model': 2}) == ((), 8)


def test_fused_attention_is_told_by_direction_and_products_by_kind(module):
  found = kernels.of_module(module)
  assert found.attention_forward == '__cudnn$fmhaScaleBiasSoftmax'
  assert found.attention_backward == '__cudnn$fmhaScaleBiasSoftmaxBackward'
  assert found.products == {'__triton_gemm': 30, '__cublas$lt$matmul$f8': 1}


def test_a_program_without_kernels_says_so():
  plain = hlo.Module('ENTRY %main (x: f32[4]) -> f32[4] {\n'
                     '  ROOT %x = f32[4]{0} parameter(0)\n}\n')
  found = kernels.of_module(plain)
  assert found.attention_forward == kernels.NO_KERNEL
  assert collectives.of_module(plain, MESH) == []


@pytest.mark.parametrize(
    ('shape', 'expected'),
    [
        ('bf16[2,3]{1,0:T(8,128)(2,1)S(1)}', 12),
        ('(f32[4]{0}, (s32[], u8[5]))', 25),
        ('f8e4m3fn[16]', 16),
        ('pred[]', 1),
        ('token[]', 0),
    ],
)
def test_bytes_of_shapes(shape, expected):
  assert hlo.shape_bytes(shape) == expected
