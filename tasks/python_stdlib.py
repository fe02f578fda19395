# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Registers ul2_python_stdlib, span_corruption_python_stdlib and so on.

Tasks over the Python standard library's sources in bytes, a text that every
machine has: one task for each objective, and function_name_python_stdlib, which
has metrics; so that a recipe can be tried with a name alone
(MIXTURE_OR_TASK_MODULE = 't5wild.tasks.python_stdlib').
"""

from t5wild.tasks import function_names
from t5wild.tasks import local_text

TASKS = [
    *local_text.add_local_text_tasks('python_stdlib'),
    function_names.add_function_name_task('python_stdlib'),
]
