# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Models: what joins a network, vocabularies, a loss and a decoding."""

from t5wild.decoding.state import DecodeFnCallable
from t5wild.models.base import BaseModel
from t5wild.models.base import BaseTransformerModel
from t5wild.models.base import get_input_vocabulary
from t5wild.models.base import get_output_vocabulary
from t5wild.models.base_metrics import compute_base_metrics
from t5wild.models.encoder_decoder import DecoderParams
from t5wild.models.encoder_decoder import EncoderDecoderModel

__all__ = [
    'BaseModel', 'BaseTransformerModel', 'DecodeFnCallable', 'DecoderParams',
    'EncoderDecoderModel', 'compute_base_metrics', 'get_input_vocabulary',
    'get_output_vocabulary',
]
