# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The caching of one split of one task: begun, shard by shard, finished.

Any process that plans the same job may write any of its shards, at any time,
and any number of times: the bytes are the same.
"""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import json
from typing import Any

import numpy as np

from t5wild.data import fingerprints
from t5wild.data import pipelines
from t5wild.data import places
from t5wild.data import record_cache
from t5wild.data import shard_writer
from t5wild.data import source_files

SOURCE = 'source.json'
_DESCRIPTION = 'task_description'  # in a plan
_CODE = 'code'  # likewise


@dataclasses.dataclass(frozen=True, kw_only=True)
class SplitJob:
  """What is to be written, and how.

  Attributes:
    task: a seqio task.
    split: of it.
    pipeline: the task that gives what is written.
    task_feature_lengths: for examples whose task cuts by them.
    seed: of what is random in the task.
    use_cached: read the task's cache of seqio, not its source.
    manifest: as it will be, without its shards.
    plan: how shards are laid out.
    source_state: of the source's files, when the job was planned.
  """

  task: Any
  split: str
  pipeline: Any
  task_feature_lengths: Mapping[str, int] | None
  seed: int
  manifest: record_cache.Manifest
  plan: shard_writer.ShardPlan
  source_state: source_files.State
  use_cached: bool = False

  @property
  def _plan_file(self) -> str:
    return places.join(self.plan.folder, record_cache.PLAN)

  @property
  def _source_file(self) -> str:
    return places.join(self.plan.folder, SOURCE)

  def start(self) -> None:
    """Makes the folder, and writes down what will be in it.

    Raises:
      ValueError: the folder holds another cache, or one of the source or the
        code as it was before a change.
    """
    places.make_folder(self.plan.folder)
    # The source first: a plan without it would be one of any source.
    if not places.exists(self._plan_file):
      shard_writer.write_text(
          self._source_file, json.dumps(dict(self.source_state), indent=0)
      )
      # What the fingerprint is of, too, to tell what another one differs in.
      words = {
          _DESCRIPTION: list(self.manifest.task_description),
          _CODE: self._code(),
      }
      shard_writer.write_text(
          self._plan_file, json.dumps({**self._description(), **words})
      )
    self.check_started()

  def check_started(self) -> None:
    """Refuses to write what does not go with what is there.

    Raises:
      ValueError: see `start`.
    """
    wanted = json.loads(json.dumps(self._description()))
    found = record_cache.read_json(
        self._plan_file,
        wanted='the plan of `t5wild cache`',
        mend='Delete that folder and run the command again.',
    )
    differing = [key for key in wanted if found.get(key) != wanted[key]]
    if differing:
      raise ValueError(
          f'{self.plan.folder} holds another cache; what differs:\n'
          + self._differences(found, wanted, differing)
          + 'Expected the same. Give another --out, delete that folder, or run '
          'it with the task and options that it was begun with.'
      )
    self._refuse_other_code(found.get(_CODE, {}))  # older caches have none
    if places.exists(self._source_file):
      self._refuse_changes(self._begun_with(), self.source_state)

  def _code(self) -> dict[str, str]:
    return fingerprints.code_of(getattr(self.pipeline, 'preprocessors', ()))

  def _refuse_other_code(self, before: Mapping[str, str]) -> None:
    changed = [
        f'  {name}: there {before[name]}, now {now}'
        for name, now in self._code().items()
        if before.get(name, now) != now
    ]
    if changed:
      raise ValueError(
          f'the code of {self.manifest.task} has changed since its caching in '
          f'{self.plan.folder} was begun (hashes of functions):\n'
          + '\n'.join(changed)
          + '\nExpected the same code and Python, or rows would be of both. '
          'Delete that folder and run the command again, give another --out, '
          'or put the code back as it was.'
      )

  def _begun_with(self) -> source_files.State:
    """The source's files as they were when the cache was begun."""
    begun = record_cache.read_json(
        self._source_file,
        wanted='sizes and times of files',
        mend='Delete that folder and run the command again.',
    )
    return {path: tuple(state) for path, state in begun.items()}

  def _differences(
      self,
      there: Mapping[str, Any],
      now: Mapping[str, Any],
      differing: Sequence[str],
  ) -> str:
    """Both sides of what differs, in words, a line each."""
    lines = [
        f'  {key}: there {there.get(key)}, now {now[key]}' for key in differing
    ]
    before = list(there.get(_DESCRIPTION, ()))
    after = list(self.manifest.task_description)
    if before:  # older caches have none
      lines += [f'  only there: {x}' for x in before if x not in after]
      lines += [f'  only now:   {x}' for x in after if x not in before]
    if places.exists(self._source_file):
      begun = self._begun_with()
      changes = source_files.changes(begun, self.source_state)
      if changes:
        lines += [
            f'  files: there {source_files.in_words(begun)}, now '
            f'{source_files.in_words(self.source_state)}',
            *(f'  {line}' for line in changes.splitlines()),
        ]
    return '\n'.join(lines) + '\n'

  def _description(self) -> dict[str, Any]:
    return {
        'task_fingerprint': self.manifest.task_fingerprint,
        'content': self.manifest.content,
        'num_shards': self.plan.num_shards,
        'max_record_tokens': self.plan.max_record_tokens,
        'schema': dataclasses.asdict(self.plan.schema),
        'seed': self.seed,
    }

  def _refuse_changes(
      self, before: source_files.State, after: source_files.State
  ) -> None:
    changes = source_files.changes(before, after)
    if changes:
      raise ValueError(
          f'the source of {self.manifest.task} has changed since its caching '
          f'in {self.plan.folder} was begun:\n{changes}\n'
          'Expected files that stay as they are, or shards would not be of one '
          'text. Delete that folder and run the command again; or put the '
          'files back as they were (touch -d gives one its time back).'
      )

  def write_shard(self, index: int) -> None:
    """Writes a shard, where it is not done."""
    if not self.plan.is_done(index):
      self.plan.write(index, self._documents(index))

  def _documents(self, index: int) -> Iterator[Mapping[str, np.ndarray]]:
    import seqio

    dataset = self.pipeline.get_dataset(
        sequence_length=self.task_feature_lengths,
        split=self.split,
        use_cached=self.use_cached,
        shuffle=False,
        seed=self.seed,
        shard_info=seqio.ShardInfo(
            index=index, num_shards=self.plan.num_shards
        ),
        num_epochs=1,
        trim_output_features=False,
        try_in_mem_cache=False,
    )
    names = self.plan.schema.features
    dataset = pipelines.with_options(
        dataset.map(lambda example: {name: example[name] for name in names})
    )
    for example in pipelines.PipelineIterator(dataset):
      if any(tokens.size for tokens in example.values()):
        yield example

  def finish(self) -> record_cache.Manifest:
    """Writes the manifest, once all shards are done.

    Raises:
      ValueError: there is no example, or the source has changed meanwhile.
    """
    shards = self.plan.load_summaries()
    manifest = dataclasses.replace(self.manifest, shards=shards)
    if not manifest.num_records:
      raise ValueError(
          f'the split {self.split!r} of {self.task.name} has no example: '
          'expected one. Leave it out by --splits, or look at its source.'
      )
    self._refuse_changes(
        self.source_state,
        source_files.look_at(
            self.source_state
            if self.use_cached
            else self.task.source.list_shards(self.split)
        ),
    )
    shard_writer.write_text(
        places.join(self.plan.folder, record_cache.MANIFEST),
        manifest.to_json(),
    )
    return manifest
