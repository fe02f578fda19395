# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs `t5wild infer` and `t5wild eval` in this process: no start to wait for.

What a process keeps (flags, gin's configuration) is put back before each.
"""

from absl import flags
import gin

from t5wild import eval as eval_module
from t5wild import infer as infer_module

_BINARIES = {'infer': infer_module, 'eval': eval_module}


def run(binary: str, *arguments) -> int:
  """Runs a binary with flags; returns its exit code."""
  module = _BINARIES[binary]
  module.define_flags()
  for name in flags.FLAGS:
    flags.FLAGS[name].unparse()
  gin.clear_config()
  try:
    return module.run([binary, '--verbosity=-1', *map(str, arguments)])
  finally:
    gin.clear_config()
