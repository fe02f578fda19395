# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Secrets go, and nothing else does."""

import pytest

from t5wild.vitals import redaction

# Made up, in the shape of real ones; put together so that no scanner of
# repositories takes them for such.
_KEY = 'a1B2c3D4e5' * 4


@pytest.mark.parametrize(
    'text',
    [
        'hf' + '_' + _KEY,
        'sk' + '-' + _KEY,
        'ghp' + '_' + _KEY,
        'AKIA' + 'ABCDEFGHIJKLMNOP',
        'xoxb' + '-' + _KEY,
        f'https://hooks.slack.com/services/T0/B0/{_KEY}',
        f'https://user:{_KEY}@example.org/x',
        f'https://example.org/x?token={_KEY}&y=1',
        f"wandb.api_key = '{_KEY}'",
        f'"password": "{_KEY}"',
        f'WANDB_API_KEY={_KEY}',
        f'alerts.Webhook.webhook_url = "https://example.org/{_KEY}"',
        f'Authorization: {_KEY}',
        f'AWS_SECRET_ACCESS_KEY={_KEY}',
        f'hf_token: {_KEY}',
        '-----BEGIN PRIVATE KEY-----\n' + _KEY + '\n-----END PRIVATE KEY-----',
        'eyJhbGciOiJI.' + 'eyJzdWIiOiIx.' + 'c2lnbmF0dXJl',
    ],
)
def test_a_secret_is_hidden(text):
  redacted = redaction.redacted(f'before {text} after')
  assert redaction.MARK in redacted
  assert redacted.startswith('before ') and redacted.endswith(' after')
  for part in (_KEY, 'ABCDEFGHIJKLMNOP', 'c2lnbmF0dXJl'):
    assert part not in redacted


@pytest.mark.parametrize(
    'text',
    [
        "network.T5Config.token_embedder = 'x'",
        'decoding.max_tokens = 512',
        'tokens: 100',
        'effective_tokens_per_second = 1.5',
        "TASK_FEATURE_LENGTHS = {'inputs': 512, 'targets': 114}",
        'tracker.Client.api_key = None',
        'tracker.Client.api_key = %KEY',
        'seqio.Vocabulary.eos_token = 1',
        'https://example.org/a?b=c',
        "path = 'gs://bucket/data'",
        'The key to this is a secret of the trade.',
    ],
)
def test_what_is_no_secret_stays(text):
  assert redaction.redacted(text) == text
