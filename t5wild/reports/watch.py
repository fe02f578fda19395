# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild watch RUN`: a run as it goes on, in the terminal or on a page."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
import contextlib
import os
import sys
import time

from t5wild import exit_codes
from t5wild import run_dir as run_dir_lib
from t5wild.reports import contents as contents_lib
from t5wild.reports import findings as findings_lib
from t5wild.reports import history as history_lib
from t5wild.reports import html_page
from t5wild.reports import live_page
from t5wild.reports import outputs as outputs_lib
from t5wild.reports import run_texts
from t5wild.reports import terminal_view
from t5wild.vitals import heartbeats

_JUDGE_SECONDS = 20.0
_RELOAD_SECONDS = 30
_DESCRIPTION = """Shows a run as it goes on: curves, how far it is and how long
it takes, the slowest process, the last events. Ends with the run, or by Ctrl-C.
Where the output is no terminal it is shown once."""


def main(argv: Sequence[str] | None = None) -> int:
  """Watches, and returns an exit code; `argv` without our name."""
  arguments = _parse(argv)
  try:
    watcher = Watcher(arguments.run)
    with contextlib.ExitStack() as stack:
      page = None
      if arguments.serve is not None:
        page = live_page.LivePage(
            lambda: html_page.page(
                contents_lib.read_contents(arguments.run),
                reload_seconds=_RELOAD_SECONDS,
            ),
            port=arguments.serve,
        )
        stack.callback(page.close)
      _show(watcher, arguments, page)
  except (history_lib.NoRunError, live_page.PortTakenError) as error:
    sys.stderr.write(f'{error}\n')
    return exit_codes.BAD_CONFIG.code
  except KeyboardInterrupt:  # how one stops to watch
    pass
  return exit_codes.DONE.code


class Watcher:
  """Looks at a run now and then; reads what is new, judges seldom."""

  def __init__(self, path: str):
    """Looks whether there is a run.

    Raises:
      history.NoRunError: there is no such folder.
    """
    self._run = run_dir_lib.RunDir(path)
    self._reader = history_lib.Reader(path)
    self._findings: Sequence[findings_lib.Finding] = ()
    self._judged: float | None = None

  def look(self) -> terminal_view.Now:
    """The run as it is now."""
    now, steady = time.time(), time.monotonic()
    try:
      history = self._reader.read()
      texts = run_texts.read_texts(history)
    except history_lib.NoRunError:
      history = texts = None
    if history is not None and (
        self._judged is None or steady - self._judged > _JUDGE_SECONDS
    ):
      self._findings = findings_lib.find(history)
      self._judged = steady
    return terminal_view.Now(
        history=history,
        texts=texts,
        findings=self._findings,
        signs=heartbeats.read_all(self._run),
        name=os.path.basename(os.path.abspath(self._run.path)),
        seconds=now,
    )


def _is_over(now: terminal_view.Now) -> bool:
  return now.history is not None and (
      now.history.ended is not None
      or contents_lib.is_done(now.history, now.texts)
  )


def _show(
    watcher: Watcher,
    arguments: argparse.Namespace,
    page: live_page.LivePage | None,
) -> None:
  from rich import console as console_lib
  from rich import live
  from rich import text

  console = console_lib.Console()

  def drawn(now: terminal_view.Now):
    parts = [terminal_view.view(now, width=console.width)]
    if page is not None:
      parts.append(text.Text(f'\n{page.url}', style='underline'))
    return console_lib.Group(*parts)

  now = watcher.look()
  if arguments.once or not console.is_terminal and page is None:
    console.print(drawn(now))
    return
  if page is not None and not console.is_terminal:
    console.print(page.url)
  with live.Live(
      drawn(now), console=console, auto_refresh=False, screen=False
  ) as shown:
    while page is not None or not _is_over(now):
      time.sleep(arguments.period)
      now = watcher.look()
      shown.update(drawn(now), refresh=console.is_terminal)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
  parser = argparse.ArgumentParser(
      prog='t5wild watch', description=_DESCRIPTION
  )
  parser.add_argument(
      'run', type=outputs_lib.path_of_a_run, metavar='RUN',
      help='the MODEL_DIR of a run',
  )
  parser.add_argument(
      '--period', type=_period, default=2.0, metavar='SECONDS',
      help='between two looks; by default 2',
  )
  parser.add_argument(
      '--once', action='store_true', help='show it once, and end'
  )
  parser.add_argument(
      '--serve', type=int, metavar='PORT',
      help='also serve the page of `t5wild report`, made anew as the run goes '
      'on, to this machine only; 0 takes a free port',
  )
  return parser.parse_args(argv)  # fmt: skip


def _period(text: str) -> float:
  seconds = float(text)
  if not 0.1 <= seconds < float('inf'):
    raise argparse.ArgumentTypeError(
        f'{text!r} is no period; expected seconds of at least 0.1, e.g. 2'
    )
  return seconds


if __name__ == '__main__':
  sys.exit(main())
