# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Packaging of t5wild: the only place for it.

Two folders of the checkout live under other names in the installed package:
`tasks/` is imported as `t5wild.tasks` (a bare `tasks` would clash with users'
own files), and `gin/` becomes the data folder `t5wild/gin_files` (it has no
`__init__.py`: with one it would shadow the gin library). Every bound below was
tested; docs/dependencies.md says how, and requirements/ pins exact versions.
"""

import pathlib
import re

import setuptools

_ROOT = pathlib.Path(__file__).resolve().parent


def _version() -> str:
  """The version in t5wild/__init__.py, read without importing it."""
  text = (_ROOT / 't5wild' / '__init__.py').read_text(encoding='utf-8')
  return re.search(r"^__version__ = '([^']+)'$", text, re.MULTILINE).group(1)


def _tasks_packages() -> list[str]:
  """`t5wild.tasks` and what lies below it, if anything does."""
  below = setuptools.find_packages(str(_ROOT / 'tasks'))
  return ['t5wild.tasks', *(f't5wild.tasks.{name}' for name in below)]


# What `t5wild quickstart` needs, and so what a plain install brings.
_CORE = [
    'absl-py>=2.1,<3',
    'array_record>=0.8.1,<0.9',
    'clu>=0.0.12,<0.1',
    'etils[epath]>=1.13,<2',
    'filelock>=3.16,<5',
    'flax>=0.12.6,<0.13',
    'gin-config>=0.5.0,<0.6',
    'jax>=0.10.2,<0.13',
    'jaxtyping>=0.3.2,<0.4',
    'matplotlib>=3.9,<4',
    'msgpack>=1.1,<2',
    'numpy>=2.1,<3',
    'optax>=0.2.6,<0.3',
    'orbax-checkpoint>=0.12.4,<0.13',
    'packaging>=24,<28',
    'plotly>=6,<8',
    'pyarrow>=18,<27',
    'rich>=13.7,<16',
    'sentencepiece>=0.2,<0.3',
    'seqio>=0.0.20,<0.1',
    'tensorboard>=2.20,<3',
    'tensorboardX>=2.6.2.2,<3',
    'tensorflow>=2.20,<2.22',
    'tensorstore>=0.1.84,<0.2',
]

# The compilers of GPUs that are not here: no driver and no GPU is needed.
_AOT_GPU = [
    'jax[cuda13-local]>=0.10.2,<0.13',  # the plugin of just this jax
    'nvidia-cuda-nvcc>=13,<14',
    'nvidia-cudnn-cu13>=9.10,<10',
    'nvidia-nvvm>=13,<14',
]

_S3 = ['s3fs>=2025.3']

_TEST = [
    *_S3,  # before moto: it says which botocore both may have
    'flask>=3,<4',
    'flask-cors>=5,<7',
    'hypothesis>=6.100,<7',
    'moto[s3]>=5.1,<6',
    'pytest>=8.3,<10',
    'pytest-xdist>=3.6,<4',
    'ruff>=0.15,<0.18',
]

setuptools.setup(
    name='t5wild',
    version=_version(),
    description='A T5X-style trainer for JAX, configured by gin.',
    long_description=(_ROOT / 'README.md').read_text(encoding='utf-8'),
    long_description_content_type='text/markdown',
    author='The t5wild Authors',
    license='Apache-2.0',
    license_files=['LICENSE', 'NOTICE'],
    python_requires='>=3.11,<3.14',
    packages=[
        *setuptools.find_packages(include=['t5wild', 't5wild.*']),
        *_tasks_packages(),
        't5wild.gin_files',
    ],
    package_dir={
        't5wild.tasks': 'tasks',
        't5wild.gin_files': 'gin',
    },
    package_data={
        't5wild.gin_files': ['**/*.gin'],
        't5wild.inspecting': ['page/*'],
        't5wild.reports': ['page/*'],
    },
    install_requires=_CORE,
    extras_require={
        'cuda12': ['jax[cuda12]>=0.10.2,<0.13'],
        'cuda13': ['jax[cuda13]>=0.10.2,<0.13'],
        'tpu': ['jax[tpu]>=0.10.2,<0.13'],
        'aot-gpu': _AOT_GPU,
        'aot-tpu': ['jax[tpu]>=0.10.2,<0.13'],
        'test': _TEST,
        'metrics': ['rouge-score>=0.1.2,<0.2', 'sacrebleu>=2.4,<3'],
        'docs': ['mkdocs-material>=9.6,<10', 'mkdocstrings[python]>=1,<2'],
        's3': _S3,
        # Newer sentencepieces need a newer protobuf than Beam takes.
        'beam': ['apache-beam>=2.74,<3', 'sentencepiece>=0.2,<0.2.3'],
        'mlflow': [
            'alembic>=1.14,<2', 'mlflow-skinny>=3.11,<4', 'sqlalchemy>=2,<3'
        ],
        'prometheus': ['prometheus-client>=0.21,<1'],
        'wandb': ['wandb>=0.26.1,<1'],
        'hf': ['safetensors>=0.4,<1', 'transformers>=4.50,<6'],
    },
    entry_points={'console_scripts': ['t5wild = t5wild.cli:main']},
    classifiers=[
        'Development Status :: 3 - Alpha',
        'Intended Audience :: Developers',
        'Intended Audience :: Science/Research',
        'Programming Language :: Python :: 3.11',
        'Programming Language :: Python :: 3.12',
        'Programming Language :: Python :: 3.13',
        'Topic :: Scientific/Engineering :: Artificial Intelligence',
    ],
)
