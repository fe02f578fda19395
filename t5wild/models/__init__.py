# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Models: what joins a network, vocabularies, a loss and a decoding."""

from t5wild.decoding.state import DecodeFnCallable as DecodeFnCallable
from t5wild.models.base import BaseModel as BaseModel
from t5wild.models.base import BaseTransformerModel as BaseTransformerModel
from t5wild.models.base import get_input_vocabulary as get_input_vocabulary
from t5wild.models.base import get_output_vocabulary as get_output_vocabulary
from t5wild.models.base_metrics import (
    compute_base_metrics as compute_base_metrics,
)
from t5wild.models.decoder_only import DecoderOnlyModel as DecoderOnlyModel
from t5wild.models.decodes import remove_prefix as remove_prefix
from t5wild.models.encoder_decoder import DecoderParams as DecoderParams
from t5wild.models.encoder_decoder import (
    EncoderDecoderModel as EncoderDecoderModel,
)
from t5wild.models.prefix_lm import PrefixLanguageModel as PrefixLanguageModel
