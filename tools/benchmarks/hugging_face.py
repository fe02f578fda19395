# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's T5 in PyTorch on the same sizes and batch, one thread."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from benchmarks import workload as workload_lib


def make_step(
    workload: workload_lib.Workload, batch: dict[str, jax.Array]
) -> Callable[[], Any]:
  """Hugging Face's T5 1.1 in PyTorch with its Adafactor, one thread."""
  import torch
  from transformers import optimization

  model = _make_model(workload).train()
  optimizer = optimization.Adafactor(
      model.parameters(),
      lr=workload_lib.LEARNING_RATE,
      relative_step=False,
      scale_parameter=True,
      warmup_init=False,
  )
  inputs, labels = (
      torch.from_numpy(np.array(batch[name], np.int64))
      for name in ('encoder_input_tokens', 'decoder_target_tokens')
  )
  num_tokens = labels.numel()

  def step():
    optimizer.zero_grad(set_to_none=True)
    loss = model(input_ids=inputs, labels=labels).loss * num_tokens
    loss.backward()
    optimizer.step()

  return step


def make_generate(
    workload: workload_lib.Workload,
    batch: dict[str, jax.Array],
    *,
    num_beams: int,
    num_tokens: int,
    cache: str,
) -> Callable[[], Any]:
  """Hugging Face's `generate` of exactly so many tokens, one thread.

  Args:
    workload: sizes of the model.
    batch: its inputs are read.
    num_beams: 1 is greedy.
    num_tokens: new tokens of each input.
    cache: 'dynamic' or 'static'.
  """
  import torch

  model = _make_model(workload).eval()
  inputs = torch.from_numpy(np.array(batch['encoder_input_tokens'], np.int64))

  def generate():
    with torch.inference_mode():
      tokens = model.generate(
          inputs,
          do_sample=False,
          num_beams=num_beams,
          min_new_tokens=num_tokens,
          max_new_tokens=num_tokens,
          cache_implementation=cache,
          disable_compile=True,
      )
    assert tokens.shape[1] == num_tokens + 1, tokens.shape

  return generate


def _make_model(workload: workload_lib.Workload) -> Any:
  import torch
  import transformers

  torch.set_num_threads(1)
  torch.manual_seed(0)
  return transformers.T5ForConditionalGeneration(
      transformers.T5Config(
          vocab_size=workload.vocab_size,
          d_model=workload.emb_dim,
          d_kv=workload.head_dim,
          d_ff=workload.mlp_dim,
          num_layers=workload.num_layers,
          num_decoder_layers=workload.num_layers,
          num_heads=workload.num_heads,
          dropout_rate=workload.dropout_rate,
          feed_forward_proj='gated-gelu',
          tie_word_embeddings=False,
          decoder_start_token_id=0,
      )
  )
