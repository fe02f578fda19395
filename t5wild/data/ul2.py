# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""UL2's mixture of denoisers (Tay et al., arXiv 2205.05131, table 1).

Seven denoisers of three kinds, or modes: R hides little in short spans, as T5
does; X hides much, or in long spans; S hides the last quarter of the text. The
inputs begin with a token that tells the mode.
"""

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any

from t5wild.data import denoisers as denoisers_lib
from t5wild.data import examples
from t5wild.data import objective_plans


@dataclasses.dataclass(frozen=True, kw_only=True)
class Denoiser:
  """One denoiser of the mixture.

  Attributes:
    mode: name of its kind, 'R', 'S' or 'X', by which its mode token goes.
    noise_density: fraction of the tokens to hide, in (0, 1).
    mean_noise_span_length: mean tokens per hidden span, at least 1. None: one
      span, at the end of the text.
    weight: it is drawn in proportion to this; 0 leaves it out.
  """

  mode: str
  noise_density: float
  mean_noise_span_length: float | None = None
  weight: float = 1.0

  def __post_init__(self):
    """Refuses what cannot be drawn."""
    self.rule()
    objective_plans.check_weights(
        [self.weight, 1.0], of=f'the denoiser {self.mode!r} (and another)'
    )

  def rule(self) -> denoisers_lib.SpanDenoiser:
    """What it does to a chunk."""
    return denoisers_lib.SpanDenoiser(
        noise_density=self.noise_density,
        mean_noise_span_length=self.mean_noise_span_length,
    )


# Equal weights, of which the modes R, S and X have 2, 1 and 4 of 7.
PAPER_DENOISERS = (
    Denoiser(mode='R', noise_density=0.15, mean_noise_span_length=3.0),
    Denoiser(mode='R', noise_density=0.15, mean_noise_span_length=8.0),
    Denoiser(mode='S', noise_density=0.25),
    Denoiser(mode='X', noise_density=0.5, mean_noise_span_length=3.0),
    Denoiser(mode='X', noise_density=0.5, mean_noise_span_length=8.0),
    Denoiser(mode='X', noise_density=0.15, mean_noise_span_length=64.0),
    Denoiser(mode='X', noise_density=0.5, mean_noise_span_length=64.0),
)


def mode_tokens(
    denoisers: Sequence[Denoiser],
    *,
    vocabulary: Any,
    texts: Mapping[str, str] | None = None,
) -> dict[str, tuple[int, ...]]:
  """Finds the tokens that stand for each mode, also to prompt a model with.

  Args:
    denoisers: their modes, in order.
    vocabulary: where the tokens are.
    texts: text of each mode, such as {'R': '[NLU]', 'S': '[S2S]', 'X':
      '[NLG]'} (those of the released UL2). None: the lowest sentinels, one for
      each mode in the order in which modes first appear.

  Returns:
    Tokens by mode.

  Raises:
    ValueError: for a mode without a text, or a text that the vocabulary has no
      tokens for.
  """
  modes = list(dict.fromkeys(denoiser.mode for denoiser in denoisers))
  if texts is None:
    objective_plans.check_sentinels(
        vocabulary,
        num_sentinels=len(modes),
        what_for=f'one for each of the modes {modes}, and those of the spans',
        else_do="set ul2's mode_tokens to a text for each mode, or to {}",
    )
    lowest = vocabulary.vocab_size - vocabulary.extra_ids
    return {mode: (lowest + i,) for i, mode in enumerate(modes)}
  if not texts:
    return {mode: () for mode in modes}
  return {
      mode: _tokens_of(mode, texts=texts, vocabulary=vocabulary)
      for mode in modes
  }


def _tokens_of(
    mode: str, *, texts: Mapping[str, str], vocabulary: Any
) -> tuple[int, ...]:
  """Tokens of a mode's text."""
  if mode not in texts:
    raise ValueError(
        f'mode_tokens {dict(texts)} has no text for the mode {mode!r}: '
        "expected one for each denoiser's mode. Add it, or set mode_tokens to "
        '{} for no mode tokens at all.'
    )
  tokens = tuple(int(token) for token in vocabulary.encode(texts[mode]))
  if not tokens or getattr(vocabulary, 'unk_id', None) in tokens:
    raise ValueError(
        f'the text {texts[mode]!r} of the mode {mode!r} has the tokens '
        f'{list(tokens)}: expected some, none of them unknown. Set '
        'mode_tokens to texts that the vocabulary can spell, or to None for '
        'its lowest sentinels.'
    )
  return tokens


def make_objective(
    *,
    room: objective_plans.Room,
    vocabulary: Any,
    denoisers: Sequence[Denoiser] = PAPER_DENOISERS,
    texts: Mapping[str, str] | None = None,
    max_tokens_length: int | None = None,
    **more: Any,
) -> examples.Objective:
  """Plans the mixture: each denoiser's chunks are as long as fits.

  Args:
    room: what fits.
    vocabulary: for sentinels and mode tokens.
    denoisers: what to mix.
    texts: see `mode_tokens`.
    max_tokens_length: no more text than this in a chunk.
    **more: other fields of `examples.Objective`.

  Returns:
    The objective.

  Raises:
    ValueError: where nothing fits, or sentinels or mode tokens are missing.
  """
  objective_plans.check_weights(
      [denoiser.weight for denoiser in denoisers], of='the denoisers'
  )
  denoisers = [denoiser for denoiser in denoisers if denoiser.weight > 0]
  modes = mode_tokens(denoisers, vocabulary=vocabulary, texts=texts)
  ingredients = tuple(
      examples.Ingredient(
          rule=denoiser.rule(),
          tokens_length=objective_plans.longest_chunk(
              denoiser.rule(),
              room=room,
              num_mode_tokens=len(modes[denoiser.mode]),
              max_tokens_length=max_tokens_length,
          ),
          weight=denoiser.weight,
          mode=modes[denoiser.mode],
      )
      for denoiser in denoisers
  )
  _check_sentinels(
      ingredients,
      vocabulary=vocabulary,
      num_modes=len(modes) if texts is None else 0,
  )
  return examples.Objective(
      ingredients=ingredients,
      first_sentinel=vocabulary.vocab_size - 1,
      is_concatenated=room.is_concatenated,
      **more,
  )


def _check_sentinels(
    ingredients: Sequence[examples.Ingredient],
    *,
    vocabulary: Any,
    num_modes: int,
) -> None:
  """Refuses too few sentinels, and says how much text they are enough for."""

  def needed(ingredient, tokens_length):
    return ingredient.rule.lengths(tokens_length).num_sentinels

  def longest(ingredient):
    length = ingredient.tokens_length
    while length > 2 and needed(ingredient, length) > available:
      length -= 1
    return length

  available = (getattr(vocabulary, 'extra_ids', 0) or 0) - num_modes
  worst = max(ingredients, key=lambda x: needed(x, x.tokens_length))
  num_spans = needed(worst, worst.tokens_length)
  if num_spans <= available:
    return
  enough = min(
      longest(ingredient)
      for ingredient in ingredients
      if needed(ingredient, ingredient.tokens_length) > available
  )
  objective_plans.check_sentinels(
      vocabulary,
      num_sentinels=num_spans + num_modes,
      what_for=(
          f'{num_spans} for the spans of {worst.tokens_length} tokens and '
          f'{num_modes} for the modes'
      ),
      else_do=f"set ul2's max_tokens_length = {enough}",
  )
