# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Loss as a law of parameters and tokens, with how sure that is.

The law is L(N, D) = E + A / N^a + B / D^b (Hoffmann et al., arXiv:2203.15556,
equation 10): E is what no model of the kind can do better, the second term what
a small one lacks, the third what few tokens leave untaught. As there, the
logarithm of the loss is fitted by Huber's loss, here by Levenberg's and
Marquardt's steps on reweighted squares, many fits at once. How sure it is comes
from fits of made losses: the law's, each times a residual drawn from the real
ones, which are enlarged by what the fit has taken of them.
"""

from __future__ import annotations

import dataclasses

import numpy as np

NUM_CONSTANTS = 5
# Three beyond the constants: fewer tell nothing of their noise.
LEAST_RUNS = NUM_CONSTANTS + 3
_ITERATIONS = 80
_SMALL_STEP = 1e-5
_MOST_DAMPING = 1e8
_HUBER = 1.345  # deviations; 95 % as good as least squares on normal noise
_LEAST_DEVIATION = 1e-5  # of log losses: made data may have no noise
_STARTS = [
    (share, a, b)
    for share in (0.05, 0.4, 0.8)
    for a in (0.2, 0.5, 1.0)
    for b in (0.2, 0.5, 1.0)
]
_EXPONENTS = (0.01, 4.0)
_LEVEL = 0.95
_NORMAL = 1.959964  # that 95 % of normal noise lies within, in deviations


class CannotFitError(ValueError):
  """Too little to fit a law to; the message has three parts."""


def _said(value: float) -> str:
  # An E that nothing asks for ends up as some tiny number.
  return f'{value:.3g}' if abs(value) > 1e-6 else '0'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Interval:
  """A number and where it lies by 95 %."""

  value: float
  low: float
  high: float

  def __str__(self) -> str:
    """As `0.34 (0.29 to 0.41)`."""
    value, low, high = map(_said, (self.value, self.low, self.high))
    return f'{value} ({low} to {high})'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Law:
  """A fitted law.

  Attributes:
    constants: [draws, 5]: log E, log A, log B, a, b at the middle of N and D;
      the first row is the fit, the others those of made losses.
    middle: log N and log D that the constants are of.
    residuals: of log losses, enlarged, [runs].
    seed: of the draws.
  """

  constants: np.ndarray
  middle: tuple[float, float]
  residuals: np.ndarray
  seed: int

  def loss(self, parameters, tokens) -> np.ndarray:
    """The fitted loss; parameters and tokens of one shape, any."""
    at = self._at(parameters, tokens)
    return np.exp(_log_loss(self.constants[:1], *at))[0]

  def band(self, parameters, tokens) -> tuple[np.ndarray, np.ndarray]:
    """Between which the law's own loss lies by 95 %; two of that shape."""
    logs = _log_loss(self.constants[1:], *self._at(parameters, tokens))
    return tuple(np.quantile(np.exp(logs), _ends(), axis=0))

  def predicted(self, parameters: float, tokens: float) -> Interval:
    """The loss of one run to come, its own noise included."""
    at = self._at([parameters], [tokens])
    logs = _log_loss(self.constants, *at)[:, 0]
    noise = np.random.default_rng(self.seed + 1).choice(
        self.residuals, size=(len(logs) - 1, 8)
    )
    low, high = np.quantile(np.exp(logs[1:, None] + noise), _ends())
    value = float(np.exp(logs[0]))
    return Interval(value=value, low=float(low), high=float(high))

  @property
  def exponents(self) -> dict[str, Interval]:
    """`a` of parameters, `b` of tokens, and b / (a + b).

    The last is how the best number of parameters grows with compute.
    """
    a, b = self.constants[:, 3], self.constants[:, 4]
    return {
        'a': _interval(a), 'b': _interval(b), 'b/(a+b)': _interval(b / (a + b))
    }  # fmt: skip

  @property
  def irreducible(self) -> Interval:
    """E."""
    return _interval(np.exp(self.constants[:, 0]))

  @property
  def scales(self) -> tuple[float, float]:
    """A and B of the fit."""
    _, log_a, log_b, a, b = self.constants[0]
    return (
        float(np.exp(log_a + a * self.middle[0])),
        float(np.exp(log_b + b * self.middle[1])),
    )

  def best_split(
      self, compute: np.ndarray, *, flops_per_parameter_and_token: float
  ) -> tuple[np.ndarray, np.ndarray]:
    """Parameters and tokens of the lowest fitted loss for some compute.

    Minimises L along N D = compute / (operations per parameter and token); see
    equation 4 there.
    """
    scale_n, scale_d = self.scales
    _, _, _, a, b = self.constants[0]
    both = np.asarray(compute) / flops_per_parameter_and_token
    ratio = (a * scale_n / (b * scale_d)) ** (1 / (a + b))
    return ratio * both ** (b / (a + b)), both ** (a / (a + b)) / ratio

  def _at(self, parameters, tokens) -> tuple[np.ndarray, np.ndarray]:
    return (
        np.log(np.asarray(parameters, float)) - self.middle[0],
        np.log(np.asarray(tokens, float)) - self.middle[1],
    )


