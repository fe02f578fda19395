# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Hosts that fail again and again are named."""

import socket

from t5wild.launch import failures
from t5wild.launch import node_ledger
from t5wild.vitals import records


def _failure(kind, line=''):
  return failures.Failure(kind=kind, code=1, line=line)


def test_two_device_failures_propose_to_leave_the_host_and_the_device_out(
    tmp_path, monkeypatch
):
  monkeypatch.setattr(node_ledger, 'device_serial', lambda line: 'S123')
  path = str(tmp_path / 'new' / 'ledger.jsonl')
  ledger = node_ledger.NodeLedger(path)
  host = socket.gethostname()
  for number in (1, 2):
    assert ledger.add(_failure(failures.DEVICE, 'Xid 79'), run='/r') == ''
    names = {p.name for p in node_ledger.proposals(records.read_records(path))}
    expected = set() if number == 1 else {host, f'{host} device S123'}
    assert names == expected


def test_a_users_mistake_is_not_the_hosts(tmp_path):
  path = tmp_path / 'ledger.jsonl'
  ledger = node_ledger.NodeLedger(str(path))
  for kind in (failures.USER_ERROR, failures.LOST_PEER, failures.NON_FINITE):
    ledger.add(_failure(kind), run='/r')
  assert not path.exists()


def test_a_pci_address_is_looked_up_in_the_table_of_gpus():
  table = (
      '00000000:3B:00.0, 1323422, GPU-aaa\n00000000:86:00.0, [N/A], GPU-bbb\n'
  )
  assert node_ledger.serial_in(table, '0000:3b:00') == '1323422'
  assert node_ledger.serial_in(table, '0000:86:00') == 'GPU-bbb'
  assert node_ledger.serial_in(table, '0000:af:00') == '0000:af:00'


def test_a_ledger_that_cannot_be_written_is_told_and_no_more(tmp_path):
  (tmp_path / 'file').write_text('')
  ledger = node_ledger.NodeLedger(str(tmp_path / 'file' / 'ledger.jsonl'))
  told = ledger.add(_failure(failures.HANG), run='/r')
  assert 'cannot be written' in told


def test_the_command_shows_failures_and_proposals(tmp_path, capsys):
  path = str(tmp_path / 'ledger.jsonl')
  assert node_ledger.main(['--node_ledger', path]) == 0
  assert 'nothing has failed' in capsys.readouterr().out
  ledger = node_ledger.NodeLedger(path)
  for _ in range(3):
    ledger.add(_failure(failures.HANG, 'no sign of life'), run='/r')
  assert node_ledger.main(['--node_ledger', path]) == 0
  shown = capsys.readouterr().out
  assert 'no sign of life' in shown and '3 times hang' in shown
