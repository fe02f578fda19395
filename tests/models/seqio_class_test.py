# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A model's feature converter is seqio's, imported when it is used."""

import subprocess
import sys
import textwrap
import types

import pytest

from t5wild.models import encoder_decoder
from t5wild.models import seqio_class


class _Converter:
  """Stands for a feature converter."""

  MODEL_FEATURES = ('targets',)


def test_converter_of_a_model_is_that_of_seqio(monkeypatch):
  fake = types.SimpleNamespace(EncDecFeatureConverter=_Converter)
  monkeypatch.setitem(sys.modules, 'seqio', fake)
  model = encoder_decoder.EncoderDecoderModel(None, None, None, None)
  assert model.FEATURE_CONVERTER_CLS is _Converter


def test_converter_of_a_model_class_acts_as_that_of_seqio(monkeypatch):
  fake = types.SimpleNamespace(EncDecFeatureConverter=_Converter)
  monkeypatch.setitem(sys.modules, 'seqio', fake)
  stand_in = encoder_decoder.EncoderDecoderModel.FEATURE_CONVERTER_CLS
  assert isinstance(stand_in(), _Converter)
  assert stand_in.MODEL_FEATURES == ('targets',)

  class Converter(stand_in):
    pass

  assert issubclass(Converter, _Converter)


def test_converter_of_a_subclass_or_an_argument_wins(monkeypatch):
  monkeypatch.setitem(sys.modules, 'seqio', None)

  class Model(encoder_decoder.EncoderDecoderModel):
    FEATURE_CONVERTER_CLS = _Converter

  assert Model(None, None, None, None).FEATURE_CONVERTER_CLS is _Converter
  given = encoder_decoder.EncoderDecoderModel(
      None, None, None, None, feature_converter_cls=_Converter
  )
  assert given.FEATURE_CONVERTER_CLS is _Converter


def test_converter_for_data_without_conversion_needs_no_seqio(monkeypatch):
  monkeypatch.setitem(sys.modules, 'seqio', None)
  plain = encoder_decoder.EncoderDecoderModel(None, None, None, None)
  found = seqio_class.converter_class_of(plain)
  with pytest.raises(ImportError, match='pip install seqio'):
    found(pack=True)
  given = encoder_decoder.EncoderDecoderModel(
      None, None, None, None, feature_converter_cls=_Converter
  )
  assert seqio_class.converter_class_of(given) is _Converter


def test_converter_without_seqio_is_an_error_that_names_the_mend(monkeypatch):
  monkeypatch.setitem(sys.modules, 'seqio', None)
  with pytest.raises(ImportError, match='pip install seqio'):
    encoder_decoder.EncoderDecoderModel.FEATURE_CONVERTER_CLS(pack=True)


def test_models_import_and_configure_without_seqio_and_tensorflow():
  code = textwrap.dedent("""
      import sys
      for name in ('seqio', 'tensorflow', 'tensorflow_datasets'):
        sys.modules[name] = None
      import gin
      from t5wild import models, losses, metrics, decoding
      cls = gin.external_configurable(models.EncoderDecoderModel, 'Model')
      gin.parse_config('Model.z_loss = 1e-4')
      model = cls(None, None, None, None)
      assert model._z_loss == 1e-4
  """)
  subprocess.run([sys.executable, '-c', code], check=True, timeout=120)


def test_the_stand_in_tells_its_name_without_importing_seqio():
  assert seqio_class.LazySeqioClass('NoSuchClass').class_name == 'NoSuchClass'