def fit(
    parameters, tokens, losses, *, num_draws: int = 400, seed: int = 0
) -> Law:
  """Fits the law.

  Args:
    parameters: of each run, [runs].
    tokens: that it was trained on.
    losses: that it came to.
    num_draws: fits of made losses.
    seed: of the draws.

  Raises:
    CannotFitError: see there.
  """
  parameters, tokens, losses = (
      np.asarray(each, float) for each in (parameters, tokens, losses)
  )
  _check(parameters, tokens, losses)
  log_n, log_d = np.log(parameters), np.log(tokens)
  middle = (float(log_n.mean()), float(log_d.mean()))
  n, d = log_n - middle[0], log_d - middle[1]
  logs = np.log(losses)
  starts = np.stack([_start(losses, *each) for each in _STARTS])
  found = _descend(starts, n, d, np.broadcast_to(logs, (len(starts), len(n))))
  best = found[np.argmin(_cost(found, n, d, logs))]
  fitted = _log_loss(best[None], n, d)[0]
  residuals = _enlarged(logs - fitted, _slopes(best[None], n, d)[0])
  generator = np.random.default_rng(seed)
  made = fitted + generator.choice(residuals, size=(num_draws, len(n)))
  drawn = _descend(np.tile(best, (num_draws, 1)), n, d, made)
  return Law(
      constants=np.concatenate([best[None], drawn]),
      middle=middle, residuals=residuals, seed=seed,
  )  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class PowerLaw:
  """L = k / C^g, of the runs that nothing of less compute beats.

  Attributes:
    constants: [draws, 2]: log k at the middle of C, g; the first is the fit.
    middle: log C that k is of.
    residuals: of log losses, enlarged.
    rows: of the runs that it was fitted to.
  """

  constants: np.ndarray
  middle: float
  residuals: np.ndarray
  rows: np.ndarray

  @property
  def exponent(self) -> Interval:
    """g."""
    return _interval(self.constants[:, 1])

  def loss(self, compute) -> np.ndarray:
    """The fitted loss."""
    log_k, g = self.constants[0]
    c = np.log(np.asarray(compute, float)) - self.middle
    return np.exp(log_k - g * c)


def fit_power_law(
    compute, losses, *, num_draws: int = 400, seed: int = 0
) -> PowerLaw | None:
  """Fits a line to logarithms, by least squares; None with under three runs.

  It knows of no E, and so promises too much far away; it says what simple
  extrapolation would.
  """
  compute, losses = np.asarray(compute, float), np.asarray(losses, float)
  order = np.lexsort((losses, compute))
  before = np.minimum.accumulate(losses[order])
  is_best = np.append(True, losses[order][1:] < before[:-1])
  rows = order[is_best]
  if len(rows) < 3:
    return None
  logs = np.log(losses[rows])
  middle = float(np.log(compute[rows]).mean())
  c = np.log(compute[rows]) - middle

  def line(values: np.ndarray) -> np.ndarray:
    slope = values @ c / (c @ c)
    return np.stack([values.mean(-1), -slope], axis=-1)

  best = line(logs)
  fitted = best[0] - best[1] * c
  slopes = np.stack([np.ones_like(c), -c], axis=-1)
  residuals = _enlarged(logs - fitted, slopes)
  made = fitted + np.random.default_rng(seed).choice(
      residuals, size=(num_draws, len(c))
  )
  return PowerLaw(
      constants=np.concatenate([best[None], line(made)]),
      middle=middle, residuals=residuals, rows=rows,
  )  # fmt: skip


def _check(parameters, tokens, losses) -> None:
  problem = None
  if len(losses) < LEAST_RUNS:
    problem = f'There are {len(losses)} results, and five numbers to find'
  elif len(set(parameters)) < 2 or len(set(tokens)) < 2:
    sizes, budgets = len(set(parameters)), len(set(tokens))
    problem = f'There are {sizes} sizes and {budgets} numbers of tokens'
  elif not (np.isfinite(losses).all() and (losses > 0).all()):
    problem = f'Not all losses are positive numbers: {losses.tolist()}'
  if problem is not None:
    raise CannotFitError(
        f'{problem}\n'
        f'  expected: {LEAST_RUNS} positive losses or more, of two sizes and '
        'two numbers of tokens or more; three of each tell something.\n'
        '  do: add sizes or tokens, or mend the runs that failed'
    )


def _log_loss(constants: np.ndarray, n, d) -> np.ndarray:
  """log L of each set of constants, [sets, ...]; n and d of one shape."""
  e, scale_n, scale_d, a, b = constants.T.reshape(
      5, len(constants), *[1] * np.ndim(n)
  )
  return np.logaddexp(
      e, np.logaddexp(scale_n - a * n, scale_d - b * d)
  )


