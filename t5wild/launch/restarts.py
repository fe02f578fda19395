# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Whether to start a run again, when, and what to say if not. Pure."""

from collections.abc import Sequence
import dataclasses

from t5wild.launch import failures


@dataclasses.dataclass(frozen=True, kw_only=True)
class Policy:
  """How much patience a supervisor has.

  Attributes:
    crash_loop: the same error at the same step so many times in a row ends it.
    max_without_progress: so many failures in a row, of any kind, with no newer
      checkpoint among them end it.
    max_restarts: at most so many in all; None: any number.
    first_delay_seconds: before the second restart in a row; the first is at
      once, each further one waits twice as long.
    max_delay_seconds: but no longer than this.
  """

  crash_loop: int = 3
  max_without_progress: int = 10
  max_restarts: int | None = None
  first_delay_seconds: float = 2.0
  max_delay_seconds: float = 300.0

  def __post_init__(self):
    """Refuses what makes no sense."""
    for name, lowest in (('crash_loop', 2), ('max_without_progress', 2)):
      if getattr(self, name) < lowest:
        raise ValueError(
            f'--{name} is {getattr(self, name)}, expected at least {lowest}: '
            'one failure alone shows no loop. Use --max_restarts=0 to restart '
            'nothing.'
        )
    if self.max_restarts is not None and self.max_restarts < 0:
      raise ValueError(
          f'--max_restarts is {self.max_restarts}, expected 0 or more: leave '
          'it out for any number'
      )
    if not 0 <= self.first_delay_seconds <= self.max_delay_seconds:
      raise ValueError(
          f'--first_delay_seconds is {self.first_delay_seconds}, '
          f'--max_delay_seconds {self.max_delay_seconds}: expected 0 <= first '
          '<= max. Correct one of them.'
      )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ended:
  """How an attempt ended.

  Attributes:
    failure: its root cause.
    step: how far it came; None where it gave no sign.
    kept: progress that the next one can build on (the newest checkpoint's
      step); None where there is none.
  """

  failure: failures.Failure
  step: int | None = None
  kept: int | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Decision:
  """What to do after an attempt.

  Attributes:
    restart: whether to start it again.
    delay_seconds: how long to wait before that.
    verdict: why, for a person.
    code: exit code where the run ends for another host's failure.
    tells: whether this supervisor is the one that tells a person who is away.
  """

  restart: bool
  delay_seconds: float = 0.0
  verdict: str
  code: int | None = None
  tells: bool = True


def decide(policy: Policy, history: Sequence[Ended]) -> Decision:
  """Decides by how the attempts ended so far, in order of time."""
  last = history[-1]
  why_not = _why_not(policy, history)
  if why_not:
    return Decision(restart=False, verdict=why_not)
  in_row = _num_without_progress(history)
  delay = 0.0
  if in_row > 1:
    delay = min(
        policy.max_delay_seconds,
        policy.first_delay_seconds * 2.0 ** min(in_row - 2, 30),
    )
  return Decision(
      restart=True,
      delay_seconds=delay,
      verdict=f'{last.failure.kind.name}: starting again in {delay:.0f} s',
  )


def _why_not(policy: Policy, history: Sequence[Ended]) -> str:
  """Why not to restart, in words; empty where it should be."""
  last = history[-1]
  kind = last.failure.kind
  if kind is failures.DONE:
    return 'The run is done.'
  if not kind.restart:
    return (
        f'NOT RESTARTED: {kind.meaning}, and another start would repeat it.\n'
        f'  {last.failure}\n'
        '  Mend it; the same command then goes on from the newest checkpoint.'
    )
  if _is_crash_loop(policy, history):
    return (
        f'CRASH LOOP: {policy.crash_loop} times in a row the run ended '
        f'{_place(last)} with the same error.\n'
        f'  {last.failure}\n'
        '  Another start would repeat it. Mend the cause; the same command '
        'then goes on from the newest checkpoint'
        f'{"" if last.kept is None else f", of step {last.kept}"}.'
    )
  in_row = _num_without_progress(history)
  if in_row >= policy.max_without_progress:
    kinds = sorted({end.failure.kind.name for end in history[-in_row:]})
    return (
        f'NO PROGRESS: {in_row} failures in a row ({", ".join(kinds)}) and no '
        'checkpoint newer than '
        f'{"none" if last.kept is None else f"that of step {last.kept}"}.\n'
        f'  The last one: {last.failure}\n'
        '  Look at the logs of the attempts, save more often, or raise '
        '--max_without_progress.'
    )
  if policy.max_restarts is not None and len(history) > policy.max_restarts:
    return (
        f'ENOUGH: {len(history)} attempts ended, --max_restarts is '
        f'{policy.max_restarts}.\n  The last one: {last.failure}\n'
        '  Raise it to go on.'
    )
  return ''


def _place(end: Ended) -> str:
  return 'before its first step' if end.step is None else f'at step {end.step}'


def _is_crash_loop(policy: Policy, history: Sequence[Ended]) -> bool:
  recent = history[-policy.crash_loop :]
  kind = recent[-1].failure.kind
  # Who lost a peer waits for it: a host may take its time to come back.
  if len(recent) < policy.crash_loop or kind in (
      failures.LOST_PEER, failures.LOST_HOST
  ):  # fmt: skip
    return False
  if not kind.is_failure:
    return False
  return len({(end.failure.signature(), end.step) for end in recent}) == 1


def without_progress(history: Sequence[Ended]) -> Sequence[Ended]:
  """The ends since a checkpoint was last gained, in order of time."""
  return history[len(history) - _num_without_progress(history) :]


def _num_without_progress(history: Sequence[Ended]) -> int:
  """Failures at the end of the history since a checkpoint was last gained."""
  number = 0
  for before, end in zip([None, *history], [*history], strict=False):
    gained = before is not None and (end.kept or 0) > (before.kept or 0)
    number = 1 if gained else number + 1
  return number
