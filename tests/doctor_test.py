# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What the doctor says of machines that are well and of others."""

import resource
import sys

import pytest

from t5wild import devices_seen
from t5wild import doctor
from t5wild import exit_codes

_CPU = doctor.Probe(answer={'backend': 'cpu', 'devices': ['cpu']})


@pytest.mark.parametrize(
    ('version', 'level'),
    [((3, 10), 'problem'), ((3, 11), 'ok'), ((3, 13), 'ok'),
     ((3, 14), 'problem')],
)  # fmt: skip
def test_python_is_held_against_what_was_tested(version, level):
  assert doctor.check_python(version, executable='python').level == level


@pytest.mark.parametrize(
    ('installed', 'level'),
    [('1.5', 'ok'), ('0.9', 'note'), ('2.0', 'note'), (None, 'problem')],
)
def test_a_package_is_held_against_its_bounds(installed, level):
  finding = doctor.check_package(
      'thing>=1,<2', version_of=lambda _: installed
  )
  assert finding.level == level
  if installed is not None:
    assert installed in finding.what
  assert 'tested: <2,>=1' in finding.what
  if level != 'ok':
    assert 'pip install' in finding.mend


def test_a_package_of_an_extra_is_not_missed():
  assert doctor.check_package(
      'thing>=1; extra == "tpu"', version_of=lambda _: None
  ) is None


def test_a_cpu_is_well_where_there_is_nothing_else():
  finding = doctor.check_devices(_CPU, environment={}, hardware=None)
  assert finding.level == 'ok'
  assert '1 x cpu' in finding.what


@pytest.mark.parametrize(
    ('hardware', 'environment', 'mend'),
    [
        ('gpu', {}, 't5wild[cuda12]'),
        ('tpu', {}, 't5wild[tpu]'),
        ('gpu', {'JAX_PLATFORMS': 'cpu'}, 'unset it'),
    ],
)
def test_a_cpu_on_a_machine_with_more_is_a_problem_with_its_mend(
    hardware, environment, mend
):
  finding = doctor.check_devices(
      _CPU, environment=environment, hardware=hardware
  )
  assert finding.level == 'problem'
  assert hardware.upper() in finding.what
  assert mend in finding.mend


def test_a_gpu_that_jax_sees_is_well():
  probe = doctor.Probe(answer={'backend': 'gpu', 'devices': ['H100', 'H100']})
  finding = doctor.check_devices(probe, environment={}, hardware='gpu')
  assert finding.level == 'ok'
  assert '2 x H100' in finding.what


def test_a_jax_that_does_not_start_is_a_problem_that_says_why():
  finding = doctor.check_devices(
      doctor.Probe(answer=None, error='no backend'), environment={},
      hardware=None,
  )
  assert finding.level == 'problem'
  assert 'no backend' in finding.what
  assert finding.mend


@pytest.mark.parametrize(
    ('probe', 'level'),
    [
        (doctor.Probe(answer={'gpus': []}), 'ok'),
        (doctor.Probe(answer={'gpus': ['GPU:0']}), 'note'),
        (doctor.Probe(answer=None, error='no module'), 'note'),
    ],
)
def test_tensorflow_is_well_when_it_sees_no_gpu(probe, level):
  assert doctor.check_tensorflow(probe).level == level


@pytest.mark.parametrize(
    ('kind', 'free', 'writable', 'level'),
    [
        ('ext4', 10**12, True, 'ok'),
        ('nfs4', 10**12, True, 'note'),
        ('ext4', 10**6, True, 'note'),
        ('ext4', 10**12, False, 'problem'),
    ],
)
def test_a_file_system_must_be_writable_and_have_room(
    kind, free, writable, level
):
  finding = doctor.check_file_system(
      '/runs', kind=kind, free_bytes=free, is_writable=writable
  )
  assert finding.level == level
  assert kind in finding.what


@pytest.mark.parametrize(
    ('path', 'kind'),
    [('/a/b/c', 'nfs'), ('/a/bc', 'ext4'), ('/x y/z', 'tmpfs')],
)
def test_the_file_system_of_a_path_is_that_of_the_longest_mount(path, kind):
  mounts = (
      '/dev/vda / ext4 rw 0 0\nserver:/b /a/b nfs rw 0 0\n'
      'tmp /x\\040y tmpfs rw 0 0\n'
  )
  assert doctor.file_system_kind(path, mounts=mounts) == kind


@pytest.mark.parametrize(
    ('soft', 'hard', 'level', 'mend'),
    [
        (65536, 65536, 'ok', ''),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, 'ok', ''),
        (1024, 65536, 'note', 'ulimit -n 65536'),
        (256, 512, 'note', 'limits.conf'),
    ],
)
def test_few_open_files_are_noted_with_the_mend(soft, hard, level, mend):
  finding = doctor.check_open_files(soft, hard)
  assert finding.level == level
  assert mend in finding.mend


def test_a_probe_that_hangs_or_breaks_gives_the_reason():
  hung = doctor.ask('import time; time.sleep(60)', seconds=0.2)
  assert hung.answer is None
  assert 'no answer within 0.2 s' in hung.error
  broken = doctor.ask('raise RuntimeError("no driver")')
  assert broken.answer is None
  assert 'no driver' in broken.error
  assert doctor.ask('print("{}")').answer == {}


def test_the_report_has_every_section_and_tells_by_its_exit_code(
    monkeypatch, capsys, tmp_path
):
  answers = {
      doctor._JAX_PROBE: _CPU,
      doctor._TENSORFLOW_PROBE: doctor.Probe(answer={'gpus': []}),
  }
  monkeypatch.setattr(doctor, 'ask', answers.get)
  monkeypatch.setattr(devices_seen, 'accelerator', lambda: None)
  monkeypatch.setattr(
      doctor, '_package_findings',
      lambda: iter([doctor.Finding(level='ok', what='jax 1')]),
  )
  assert doctor.main(['--model_dir', str(tmp_path)]) == exit_codes.DONE.code
  report = capsys.readouterr().out
  for word in ('Packages', 'Devices', 'Limits', 'jax 1', 'All is well'):
    assert word in report
  monkeypatch.setattr(devices_seen, 'accelerator', lambda: 'gpu')
  assert doctor.main(['--model_dir', str(tmp_path)]) == exit_codes.FAILED.code
  assert 'Some problems to mend' in capsys.readouterr().out


def test_the_doctor_does_not_import_jax():
  probe = doctor.ask(
      'import sys, json; import t5wild.doctor;'
      'print(json.dumps({"jax": "jax" in sys.modules}))'
  )
  assert probe.answer == {'jax': False}, (probe.error, sys.executable)
@pytest.mark.parametrize(
    ('given_to', 'hardware', 'levels'),
    [
        ('never', None, [doctor.NOTE]),
        ('madvise', None, [doctor.OK]),
        ('never', 'gpu', []),
        (None, None, []),
    ],
)
def test_a_cpu_without_huge_pages_is_noted(given_to, hardware, levels):
  found = doctor.check_huge_pages(given_to, hardware=hardware)
  assert [finding.level for finding in found] == levels


