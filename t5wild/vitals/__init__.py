# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What watches a run: records, the time ledger; imports with JAX absent."""

from t5wild.vitals.goodput import Ledger
from t5wild.vitals.records import read_records
from t5wild.vitals.records import Record
from t5wild.vitals.records import RecordWriter

__all__ = ['Ledger', 'Record', 'RecordWriter', 'read_records']
