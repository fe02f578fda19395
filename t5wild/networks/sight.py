# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Which query sees which key, told by position instead of by pair.

What a fused attention kernel is given instead of a mask: numbers for each
position, of which there are as many as tokens, and no array of pairs.
"""

from flax import struct
from jax import Array
import jax.numpy as jnp
from jaxtyping import Bool, Int, Num

from t5wild.networks import masks

Tokens = Num[Array, '#batch length']
Numbers = Int[Array, 'batch length']


@struct.dataclass
class Sight:
  """Positions see each other that have the same number, but for 0: padding.

  Padding sees and is seen by nobody; what a kernel computes for such a query is
  of no account. Padding stands at the end of a row, and each example's prefix
  at its beginning.

  Attributes:
    queries: number of the example that a query belongs to, [batch, queries].
    keys: the same of the keys, [batch, keys].
    prefix: queries (and keys) of a prefix see each other both ways, where all
      others see only what came before them; None = there is no prefix.
    is_causal: a query sees what came before it, and itself.
    is_packed: there may be several examples in a row.
    window: how many positions a query sees to one side, itself included; None =
      all.
  """

  queries: Int[Array, 'batch queries']
  keys: Int[Array, 'batch keys']
  prefix: Bool[Array, 'batch queries'] | None = None
  is_causal: bool = struct.field(pytree_node=False, default=False)
  is_packed: bool = struct.field(pytree_node=False, default=False)
  window: int | None = struct.field(pytree_node=False, default=None)

  def within_prefix(self) -> 'Sight':
    """What the queries of a prefix see: its keys."""
    return self.replace(
        queries=jnp.where(self.prefix, self.queries, 0),
        keys=jnp.where(self.prefix, self.keys, 0),
        prefix=None,
        is_causal=False,
    )

  def after_prefix(self) -> 'Sight':
    """What the other queries see: all before them."""
    return self.replace(prefix=None)

  def pairs(self) -> masks.Mask:
    """The same as a mask."""
    real = masks.make_attention_mask(self.queries > 0, self.keys > 0)
    same = masks.make_attention_mask(self.queries, self.keys, jnp.equal)
    ahead = None
    if self.is_causal:
      ahead = masks.make_causal_mask(self.queries)
      if self.prefix is not None:
        ahead |= masks.make_attention_mask(self.prefix, self.prefix)
    near = None
    if self.window is not None:
      near = masks.make_window_mask(
          jnp.arange(self.queries.shape[1])[None],
          jnp.arange(self.keys.shape[1]),
          window=self.window,
          is_local=True,
      )
    return masks.combine_masks(real, same, ahead, near)


MaskOrSight = masks.Mask | Sight


def number_examples(tokens: Tokens, segment_ids: Tokens | None) -> Numbers:
  """Numbers the examples of each row from 1; 0 where a token is padding.

  Args:
    tokens: 0 is padding.
    segment_ids: number of the packed example of each position; None = one.
  """
  real = tokens > 0
  if segment_ids is None:
    return real.astype(jnp.int32)
  return jnp.where(real, segment_ids.astype(jnp.int32) + 1, 0)


def of_encoder(tokens: Tokens, *, segment_ids: Tokens | None) -> Sight:
  """All positions of an example see each other."""
  numbers = number_examples(tokens, segment_ids)
  return Sight(
      queries=numbers, keys=numbers, is_packed=segment_ids is not None
  )


def of_decoder(
    target_tokens: Tokens,
    *,
    causal_attention: Tokens | None = None,
    segment_ids: Tokens | None = None,
) -> Sight:
  """As `masks.make_decoder_mask`."""
  numbers = number_examples(target_tokens, segment_ids)
  prefix = None if causal_attention is None else causal_attention > 0
  return Sight(
      queries=numbers, keys=numbers, prefix=prefix, is_causal=True,
      is_packed=segment_ids is not None,
  )


def across(
    target_tokens: Tokens,
    input_tokens: Tokens,
    *,
    target_segment_ids: Tokens | None = None,
    input_segment_ids: Tokens | None = None,
) -> Sight:
  """Targets see the inputs of their example."""
  is_packed = target_segment_ids is not None and input_segment_ids is not None
  if not is_packed:  # as it is with masks: one of the two says nothing
    target_segment_ids = input_segment_ids = None
  return Sight(
      queries=number_examples(target_tokens, target_segment_ids),
      keys=number_examples(input_tokens, input_segment_ids),
      is_packed=is_packed,
  )


def as_mask(sight: MaskOrSight | None) -> masks.Mask | None:
  """A mask, whatever it was."""
  return sight.pairs() if isinstance(sight, Sight) else sight


def is_array(sight: MaskOrSight | None) -> bool:
  """Whether it is a mask: an array of pairs."""
  return sight is not None and not isinstance(sight, Sight)
