# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What each exit of a t5wild process means and which a supervisor restarts.

Numbers stay clear of those a shell gives (126 to 165: not runnable, not found,
killed by signal N as 128 + N) and of the first few that Python and its
libraries use themselves.
"""

import dataclasses
import signal


@dataclasses.dataclass(frozen=True, kw_only=True)
class Exit:
  """One way for a process to end.

  Attributes:
    code: the number that the process returns.
    name: one word for logs and for a supervisor's table.
    meaning: one sentence for a person.
    restart: whether running the same command again is the right answer.
  """

  code: int
  name: str
  meaning: str
  restart: bool


DONE = Exit(
    code=0,
    name='done',
    meaning='The run reached its last step, or an action ended it.',
    restart=False,
)
FAILED = Exit(
    code=1,
    name='failed',
    meaning='An error nobody foresaw; its traceback is in the log.',
    restart=True,
)
BAD_CONFIG = Exit(
    code=2,
    name='bad_config',
    meaning='The recipe, the command line or the text is wrong: mend it first.',
    restart=False,
)
PREEMPTED = Exit(
    code=75,
    name='preempted',
    meaning='Told to stop: a checkpoint is saved, the same command resumes.',
    restart=True,
)
HUNG = Exit(
    code=76,
    name='hung',
    meaning='No step finished within the time allowed.',
    restart=True,
)
NON_FINITE = Exit(
    code=77,
    name='non_finite',
    meaning='Loss or gradients are not finite: a restart would repeat it.',
    restart=False,
)
LOST_PEER = Exit(
    code=78,
    name='lost_peer',
    meaning='Another process of the run went away.',
    restart=True,
)
BAD_HARDWARE = Exit(
    code=79,
    name='bad_hardware',
    meaning='A device gave wrong results or is gone: restart without its host.',
    restart=True,
)
DISK_FULL = Exit(
    code=80,
    name='disk_full',
    meaning='The run directory cannot be written and no step can be kept.',
    restart=False,
)
DOES_NOT_FIT = Exit(
    code=81,
    name='does_not_fit',
    meaning='A program was compiled, and takes more memory than a device has.',
    restart=False,
)
UNSTABLE = Exit(
    code=82,
    name='unstable',
    meaning='Loss or gradients left their range, and rewinding did not help.',
    restart=False,
)
RUN_DIR_LOST = Exit(
    code=83,
    name='run_dir_lost',
    meaning='MODEL_DIR was moved, deleted or taken under the run.',
    restart=False,
)

ALL = (
    DONE,
    FAILED,
    BAD_CONFIG,
    PREEMPTED,
    HUNG,
    NON_FINITE,
    LOST_PEER,
    BAD_HARDWARE,
    DISK_FULL,
    DOES_NOT_FIT,
    UNSTABLE,
    RUN_DIR_LOST,
)
_BY_CODE = {exit_.code: exit_ for exit_ in ALL}


def explain(code: int) -> Exit:
  """Returns the meaning of a return code, whoever gave it.

  Args:
    code: as `subprocess` gives it (-N: killed by signal N) or as a shell does
      (128 + N). Unknown numbers count as `FAILED`, with the number named.
  """
  if code in _BY_CODE:
    return _BY_CODE[code]
  number = -code if code < 0 else code - 128
  try:
    name = signal.Signals(number).name
  except ValueError:
    return dataclasses.replace(
        FAILED, code=code, meaning=f'Unknown exit code {code}.'
    )
  return Exit(
      code=code,
      name=name.lower(),
      meaning=f'Killed by {name}; a restart goes on from the newest complete '
      'checkpoint, if there is one.',
      restart=number != signal.SIGINT,
  )
