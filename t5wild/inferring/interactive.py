# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A prompt line in, text out."""

from collections.abc import Callable, Iterable, Iterator

from t5wild.data import vocabularies
from t5wild.inferring import inputs
from t5wild.inferring import progress
from t5wild.inferring import session
from t5wild.models import base as models_base


def answer(
    prompts: Iterable[str],
    *,
    plan: session.Plan,
    cfg: inputs.FileConfig,
    infer_fn: session.InferFn,
    tell: Callable[[str], None],
) -> None:
  """Tells of each prompt what the model decodes, until there are no more.

  Each length of prompts (of `plan.buckets`) is compiled when first needed.

  Args:
    prompts: Texts.
    plan: Of mode 'predict'.
    cfg: How prompts are encoded.
    infer_fn: From `jobs.Engine`.
    tell: Called with each answer.
  """
  model: models_base.BaseModel = plan.model
  maker = inputs.ExampleMaker(cfg, model=model, mode=plan.mode)
  for number, prompt in enumerate(prompts):
    example, is_cut = maker.make({cfg.inputs_key: prompt})
    if is_cut:
      tell(
          f'(the prompt was cut to {plan.lengths["inputs"]} tokens; '
          '--input_length raises that)'
      )
    chunk = session.prepare(plan, [example], number=number, digest='')
    (tokens,), _ = session.infer_chunk(
        chunk,
        infer_fn=infer_fn,
        progress=progress.Progress('prompts', total=None),
    )
    many = tokens if isinstance(tokens[0], list) else [tokens]
    for one in many:
      tell(
          vocabularies.decode_as_written(
              one, vocabulary=model.output_vocabulary
          )
      )


class EmptyPrompt:
  """A source of one empty prompt, to tell the shape of a batch by."""

  name = 'prompts'

  def __init__(self, cfg: inputs.FileConfig, *, model: models_base.BaseModel):
    """Takes how prompts are encoded."""
    self._maker = inputs.ExampleMaker(cfg, model=model, mode=inputs.PREDICT)
    self._key = cfg.inputs_key

  def examples(self) -> Iterator[inputs.Example]:
    """Yields the example."""
    yield self._maker.make({self._key: ''})[0]
