# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Alerts come through once, and hold no secret."""

import http.server
import json
import logging
import threading

import pytest

from t5wild.vitals import alerts as alerts_lib


@pytest.fixture
def server():
  """A webhook that keeps what it is sent, and answers with `status`."""

  class Handler(http.server.BaseHTTPRequestHandler):
    status = 200
    got = []

    def do_POST(self):
      length = int(self.headers['Content-Length'])
      self.got.append(json.loads(self.rfile.read(length)))
      self.send_response(self.status)
      self.end_headers()

    def log_message(self, *args):
      del args

  with http.server.HTTPServer(('127.0.0.1', 0), Handler) as found:
    thread = threading.Thread(target=found.serve_forever)
    thread.start()
    Handler.address = f'http://127.0.0.1:{found.server_port}/T00/hook_7731'
    yield Handler
    found.shutdown()
    thread.join()


def test_a_webhook_gets_slacks_json(server):
  alerts = alerts_lib.Alerts(
      alerts_lib.Targets(webhook=server.address), run='/runs/a'
  )
  alerts.send('stopped', 'CRASH LOOP')
  alerts.close()
  (got,) = server.got
  assert list(got) == ['text']
  assert 'stopped' in got['text'] and '/runs/a' in got['text']
  assert 'CRASH LOOP' in got['text']


def test_the_same_alert_is_sent_once_and_then_says_how_often(tmp_path):
  now = [0.0]
  path = tmp_path / 'alerts'
  alerts = alerts_lib.Alerts(
      alerts_lib.Targets(file=str(path)), run='r', repeat_seconds=100,
      clock=lambda: now[0],
  )  # fmt: skip
  sent = [alerts.send('restart', f'killed, pid {pid}') for pid in range(4)]
  assert sent == [True, False, False, False]
  assert alerts.send('restart', 'something else')
  now[0] = 101
  assert alerts.send('restart', 'killed, pid 9')
  alerts.close()
  texts = [json.loads(line)['text'] for line in path.open()]
  assert len(texts) == 3
  assert '(3 more like this' in texts[-1]


def test_still_training_is_never_held_back(tmp_path):
  path = tmp_path / 'alerts'
  alerts = alerts_lib.Alerts(alerts_lib.Targets(file=str(path)), run='r')
  assert alerts.send(alerts_lib.ALIVE, 'step 1')
  assert alerts.send(alerts_lib.ALIVE, 'step 2')
  alerts.close()


def test_mail_goes_to_the_commands_standard_input(tmp_path):
  alerts = alerts_lib.Alerts(
      alerts_lib.Targets(mail_command=f'tee {tmp_path}/mail'), run='r'
  )
  alerts.send('stopped', 'a verdict')
  alerts.close()
  assert 'a verdict' in (tmp_path / 'mail').read_text()


def test_a_failing_webhook_is_told_once_without_its_address(server, caplog):
  server.status = 500
  alerts = alerts_lib.Alerts(
      alerts_lib.Targets(webhook=server.address), run='r'
  )
  with caplog.at_level(logging.WARNING):
    alerts.send('restart', 'one')
    alerts.send('restart', 'two')
    alerts.close()
  assert caplog.text.count('did not get through') == 1
  assert 'HTTP status 500' in caplog.text
  assert 'hook_7731' not in caplog.text


def test_no_error_or_repr_shows_the_webhook(tmp_path):
  with pytest.raises(ValueError, match='expected https') as caught:
    alerts_lib.Targets(webhook='hook_7731')
  assert 'hook_7731' not in str(caught.value)
  assert 'hook_7731' not in repr(
      alerts_lib.Targets(webhook='https://hook_7731')
  )


def test_the_address_comes_from_a_variable_or_a_file(tmp_path):
  path = tmp_path / 'hook'
  path.write_text('https://from.file\n')
  found = alerts_lib.webhook_from
  assert found({'T5WILD_WEBHOOK': 'https://a'}) == 'https://a'
  assert found({'T5WILD_WEBHOOK_FILE': str(path)}) == 'https://from.file'
  assert found({}) is None
  with pytest.raises(ValueError, match='cannot be read.*expected'):
    found({'T5WILD_WEBHOOK_FILE': str(tmp_path / 'no')})
  path.write_text('')
  with pytest.raises(ValueError, match='is empty: expected'):
    found({'T5WILD_WEBHOOK_FILE': str(path)})


def test_who_sends_no_alerts_is_given_no_address():
  left = alerts_lib.without_secrets({'T5WILD_WEBHOOK': 'x', 'A': 'b'})
  assert left == {'A': 'b'}