def _start(losses: np.ndarray, share: float, a: float, b: float) -> np.ndarray:
  low = losses.min()
  rest = np.log(max(np.median(losses) - share * low, 1e-3 * low) / 2)
  return np.array([np.log(share * low), rest, rest, a, b])


def _enlarged(residuals: np.ndarray, slopes: np.ndarray) -> np.ndarray:
  """Residuals as large as the noise was, [runs].

  A fit bends towards its runs, and the most to those far out: each residual is
  divided by sqrt(1 - its leverage). And few runs tell their noise badly: all
  grow by the ratio of Student's quantile to the normal one.

  Args:
    residuals: of the fit.
    slopes: of the law by its numbers, [runs, numbers].
  """
  basis = np.linalg.svd(slopes, full_matrices=False)[0]
  leverage = np.clip((basis**2).sum(-1), 0.0, 0.95)
  free = len(residuals) - slopes.shape[-1]
  larger = residuals / np.sqrt(1 - leverage) * _student(free) / _NORMAL
  return larger - larger.mean()


def _student(free: int) -> float:
  """Student's quantile for 95 %, to 4 % with three degrees of freedom or more.

  Cornish's and Fisher's expansion (Abramowitz and Stegun, 26.7.5).
  """
  z = _NORMAL
  return (
      z
      + (z**3 + z) / (4 * free)
      + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)
      + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * free**3)
  )


def _deviation(residuals: np.ndarray) -> np.ndarray:
  """Of each row, robustly, with five fitted numbers in mind."""
  middle = np.median(np.abs(residuals), axis=-1, keepdims=True)
  count = residuals.shape[-1]
  enlarged = 1.4826 * middle * np.sqrt(count / (count - NUM_CONSTANTS))
  return np.maximum(enlarged, _LEAST_DEVIATION)


def _cost(constants, n, d, logs) -> np.ndarray:
  """Mean Huber loss of each row with one scale for all, the best row's."""
  residuals = logs - _log_loss(constants, n, d)
  scale = _HUBER * _deviation(residuals).min()
  size = np.abs(residuals)
  return np.where(
      size <= scale, size**2 / 2, scale * (size - scale / 2)
  ).sum(-1)


def _descend(constants, n, d, logs) -> np.ndarray:
  """Fits each row of `logs` [sets, runs] from its own start [sets, 5]."""
  constants = constants.copy()
  damping = np.full(len(constants), 1e-2)
  active = np.arange(len(constants))
  for _ in range(_ITERATIONS):
    old = constants[active]
    step, weights, before = _step(old, n, d, logs[active], damping[active])
    tried = old + step
    tried[:, 3:] = np.clip(tried[:, 3:], *_EXPONENTS)
    after = (weights * (logs[active] - _log_loss(tried, n, d)) ** 2).sum(-1)
    is_better = after <= before
    constants[active[is_better]] = tried[is_better]
    damping[active] *= np.where(is_better, 1 / 3, 4.0)
    is_small = np.abs(tried - old).max(-1) < _SMALL_STEP
    active = active[~(is_small | (damping[active] > _MOST_DAMPING))]
    if not len(active):
      break
  return constants


def _step(constants, n, d, logs, damping):
  """A damped step of each row, the runs' weights, the weighted squares."""
  residuals = logs - _log_loss(constants, n, d)
  scale = _HUBER * _deviation(residuals)
  weights = np.minimum(1.0, scale / np.maximum(np.abs(residuals), 1e-300))
  slopes = _slopes(constants, n, d)
  weighted = slopes * weights[..., None]
  normal = weighted.swapaxes(1, 2) @ slopes
  gradient = weighted.swapaxes(1, 2) @ residuals[..., None]
  diagonal = np.einsum('spp->sp', normal)
  floor = 1e-9 * diagonal.max(-1, keepdims=True)
  ridge = damping[:, None] * (diagonal + floor) + 1e-14
  step = np.linalg.solve(
      normal + ridge[:, None] * np.eye(NUM_CONSTANTS), gradient
  )[..., 0]
  return np.clip(step, -2.0, 2.0), weights, (weights * residuals**2).sum(-1)


def _slopes(constants, n, d) -> np.ndarray:
  """d log L / d constants, [sets, runs, 5]."""
  e, scale_n, scale_d, a, b = (each[:, None] for each in constants.T)
  whole = _log_loss(constants, n, d)
  share_n = np.exp(scale_n - a * n - whole)
  share_d = np.exp(scale_d - b * d - whole)
  share_e = np.broadcast_to(np.exp(e - whole), share_n.shape)
  return np.stack(
      [share_e, share_n, share_d, -n * share_n, -d * share_d], axis=-1
  )


def _ends() -> tuple[float, float]:
  return ((1 - _LEVEL) / 2, (1 + _LEVEL) / 2)


def _interval(values: np.ndarray) -> Interval:
  low, high = np.quantile(values[1:], _ends())
  return Interval(value=float(values[0]), low=float(low), high=float(high))
