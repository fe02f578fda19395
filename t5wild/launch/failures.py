# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What ended a process: told by its exit code, its signal and its last lines.

Pure: the same evidence gives the same kind. Exit codes of ours are believed
first; what libraries say in words comes next; what is left is unknown.
"""

from collections.abc import Sequence
import dataclasses
import re
import signal

from t5wild import exit_codes
from t5wild.vitals import corruption


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kind:
  """One kind of end.

  Attributes:
    name: one word for records and tables.
    meaning: for a person, as a clause.
    restart: whether running the same command again is the right answer.
    is_failure: whether something went wrong.
  """

  name: str
  meaning: str
  restart: bool = True
  is_failure: bool = True


DONE = Kind(name='done', meaning='it is done', restart=False, is_failure=False)
PREEMPTED = Kind(
    name='preempted', meaning='it was told to stop, and has saved its state',
    is_failure=False,
)  # fmt: skip
STOPPED = Kind(
    name='stopped', meaning='a person stopped it', restart=False,
    is_failure=False,
)  # fmt: skip
USER_ERROR = Kind(
    name='user_error',
    meaning='the command, the recipe or the code it names is wrong',
    restart=False,
)
NON_FINITE = Kind(
    name='non_finite',
    meaning='the loss or the parameters are not finite',
    restart=False,
)
UNSTABLE = Kind(
    name='unstable',
    meaning='loss or gradients left their range, and it was told to stop',
    restart=False,
)
SAVE_ERROR = Kind(
    name='save_error',
    meaning='the state cannot be written: the disk is full or the quota is',
    restart=False,
)
RUN_DIR_LOST = Kind(
    name='run_dir_lost',
    meaning='its MODEL_DIR was moved, deleted or taken while it wrote there',
    restart=False,
)
HANG = Kind(name='hang', meaning='it did not move any more')
OUT_OF_MEMORY = Kind(
    name='out_of_memory', meaning='a device or the host had no memory left'
)
DOES_NOT_FIT = Kind(
    name='does_not_fit',
    meaning='its program takes more memory than a device has',
    restart=False,
)
DEVICE = Kind(name='device', meaning='a device failed (Xid, ECC, lost)')
DATA = Kind(name='data', meaning='the training data could not be read')
FILE_SYSTEM = Kind(name='file_system', meaning='the file system failed')
PORT = Kind(name='port', meaning="the coordinator's port was taken")
LOST_PEER = Kind(
    name='lost_peer', meaning='another process of the run was gone'
)
LOST_HOST = Kind(
    name='lost_host', meaning='a host of the run gave no sign of life any more'
)
KILLED = Kind(name='killed', meaning='somebody killed it')
UNKNOWN = Kind(name='unknown', meaning='nobody foresaw it; see its log')

KINDS = (
    DONE, PREEMPTED, STOPPED, USER_ERROR, NON_FINITE, UNSTABLE, SAVE_ERROR,
    RUN_DIR_LOST, HANG, OUT_OF_MEMORY, DOES_NOT_FIT, DEVICE, DATA, FILE_SYSTEM,
    PORT, LOST_PEER, LOST_HOST, KILLED, UNKNOWN,
)  # fmt: skip

_BY_CODE = {
    exit_codes.DONE.code: DONE,
    exit_codes.BAD_CONFIG.code: USER_ERROR,
    exit_codes.PREEMPTED.code: PREEMPTED,
    exit_codes.HUNG.code: HANG,
    exit_codes.NON_FINITE.code: NON_FINITE,
    exit_codes.UNSTABLE.code: UNSTABLE,
    exit_codes.RUN_DIR_LOST.code: RUN_DIR_LOST,
    exit_codes.LOST_PEER.code: LOST_PEER,
    exit_codes.BAD_HARDWARE.code: DEVICE,
    exit_codes.DISK_FULL.code: SAVE_ERROR,
    exit_codes.DOES_NOT_FIT.code: DOES_NOT_FIT,
    126: USER_ERROR,  # a shell: cannot be run
    127: USER_ERROR,  # a shell: not found
}
# In this order: a fault that drags others behind it comes before them.
_BY_WORDS = (
    (DEVICE, re.compile(
        r'NVRM: Xid|\bXid \(PCI'  # the word alone may be of a text
        r'|CUDA_ERROR_(ECC|ILLEGAL|LAUNCH|HARDWARE|MISALIGNED|NO_DEVICE'
        r'|UNKNOWN)|uncorrectable ECC|fallen off the bus|GPU is lost'
        r'|NVLink error|DEVICE_LOST'
    )),
    (SAVE_ERROR, re.compile(
        r'No space left on device|Disk quota exceeded|STATE IS NOT SAVED'
    )),
    (OUT_OF_MEMORY, re.compile(
        r'RESOURCE_EXHAUSTED|[Oo]ut of memory|\bMemoryError\b|bad_alloc'
        r'|CUDA_ERROR_OUT_OF_MEMORY|Cannot allocate memory'
    )),
    (FILE_SYSTEM, re.compile(
        r'Stale file handle|Input/output error|Transport endpoint is not'
        r'|Remote I/O error'
    )),
    (DATA, re.compile(
        r'CorruptTextError|DataLossError|DATA_LOSS|the training data ended'
        r'|corrupted record|ArrowInvalid'
    )),
    (PORT, re.compile(
        r'[Aa]ddress already in use|EADDRINUSE|Failed to add port'
        r'|could not bind|[Nn]o port bound'
    )),
    (USER_ERROR, re.compile(
        r'^(ModuleNotFoundError|ImportError|SyntaxError|IndentationError'
        r'|NameError): '
    )),
    (LOST_PEER, re.compile(
        r'[Cc]oordination service|Connection (reset|closed) by peer'
        r'|[Hh]eartbeat timeout|Gloo \w+ failed|Broken pipe'
        r'|The barrier .* was given up|could not join the run'
        r'|Connection refused|Socket closed|NCCL (error|operation)'
    )),
)  # fmt: skip
# What comes before the name of a device that computes wrongly.
_CORRUPTION = corruption.WORDS
# What came before so many lines of progress did not end the run; steps that
# were under way may still be told after what did.
_PROGRESS = re.compile(r'\W*step [\d,]+/[\d,]+ ')
_SURVIVED_LINES = 10
_HANG_LINE = re.compile(r'^process \d+ hangs in ')
_LAGGARD_LINE = re.compile(r'^  process \d+ on ')
_CRASHES = {
    -signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, -signal.SIGILL,
    -signal.SIGFPE,
}  # fmt: skip
# JAX adds a note of its own to some tracebacks, below a line of dashes.
_TRACEBACK_LINE = re.compile(
    r'^\s|^$|^\*\*\*|^Traceback|^Extension modules'
    r'|^-{5,}$|^For simplicity, JAX has removed its internal frames'
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Failure:
  """What ended a process.

  Attributes:
    kind: one of `KINDS`.
    code: as `subprocess` gives it.
    process: its index.
    line: the line of its output that says most, or what is told in its place.
  """

  kind: Kind
  code: int
  process: int = 0
  line: str = ''

  def signature(self) -> str:
    """The same for the same error: without numbers and addresses."""
    line = re.sub(r'0x[0-9a-fA-F]+|\d+', '#', self.line)
    return f'{self.kind.name}: {line}'

  def __str__(self) -> str:
    """One line for a person."""
    return (
        f'process {self.process}: {self.kind.name}, {self.kind.meaning} '
        f'(exit code {self.code}): {self.line}'
    )


def lost_host(line: str, *, process: int) -> Failure:
  """What ended a process whose host is gone, or that was left behind.

  Args:
    line: what is told of it.
    process: its index.
  """
  return Failure(
      kind=LOST_HOST,
      code=exit_codes.LOST_PEER.code,
      process=process,
      line=line,
  )


def left_early(process: int, *, step: int) -> Failure:
  """What ended a process with exit code 0 before its run was done.

  Args:
    process: its index.
    step: at which it was.
  """
  return Failure(
      kind=UNKNOWN,
      code=exit_codes.FAILED.code,
      process=process,
      line=f'it left with exit code 0 at step {step}, before the run was done: '
      'something in it ends the process (sys.exit, os._exit)',
  )


def classify(
    code: int,
    lines: Sequence[str],
    *,
    process: int = 0,
    num_oom_kills: int = 0,
) -> Failure:
  """Tells the kind of an exit.

  Args:
    code: as `subprocess` gives it (-N: killed by signal N) or a shell does
      (128 + N).
    lines: the last lines that the process printed.
    process: its index.
    num_oom_kills: how many processes the kernel has killed on this machine, or
      in this container, for want of memory since this one was started.
  """
  if 128 < code < 160:
    code = 128 - code
  kind, line = _by_code(code), ''
  if kind is USER_ERROR:
    # A recipe's files may lie on a file system that fails.
    kind, line = _search(lines, (FILE_SYSTEM,)) or (kind, '')
  elif kind is HANG:
    line = _hang_words(lines)
  elif kind is DEVICE:
    line = next((one for one in lines if _CORRUPTION in one), '').strip()
  elif code == -signal.SIGKILL and num_oom_kills:
    kind = OUT_OF_MEMORY
    line = "killed by the kernel's out-of-memory killer"
  elif kind in (UNKNOWN, KILLED):
    # SIGKILL gives no last words: what stands there is older.
    found = None
    if code != -signal.SIGKILL:
      found = _search(_not_survived(lines), KINDS)
    kind, line = found or (kind, '')
  return Failure(
      kind=kind,
      code=code,
      process=process,
      line=line or _last_words(code, lines),
  )


def root_cause(failures: Sequence[Failure]) -> Failure:
  """The one that ended the others, of failures in order of time.

  A process whose peer is gone leaves, too, and may be the first to be seen.
  """
  failed = [f for f in failures if f.kind.is_failure]
  own = [f for f in failed if f.kind is not LOST_PEER]
  return (own or failed or list(failures))[0]


def _by_code(code: int) -> Kind:
  if code in _BY_CODE:
    return _BY_CODE[code]
  if code in (-signal.SIGINT,):
    return STOPPED
  if code < 0 and code not in _CRASHES:
    return KILLED
  return UNKNOWN


def _not_survived(lines: Sequence[str]) -> Sequence[str]:
  """Without what the run went on from: a save that failed hours ago."""
  progress = [i for i, line in enumerate(lines) if _PROGRESS.match(line)]
  if len(progress) < _SURVIVED_LINES:
    return lines
  return lines[progress[-_SURVIVED_LINES] :]


def _search(
    lines: Sequence[str], kinds: Sequence[Kind]
) -> tuple[Kind, str] | None:
  for kind, pattern in _BY_WORDS:
    if kind not in kinds:
      continue
    for line in reversed(lines):
      if pattern.search(line):
        return kind, line.strip()
  return None


def _hang_words(lines: Sequence[str]) -> str:
  """What the watchdog said, and whom it named below; '' if nothing is there."""
  said = [i for i, line in enumerate(lines) if _HANG_LINE.search(line)]
  if not said:
    return ''
  named = [
      line.strip()
      for line in lines[said[-1] + 1 :]
      if _LAGGARD_LINE.search(line)
  ]
  return '; '.join([lines[said[-1]].strip(), *named])


def _last_words(code: int, lines: Sequence[str]) -> str:
  told = exit_codes.explain(code).meaning
  if code < 0 or code == exit_codes.DONE.code:
    return told
  for line in reversed(lines):
    if not _TRACEBACK_LINE.search(line):
      return line.strip()
  return told
