# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Takes secrets out of texts that leave the machine."""

from __future__ import annotations

import re

MARK = '[hidden]'

# A value whose name says it is secret: `api_key = '...'`, `TOKEN: ...`.
# Names with tokens of text (`tokens`, `token_embedder`, `max_tokens`) are none.
_NAMED = re.compile(
    r"""(?ix)
    ( (?:^|[^a-z0-9]) (?:[a-z0-9_.\-]*[_.\-])?
      (?: api_?key | access_?key | secret(?:_?key)? | passw(?:or)?d | passwd
        | credentials? | private_?key | auth(?:orization)? | bearer
        | (?:access|auth|api|bot|hf|wandb|github|refresh|id)_?token | token
        | webhook(?:_?url)? )
      ["']? \s* (?: = | : ) \s* )
    ( "[^"\n]*" | '[^'\n]*' | [^\s,;)}\]]+ )
    """
)
_HARMLESS = re.compile(r"""["']?(?:None|True|False|\d[\d._]*|[%@].*|)["']?\Z""")
# Values that are secrets whatever their name: keys of well-known services,
# JSON web tokens, private keys, and what stands before the @ of a URL.
_SHAPED = (
    re.compile(r'\b(?:hf|sk|pk|rk|ghp|gho|ghs|ghu|glpat|xox[abprs])[_-]'
               r'[A-Za-z0-9_\-]{16,}'),
    re.compile(r'\bgithub_pat_[A-Za-z0-9_]{20,}'),
    re.compile(r'\b(?:AKIA|ASIA)[A-Z0-9]{16}\b'),
    re.compile(r'\bAIza[A-Za-z0-9_\-]{30,}'),
    re.compile(r'\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[\w\-]+'),
    re.compile(r'-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*'
               r'PRIVATE KEY-----|\Z)', re.DOTALL),
    re.compile(r'https://hooks\.slack\.com/[^\s"\'<>]+'),
    re.compile(r'https://(?:\w+\.)?discord(?:app)?\.com/api/webhooks/'
               r'[^\s"\'<>]+'),
)  # fmt: skip
_URL_USER = re.compile(r'(?<=://)[^\s/@"\']+:[^\s/@"\']+(?=@)')
_URL_QUERY = re.compile(
    r'(?i)([?&](?:[a-z_\-]*(?:token|key|secret|signature|sig|password))=)'
    r'[^&\s"\']+'
)


def redacted(text: str) -> str:
  """The text with each secret that can be told replaced by a mark."""
  for pattern in _SHAPED:
    text = pattern.sub(MARK, text)
  text = _URL_USER.sub(MARK, text)
  text = _URL_QUERY.sub(rf'\1{MARK}', text)
  return _NAMED.sub(_named, text)


def _named(match: re.Match) -> str:
  head, value = match.groups()
  if _HARMLESS.match(value) or MARK in value:
    return match.group(0)
  quote = value[0] if value[0] in '"\'' else ''
  return f'{head}{quote}{MARK}{quote}'
