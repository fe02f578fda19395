# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""All that is shown of a subject, made once for every surface."""

from collections.abc import Sequence
import dataclasses

from t5wild.inspecting import drawn_rows
from t5wild.inspecting import sheets as sheets_lib
from t5wild.inspecting import statistics as statistics_lib
from t5wild.inspecting import subject as subject_lib


@dataclasses.dataclass(frozen=True, kw_only=True)
class Inspection:
  """A subject with its numbers and its first rows.

  Attributes:
    subject: what is looked at.
    statistics: its numbers.
    findings: what stands out.
    sheets: the numbers as tables.
    top_tokens: the most frequent tokens, as tables.
    rows: the sides of the first rows.
    masks: who sees whom in the first row.
  """

  subject: subject_lib.Subject
  statistics: statistics_lib.Statistics
  findings: Sequence[sheets_lib.Finding]
  sheets: Sequence[sheets_lib.Sheet]
  top_tokens: Sequence[sheets_lib.Sheet]
  rows: Sequence[Sequence[drawn_rows.Side]]
  masks: Sequence[drawn_rows.Mask]


def inspect(subject: subject_lib.Subject, *, num_rows: int) -> Inspection:
  """Measures and draws a subject."""
  if not subject.num_examples:
    raise ValueError(
        f'{subject.title} gives no example: expected one at least. Its '
        f'{len(subject.documents)} documents may be too short for the '
        'objective; choose another --objective, or look at the source.'
    )
  statistics = statistics_lib.measure(subject)
  batch = subject.batch(num_rows)
  return Inspection(
      subject=subject,
      statistics=statistics,
      findings=sheets_lib.findings(subject, statistics),
      sheets=sheets_lib.make(subject, statistics),
      top_tokens=sheets_lib.top_tokens(statistics),
      rows=drawn_rows.draw(subject, batch),
      masks=drawn_rows.masks(batch, row=0),
  )
