# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Tokens decoded per CPU-second: greedily, by top-k and by beam search."""

import dataclasses
import statistics

import jax

from benchmarks import hugging_face
from benchmarks import measure
from benchmarks import run_peers
from benchmarks import workload as workload_lib
from t5wild import decoding
from t5wild.trainer import xla_peak

NUM_NEW_TOKENS = 64
# Name -> (function, its decodes per input, its other arguments, goal in new
# tokens of the best decode a second, on a core of GOAL_PEAK).
DECODINGS = {
    'greedy': (decoding.greedy_decode, 1, {}, 1250),
    'beam_4': (decoding.beam_search, 4, {}, 440),
    'topk_40': (decoding.temperature_sample, 1, {'topk': 40}, None),
}
GOAL_PEAK = 100e9  # operations a second of a matrix product in float32


def run(options) -> None:
  """Prints tokens per second of each decoding, encoder included."""
  workload = dataclasses.replace(
      workload_lib.of(options), targets=NUM_NEW_TOKENS
  )
  batch = workload_lib.make_batch(workload)
  shapes = {name: x.shape for name, x in batch.items()}
  model = workload_lib.make_model(workload)
  params = jax.jit(
      lambda key: model.get_initial_variables(key, shapes)['params']
  )(jax.random.PRNGKey(0))
  decodings = {name: _make_decode(workload, name) for name in DECODINGS}
  ours = {
      name: lambda decode=decode: jax.block_until_ready(decode(params, batch))
      for name, decode in decodings.items()
  }
  theirs = _hugging_face(workload, batch)
  times = measure.interleave(ours | theirs, runs=options.runs)
  peak = xla_peak.measure_matmul_flops_per_second()
  num_tokens = workload.batch_size * NUM_NEW_TOKENS
  for name, (*_, goal) in DECODINGS.items():
    measure.emit_times(f'decode_{name}', times[name])
    value = num_tokens / statistics.median(times[name].cpu)
    more = {'peak_flops_per_second': peak}
    if goal is not None:
      here = goal * min(1.0, peak / GOAL_PEAK)
      more |= {'goal': goal, 'goal_at_this_peak': here, 'met': value >= here}
    measure.emit(f'decode_{name}', value, 'tokens_per_second', **more)
  for peer in theirs:
    measure.emit_times(f'decode_{peer}', times[peer])
    name = peer.removeprefix('hugging_face_').rsplit('_', 1)[0]
    ratio = measure.ratio(times[name].cpu, times[peer].cpu)
    measure.emit(f'decode_{name}_to_{peer}', ratio, 'ratio')


def _hugging_face(workload, batch):
  """Its decodings, with either of its caches; none where it is missing."""
  if not run_peers.is_installed('hugging_face'):
    return {}
  return {
      f'hugging_face_{name}_{cache}': hugging_face.make_generate(
          workload,
          batch,
          num_beams=DECODINGS[name][1],
          num_tokens=NUM_NEW_TOKENS,
          cache=cache,
      )
      for name in ('greedy', 'beam_4')
      for cache in ('dynamic', 'static')
  }


def _make_decode(workload: workload_lib.Workload, name: str):
  """A compiled decoding in which no sequence ends before its last token."""
  decode_fn, num_decodes, arguments, _ = DECODINGS[name]
  model = workload_lib.make_model(workload, decode_fn=decode_fn)
  arguments = {'eos_id': workload.vocab_size, **arguments}
  return jax.jit(
      lambda params, batch: model.predict_batch_with_aux(
          params, batch, num_decodes=num_decodes, decoder_params=arguments
      )
  )
