# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a bucket can be reached from here, told within seconds.

TensorFlow tries a bucket that it cannot reach ten times, a minute each.
"""

import functools
import threading
import urllib.error
import urllib.request

TIMEOUT_SECONDS = 5.0
# Where a scheme's buckets are served; others are left to who reads them.
_SERVERS = {'gs': 'https://storage.googleapis.com/'}


def is_reachable(path: str) -> bool:
  """Whether the server of a path answers at all; True where nobody knows.

  Asked once in a process, through a proxy where the environment names one.
  """
  scheme, _, rest = path.partition('://')
  server = _SERVERS.get(scheme) if rest else None
  return server is None or answers(server)


@functools.cache
def answers(url: str) -> bool:
  """Whether anything answers at a URL within `TIMEOUT_SECONDS`."""
  found = threading.Event()

  def ask():
    request = urllib.request.Request(url, method='HEAD')
    try:
      with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS):
        found.set()
    except urllib.error.HTTPError:
      found.set()  # a refusal is an answer
    except OSError:
      pass

  # The look-up of a name has no time limit of its own.
  asking = threading.Thread(target=ask, daemon=True)
  asking.start()
  asking.join(TIMEOUT_SECONDS)
  return found.is_set()
