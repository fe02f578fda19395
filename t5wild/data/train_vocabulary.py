# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Trains a SentencePiece vocabulary on text files: `t5wild train-vocab`.

Ids 0, 1, 2 are padding, end of sequence and unknown, as T5 has them. The
sentinels are not in the model: a seqio vocabulary adds them (extra_ids).
"""

import argparse
from collections.abc import Iterator, Sequence
import os
import sys

from t5wild.data import documents
from t5wild.data import text_files

_MODEL_TYPES = ('unigram', 'bpe', 'char', 'word')


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(
      prog='t5wild train-vocab',
      description=__doc__.split('\n\n', maxsplit=1)[0],
  )
  parser.add_argument(
      '--input',
      nargs='+',
      required=True,
      metavar='PATH',
      help='files, folders or globs: .txt, .py, .jsonl, .gz, .parquet, ...',
  )
  parser.add_argument(
      '--output',
      required=True,
      metavar='NAME.model',
      help='the model to write',
  )
  parser.add_argument('--vocab_size', type=int, default=32000)
  parser.add_argument('--model_type', choices=_MODEL_TYPES, default='unigram')
  parser.add_argument(
      '--text_field', default='text', help='JSON field or Parquet column'
  )
  parser.add_argument(
      '--on_corrupt',
      choices=documents.POLICIES,
      default='fail',
      help='what to do with a line that is no text',
  )
  parser.add_argument(
      '--max_sentences',
      type=int,
      default=1_000_000,
      help='lines to train on, taken evenly over the text',
  )
  parser.add_argument(
      '--byte_fallback',
      action='store_true',
      help='spell unknown characters as bytes',
  )
  parser.add_argument('--num_threads', type=int, default=os.cpu_count())
  return parser


def main(argv: Sequence[str] | None = None) -> int:
  """Trains a vocabulary as the command line says.

  Args:
    argv: arguments without the program's name, None for the process's own.

  Returns:
    0, or 1 where the text or the size is of no use.
  """
  arguments = _parser().parse_args(argv)
  try:
    size = train_vocabulary(arguments)
  except (ValueError, OSError, RuntimeError) as error:
    sys.stderr.write(f't5wild train-vocab: {error}\n')
    return 1
  sys.stdout.write(
      f'{arguments.output}: {size} ids. In a recipe:\n'
      f"  local_text.text_task.vocabulary = '{arguments.output}'\n"
  )
  return 0


def train_vocabulary(arguments: argparse.Namespace) -> int:
  """Trains and writes the model.

  Args:
    arguments: those of the command line.

  Returns:
    Number of ids of the model.

  Raises:
    FileNotFoundError: for paths without text.
    ValueError: for text of too few different pieces for the size.
  """
  import sentencepiece

  output = os.fspath(arguments.output)
  if not output.endswith('.model'):
    raise ValueError(
        f'--output is {output!r}: expected a name that ends in .model. Write '
        f'--output {output}.model'
    )
  pieces = documents.pieces_of(text_files.find_text_files(arguments.input))
  reader = documents.DocumentReader(
      text_field=arguments.text_field, on_corrupt=arguments.on_corrupt
  )
  os.makedirs(os.path.dirname(output) or '.', exist_ok=True)
  try:
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=_lines(
            pieces, reader=reader, maximum=arguments.max_sentences
        ),
        model_prefix=output.removesuffix('.model'),
        vocab_size=arguments.vocab_size,
        model_type=arguments.model_type,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        byte_fallback=arguments.byte_fallback,
        num_threads=arguments.num_threads,
        minloglevel=1,
    )
  except (RuntimeError, OSError) as error:
    raise ValueError(
        f'SentencePiece could not train {arguments.vocab_size} ids: {error} '
        'Expected text with enough different pieces. Lower --vocab_size, or '
        'give more text.'
    ) from error
  if reader.skipped.count:
    sys.stderr.write(f'{reader.skipped.count} corrupt lines were skipped.\n')
  return sentencepiece.SentencePieceProcessor(model_file=output).vocab_size()


def _lines(
    pieces: Sequence[documents.Piece],
    *,
    reader: documents.DocumentReader,
    maximum: int,
) -> Iterator[str]:
  """Yields non-empty lines, an equal share of `maximum` from each piece."""
  taken = 0
  for index, piece in enumerate(pieces):
    share = (maximum - taken) // (len(pieces) - index)
    lines = [
        line
        for document in reader.read(piece)
        for line in document.decode('utf-8').splitlines()
        if line.strip()
    ]
    step = max(-(-len(lines) // share), 1) if share else 0
    for line in lines[::step] if step else []:
      taken += 1
      yield line


if __name__ == '__main__':
  sys.exit(main())
