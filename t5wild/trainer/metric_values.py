# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""From fetched metrics to numbers with names and units."""

from collections.abc import Mapping, Sequence
import contextlib

from clu import metrics as clu_metrics
from clu import values as clu_values
import jax
import numpy as np

MetricsMap = Mapping[str, clu_metrics.Metric]

_UNITS = (  # first suffix that fits
    ('tokens_per_second', 'tokens/second'),
    ('tokens_per_second_per_core', 'tokens/second'),
    ('seqs_per_second', 'sequences/second'),
    ('seqs_per_second_per_core', 'sequences/second'),
    ('examples_per_second', 'examples/second'),
    ('steps_per_second', 'steps/second'),
    ('flops_per_second', 'FLOP/second'),
    ('target_token', 'nats/token'),
    ('target_tokens', 'nats/token'),
    ('seconds', 'seconds'),
    ('bytes', 'bytes'),
    ('loss', 'nats'),
)


def merge_on_host(
    metrics: MetricsMap | Sequence[MetricsMap],
) -> dict[str, clu_metrics.Metric]:
  """Fetches metrics and merges those of several steps into one mapping."""
  host = jax.device_get(metrics)
  if isinstance(host, Mapping):
    return dict(host)
  merged: dict[str, clu_metrics.Metric] = {}
  for one in host:
    for name, metric in one.items():
      merged[name] = merged[name].merge(metric) if name in merged else metric
  return merged


def compute_values(
    metrics: MetricsMap, *, duration_seconds: float, num_steps: int
) -> dict[str, float]:
  """Values of fetched metrics that are numbers; see `finish`."""
  return numbers(
      finish(metrics, duration_seconds=duration_seconds, num_steps=num_steps)
  )


def finish(
    metrics: MetricsMap, *, duration_seconds: float, num_steps: int
) -> dict[str, clu_values.Value]:
  """Values of fetched metrics, given what only the host knows.

  Args:
    metrics: on the host.
    duration_seconds: handed to metrics of time (`replace_duration`).
    num_steps: handed to metrics of steps (`replace_steps`).
  """
  values = {}
  with _on_cpu():
    for name, metric in metrics.items():
      finished = metric
      if hasattr(finished, 'replace_duration'):
        finished = finished.replace_duration(duration_seconds)
      if hasattr(finished, 'replace_steps'):
        finished = finished.replace_steps(num_steps)
      names = getattr(finished, 'names', ())
      if names:
        numbers_ = np.asarray(finished.compute())
        values.update(
            (f'{name}/{one}', clu_values.Scalar(number))
            for one, number in zip(names, numbers_, strict=True)
        )
      else:
        values[name] = finished.compute_value()
  return values


def numbers(values: Mapping[str, clu_values.Value]) -> dict[str, float]:
  """The numbers among values, those of an array each under its own name."""
  found = {}
  for name, value in values.items():
    if not isinstance(value, clu_values.Scalar | clu_values.Summary):
      continue  # a text, an image, ...
    array = np.asarray(value.value)
    if array.size == 1:
      found[name] = float(array.reshape(()))
    else:
      found.update(_flattened(name, array))
  return found


def texts(values: Mapping[str, clu_values.Value]) -> dict[str, str]:
  """The texts among values."""
  return {
      name: str(value.value)
      for name, value in values.items()
      if isinstance(value, clu_values.Text)
  }


def rates(metrics: MetricsMap, *, duration_seconds: float) -> dict[str, float]:
  """Rates that count no padding, from the counts inside T5X's metrics."""
  if duration_seconds <= 0:
    return {}
  counts = {
      'timing/nonpadding_target_tokens_per_second': _field(
          metrics, 'loss_per_nonpadding_target_token', 'count'
      ),
      'timing/nonpadding_tokens_per_second': _field(
          metrics, 'non_padding_fraction/overall', 'total'
      ),
      'timing/examples_per_second': _num_examples(metrics),
  }
  return {
      name: float(np.sum(count)) / duration_seconds
      for name, count in counts.items()
      if count is not None
  }


def memory_bytes() -> dict[str, float]:
  """Memory of the fullest local device, and the peak of this process."""
  stats = [device.memory_stats() for device in jax.local_devices()]
  stats = [one for one in stats if one]
  values = {}
  for ours, theirs in (
      ('memory/device_in_use_bytes', 'bytes_in_use'),
      ('memory/device_peak_bytes', 'peak_bytes_in_use'),
  ):
    seen = [one[theirs] for one in stats if theirs in one]
    if seen:
      values[ours] = float(max(seen))
  peak = _host_peak_bytes()
  if peak is not None:
    values['memory/host_peak_bytes'] = peak
  return values


def unit_of(name: str) -> str:
  """Unit of a metric by the end of its name; empty for ratios and counts."""
  for suffix, unit in _UNITS:
    if name.endswith(suffix):
      return unit
  return ''


def _num_examples(metrics: MetricsMap):
  """Examples in the interval: of packed batches, the examples inside rows."""
  packed = [
      metric.total
      for name, metric in metrics.items()
      if name.startswith('effective_batch_size/')
  ]
  if packed:
    return max(float(np.sum(total)) for total in packed)
  return _field(metrics, 'timing/seqs', 'total')


def _field(metrics: MetricsMap, name: str, field: str):
  return getattr(metrics[name], field, None) if name in metrics else None


def _flattened(name: str, value: np.ndarray) -> dict[str, float]:
  flat = value.reshape(-1)
  return {f'{name}/{index}': float(one) for index, one in enumerate(flat)}


def _on_cpu():
  """Keeps the few operations of `compute` out of the accelerator's queue."""
  try:
    return jax.default_device(jax.local_devices(backend='cpu')[0])
  except RuntimeError:
    return contextlib.nullcontext()


def _host_peak_bytes() -> float | None:
  try:
    import resource  # absent on Windows
  except ImportError:
    return None
  return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * 1024
