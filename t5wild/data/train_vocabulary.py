# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Trains a SentencePiece vocabulary on text files: `t5wild train-vocab`.

Ids 0, 1, 2 are padding, end of sequence and unknown, as T5 has them. The
sentinels are not in the model: a seqio vocabulary adds them (extra_ids).
"""

import argparse
from collections.abc import Iterator, Sequence
import os
import shutil
import sys
import tempfile

from t5wild import exit_codes
from t5wild.data import documents
from t5wild.data import text_files
from t5wild.data import vocabularies

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
  parser.add_argument(
      '--overwrite',
      action='store_true',
      help='replace a model that is there (models trained on it need the old)',
  )
  return parser


def main(argv: Sequence[str] | None = None) -> int:
  """Trains a vocabulary as the command line says.

  Args:
    argv: arguments without the program's name, None for the process's own.

  Returns:
    One of `exit_codes`: bad_config where text, size or output are of no use.
  """
  arguments = _parser().parse_args(argv)
  try:
    size = train_vocabulary(arguments)
  except (ValueError, OSError) as error:
    sys.stderr.write(f't5wild train-vocab: {error}\n')
    return exit_codes.BAD_CONFIG.code
  sys.stdout.write(
      f'{arguments.output}: {size} ids. In a recipe:\n'
      f"  local_text.text_task.vocabulary = '{arguments.output}'\n"
  )
  return exit_codes.DONE.code


def train_vocabulary(arguments: argparse.Namespace) -> int:
  """Trains and writes the model; one that is there stays whole until then.

  Args:
    arguments: those of the command line.

  Returns:
    Number of ids of the model.

  Raises:
    FileNotFoundError: for paths without text.
    ValueError: for text of too few different pieces for the size, corrupt
      text, or an output that is there or cannot be written.
  """
  import sentencepiece

  output = os.fspath(arguments.output)
  _check(output, arguments)
  pieces = documents.pieces_of(text_files.find_text_files(arguments.input))
  reader = documents.DocumentReader(
      text_field=arguments.text_field, on_corrupt=arguments.on_corrupt
  )
  # A list: what is raised while SentencePiece reads would lose its kind.
  lines = list(_lines(pieces, reader=reader, maximum=arguments.max_sentences))
  if not lines:
    raise ValueError(
        f'--input {" ".join(map(str, arguments.input))} holds no line with '
        'text: expected at least one. Give other files.'
    )
  try:
    _write(lines, output=output, arguments=arguments)
  except OSError as error:
    raise ValueError(
        f'--output {output} cannot be written ({error}): expected a folder '
        'that this user may write, with space left. Name another.'
    ) from None
  if reader.skipped.count:
    sys.stderr.write(f'{reader.skipped.count} corrupt lines were skipped.\n')
  return sentencepiece.SentencePieceProcessor(model_file=output).vocab_size()


def _check(output: str, arguments: argparse.Namespace) -> None:
  if not output.endswith('.model'):
    raise ValueError(
        f'--output is {output!r}: expected a name that ends in .model. Write '
        f'--output {output}.model'
    )
  if os.path.exists(output) and not arguments.overwrite:
    raise ValueError(
        f'--output {output} is there already: expected a new name, since '
        'models trained with a vocabulary need that very one. Name another, '
        'or pass --overwrite.'
    )
  if arguments.vocab_size <= vocabularies.NUM_SPECIAL_IDS:
    raise ValueError(
        f'--vocab_size is {arguments.vocab_size}: expected more than the '
        f'{vocabularies.NUM_SPECIAL_IDS} ids of padding, end and unknown. '
        'Try 32000.'
    )


def _write(
    lines: Sequence[str], *, output: str, arguments: argparse.Namespace
) -> None:
  """Trains beside the output, then moves the finished files there."""
  import sentencepiece

  folder = os.path.dirname(output) or '.'
  os.makedirs(folder, exist_ok=True)
  with tempfile.TemporaryDirectory(dir=folder, prefix='.train_vocab') as place:
    prefix = os.path.join(place, 'trained')
    try:
      sentencepiece.SentencePieceTrainer.train(
          sentence_iterator=iter(lines),
          model_prefix=prefix,
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
    except RuntimeError as error:
      # Before the bracket there is but a place in SentencePiece's own code.
      reason = str(error).rsplit('] ', 1)[-1].strip() or str(error).strip()
      raise ValueError(
          f'SentencePiece could not train {arguments.vocab_size} ids: '
          f'{reason.rstrip(".")}. Expected more than the text has characters '
          'and at most as many as it has pieces. Lower or raise --vocab_size, '
          'or give more text.'
      ) from None
    shutil.move(f'{prefix}.vocab', f'{output.removesuffix(".model")}.vocab')
    # Last, so that a model that is there is whole.
    shutil.move(f'{prefix}.model', output)


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
