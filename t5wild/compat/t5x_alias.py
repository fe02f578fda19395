# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Where each name of T5X lives now: one table, old name -> the same object.

gin knows a function or class by the Python object, so an alias must be that
very object, never a wrapper or a subclass. Nothing is imported here: the
places are strings.
"""

from collections.abc import Mapping

from t5wild.compat import alias_table

_LAYER_FUNCTIONS = {
    't5wild.networks.t5x_masks': (
        'combine_biases combine_masks dot_product_attention '
        'make_attention_mask make_causal_mask make_decoder_mask'
    ),
    't5wild.networks.layers': (
        '_convert_to_activation_function=make_activation'
    ),
    'flax.linen.partitioning': 'param_with_axes with_sharding_constraint',
    'jax': 'Array',
    'jax.typing': 'DType=DTypeLike',
    'typing': (
        'Activation=Callable Initializer=Callable PRNGKey=Any Shape=Any'
    ),
}
_LAYERS = {
    **_LAYER_FUNCTIONS,
    't5wild.networks.t5x_attention': 'MultiHeadDotProductAttention',
    't5wild.networks.t5x_layers': (
        'DenseGeneral Embed LayerNorm MlpBlock RelativePositionBiases '
        '_canonicalize_tuple=canonicalize_tuple _normalize_axes=normalize_axes '
        'default_embed_init dynamic_vector_slice_in_dim'
    ),
}
_SCANNED_LAYERS = {
    **_LAYER_FUNCTIONS,
    't5wild.networks.t5x_attention': (
        'MultiHeadDotProductAttention=ScannedMultiHeadDotProductAttention'
    ),
    't5wild.networks.t5x_layers': (
        'DenseGeneral=ScannedDenseGeneral Embed LayerNorm '
        'MlpBlock=ScannedMlpBlock RelativePositionBiases '
        '_canonicalize_tuple=canonicalize_tuple _normalize_axes=normalize_axes '
        'default_embed_init dynamic_vector_slice_in_dim nd_dense_init'
    ),
    'flax.linen.initializers': 'variance_scaling',
}
_NETWORK = {
    't5wild.networks.t5x_stacks': 'Decoder DecoderLayer Encoder EncoderLayer',
    't5wild.networks.transformer': 'T5Config Transformer',
}
_SCANNED_NETWORK = {
    't5wild.networks.stacks': 'Decoder DecoderLayer Encoder EncoderLayer',
    't5wild.networks.transformer': 'Transformer',
    't5wild.networks.t5x_configs': 'T5Config=ScannedT5Config',
    'flax.linen.partitioning': (
        'ScanIn remat scan_with_axes with_sharding_constraint'
    ),
}
_GPU_NETWORK = {
    't5wild.networks.t5x_stacks': 'Decoder DecoderLayer Encoder EncoderLayer',
    't5wild.networks.transformer': 'Transformer',
    't5wild.networks.t5x_configs': 'T5Config=GpuT5Config',
}
_DECODER_NETWORK = {
    't5wild.networks.decoder_only': (
        'Decoder DecoderLayer DecoderWrapper TransformerConfig'
    ),
}
_SCANNED_DECODER_NETWORK = {
    't5wild.networks.decoder_only': 'Decoder DecoderLayer DecoderWrapper',
    't5wild.networks.t5x_configs': (
        'TransformerConfig=ScannedTransformerConfig'
    ),
}
_TRAIN = {'t5wild.train': 'main train'}
_EVAL = {
    't5wild.eval': 'evaluate main',
    't5wild.evaluator': 'InferenceEvaluator',
}
_INFER = {
    't5wild.infer': (
        'create_task_from_tfexample_file infer main merge_chunks_to_file '
        'write_inferences_to_file'
    ),
    't5wild.inference': (
        '_extract_tokens_and_aux_values=tokens_and_aux_values'
    ),
    'typing': 'Inferences=Tuple _Inferences=Tuple',
}

# T5X module -> place of ours -> names there; `old=new` where the name changed.
_TABLE: Mapping[str, Mapping[str, str]] = {
    't5x': {},
    't5x.adafactor': {
        't5wild.optimizers.adafactor': (
            'Adafactor FactorDim FactorRule HEURISTIC_RULE HParamMap '
            'HeuristicRule factor_name_to_factordim '
            'standard_logical_factor_rules'
        ),
        't5wild.optimizers.adafactor_update': (
            '_AdafactorHyperParams=AdafactorHyperParams '
            '_AdafactorParamState=AdafactorParamState'
        ),
    },
    't5x.checkpoint_importer': {
        't5wild.checkpoints.stored': 'LazyArray=Stored',
    },
    't5x.checkpoints': {
        't5wild.checkpoints': (
            'Checkpointer SaveBestCheckpointer all_steps get_checkpoint_dir '
            'latest_step load_t5x_checkpoint'
        ),
        't5wild.checkpoints.load': 'find_checkpoint',
        't5wild.checkpoints.stored': 'LazyArray=Stored',
        't5wild.trainer.t5x_names': 'get_local_data',
        'typing': (
            'CheckpointManagerConstructor=Callable '
            'CheckpointerConstructor=Callable PyTree=Any '
            'RestoreStateTransformationFn=Callable '
            'SaveStateTransformationFn=Callable'
        ),
        'jax.sharding': 'PartitionSpec',
        'jax.tree_util': 'PyTreeDef',
    },
    't5x.config_utils': {
        't5wild.own_binaries.config_run': 'config_with_fiddle run using_fdl',
    },
    't5x.decoding': {
        't5wild.decoding': (
            'DecodingState NEG_INF SamplingLoopState add_beam_dim beam_search '
            'brevity_penalty cache_gather_beams cache_map '
            'flat_batch_beam_expand flatten_beam_dim temperature_sample '
            'unflatten_beam_dim'
        ),
        't5wild.decoding.gathering': 'gather_beams',
        't5wild.decoding.t5x_names': (
            '_left_align_prompts=left_align_prompts '
            '_right_align_prompts=right_align_prompts '
            '_temperature_sample_single_trial='
            'temperature_sample_single_trial '
            'gather_topk_beams top_k_two_stage'
        ),
        't5wild.decoding.logits': 'MIN_TEMPERATURE NEG_INF_VALUE',
        't5wild.decoding.sampling': 'LogitCallbackFn StateCallbackFn',
    },
    't5x.eval': _EVAL,
    't5x.gin_utils': {
        't5wild.gin_utils': (
            'bool_fn get_gin_config_str parse_gin_flags rewrite_gin_args run '
            'string_split_fn sum_fn summarize_gin_config'
        ),
    },
    't5x.infer': _INFER,
    't5x.interactive_model': {
        't5wild.interactive': (
            'InferenceType InteractiveModel T5XScriptType '
            'get_batches_from_seqio get_dataset_from_natural_text_examples '
            'get_gin_config_from_interactive_model '
            'get_seqio_task_from_examples'
        ),
        't5wild.inference': (
            '_extract_tokens_and_aux_values=tokens_and_aux_values'
        ),
    },
    't5x.losses': {
        't5wild.losses': (
            'SpecialLossNormalizingFactor compute_weighted_cross_entropy '
            'convert_special_loss_normalizing_factor_to_enum '
            'cross_entropy_with_logits get_loss_normalizing_factor_and_weights '
            '_sum_weights_per_segment=_sums_per_packed_sequence'
        ),
    },
    't5x.metrics': {
        't5wild.metrics': (
            'AveragePerStep MetricsMap Scalar Step StepsPerTime Sum Time '
            'TimeRate create_metrics_dict is_metric_obj is_time_metric '
            'set_step_metrics_num_steps set_time_metrics_duration '
            'shape_obj_to_defined_obj'
        ),
    },
    't5x.models': {
        't5wild.models': (
            'BaseModel BaseTransformerModel DecodeFnCallable DecoderOnlyModel '
            'DecoderParams EncoderDecoderModel PrefixLanguageModel '
            'compute_base_metrics get_input_vocabulary get_output_vocabulary '
            'remove_prefix'
        ),
        't5wild.models.base_metrics': (
            'compute_weighted_accuracy count_packed_examples'
        ),
        't5wild.decoding.state': 'TokensIdsToLogitsCallable',
        't5wild.metrics': 'MetricsMap',
        'jax': 'Array',
        'jax.tree_util': 'PyTreeDef',
        'typing': 'PyTree=Any',
    },
    't5x.optimizers': {
        't5wild.optimizers': (
            'MultiOptimizer OptaxWrapper Optimizer OptimizerDef '
            'OptimizerDefType OptimizerState OptimizerStateType OptimizerType '
            'adabelief adagrad adam adamw chain dpsgd fromage lamb lars lion '
            'noisy_sgd radam rmsprop sgd wrap_optax_optimizer yogi'
        ),
    },
    't5x.partitioning': {
        't5wild.partitioning': (
            'BasePartitioner DataLayout LocalChunkInfo LogicalAxisRules Mesh '
            'ModelBasedPjitPartitioner PartitionSpec PjitPartitioner '
            'standard_logical_axis_rules'
        ),
        't5wild.partitioning.t5x_names': (
            'LocalChunker bounds_from_last_device default_mesh get_coords '
            'global_mesh_defined host_local_array_to_global_array'
        ),
        't5wild.train_state': 'TrainState',
        'flax.linen.partitioning': 'AxisMetadata with_sharding_constraint',
        'jax': 'JaxDevice=Device',
        'typing': (
            'AxisNames=Any CompiledPartitionedCallable=Callable '
            'PartitionedCallable=Callable'
        ),
    },
    't5x.precompile': {'t5wild.precompile': 'main precompile'},
    't5x.state_utils': {
        't5wild.checkpoints.transforms': 'apply_assignment_map',
        't5wild.checkpoints.t5x_names': (
            'flatten_state_dict get_name_tree intersect_state merge_state'
        ),
    },
    't5x.train': _TRAIN,
    't5x.train_state': {
        't5wild.train_state': (
            'EMPTY_DICT FlaxOptimTrainState InferenceState TrainState'
        ),
        'flax.core': 'FrozenDict',
        'flax.core.scope': (
            'FrozenVariableDict MutableVariableDict VariableDict'
        ),
    },
    't5x.trainer': {
        't5wild.trainer': (
            'ActionMapType ActionMode BaseAction BaseTrainer '
            'BaseTrainerConstructor EarlyStoppingAction TerminateOnNanAction '
            'Trainer WeightMetricsComputer accumulate_grads_microbatched '
            'apply_grads eval_step merge_metrics train_with_lr'
        ),
        't5wild.trainer.metrics_manager': 'MetricsManager',
        't5wild.trainer.preemption': 'PreemptionError=Preempted',
        't5wild.trainer.trainer': (
            'LearningRateCallable PartitionedEvalCallable '
            'PartitionedTrainCallable'
        ),
        't5wild.metrics': 'MetricMapType=MetricsMap',
        'time': '_time=time',
        'jax': 'Array',
        'jax.sharding': 'PartitionSpec',
        'typing': (
            'BatchSpec=Any BatchType=Any FlaxMutables=Any MetricMapSpec=Any '
            'MetricValueMapType=Any ModelWeights=Any MutableMetricMapType=Any '
            'PyTree=Any Rng=Any'
        ),
    },
    't5x.utils': {
        't5wild.checkpoints': (
            'CheckpointConfig RestoreCheckpointConfig SaveCheckpointConfig'
        ),
        't5wild.data': (
            'DatasetConfig get_dataset get_training_eval_datasets '
            'get_vocabulary verify_matching_vocabs'
        ),
        't5wild.inference': 'get_infer_fn',
        't5wild.optimizers': 'create_learning_rate_scheduler',
        't5wild.partitioning.distributed': 'sync_global_devices=barrier',
        't5wild.partitioning.t5x_names': 'multihost_assert_equal',
        't5wild.checkpoints.t5x_manager': (
            'LegacyCheckpointManager=CheckpointManager '
            'create_checkpoint_manager_and_restore '
            'create_orbax_checkpoint_manager restore'
        ),
        't5wild.checkpoints.t5x_restoring': (
            'get_fallback_state get_first_valid_restore_config_and_paths'
        ),
        't5wild.own_binaries.config_run': 'run_main',
        't5wild.own_binaries.restored_states': 'TrainStateInitializer',
        't5wild.own_binaries.saved_steps': (
            'find_first_checkpoint_step find_next_checkpoint_step'
        ),
        't5wild.own_binaries.train_iter': (
            'get_dataset_inner prepare_train_iter'
        ),
        't5wild.trainer.t5x_names': (
            'flatten_dict_string_keys get_local_data '
            'get_zeros_batch_like_dataset get_zeros_batch_like_spec '
            'log_model_info override_params_axes_names '
            'round_vocab_size_to_multiple set_hardware_rng_ops'
        ),
        'seqio': 'TensorBoardLogger',
        't5wild.trainer.trainer': 'LearningRateCallable',
        'importlib': 'import_module',
        'jax': 'Array',
        'jax.sharding': 'PartitionSpec',
        'jax.typing': 'DType=DTypeLike',
        'typing': (
            'EvaluatorConstructor=Callable GetDatasetCallable=Callable '
            'GetEvalDatasetCallable=Callable InferFnCallable=Callable '
            'InferStepCallable=Callable InferStepWithRngCallable=Callable '
            'InferStepWithoutRngCallable=Callable InitFnCallable=Callable '
            'PyTree=Any '
            'Shape=Any'
        ),
    },
    't5x.examples': {},
    't5x.examples.decoder_only': {},
    't5x.examples.decoder_only.layers': _LAYERS,
    't5x.examples.decoder_only.network': _DECODER_NETWORK,
    't5x.examples.scalable_decoder': {},
    't5x.examples.scalable_decoder.layers': _SCANNED_LAYERS,
    't5x.examples.scalable_decoder.network': _SCANNED_DECODER_NETWORK,
    't5x.examples.scalable_t5': {},
    't5x.examples.scalable_t5.layers': _SCANNED_LAYERS,
    't5x.examples.scalable_t5.network': _SCANNED_NETWORK,
    't5x.examples.t5': {},
    't5x.examples.t5.layers': _LAYERS,
    't5x.examples.t5.network': _NETWORK,
    't5x.contrib': {},
    't5x.contrib.gpu': {},
    't5x.contrib.gpu.eval': _EVAL,
    't5x.contrib.gpu.infer': _INFER,
    't5x.contrib.gpu.scripts_gpu': {},
    't5x.contrib.gpu.scripts_gpu.seqio_tasks': {},
    't5x.contrib.gpu.train': _TRAIN,
    't5x.contrib.gpu.t5': {},
    't5x.contrib.gpu.t5.layers': _LAYERS,
    't5x.contrib.gpu.t5.network': _GPU_NETWORK,
    't5x.contrib.moe': {},
    't5x.contrib.moe.partitioning': {
        't5wild.partitioning.experts': (
            'MoePjitPartitioner standard_logical_axis_rules'
        ),
    },
}  # fmt: skip

# Modules that are imported for what they do -> what does it here.
_IMPORTED: Mapping[str, str] = {
    't5x.contrib.gpu.scripts_gpu.seqio_tasks': 't5wild.tasks.t5x_gpu',
}

# Parts of T5X that nothing here stands for, and what to do about it.
_ABSENT: Mapping[str, str] = {
    't5x.contrib.calm': 'early exits have no counterpart; keep that code',
    't5x.contrib.moe': (
        'mixtures of experts have no counterpart yet, but for the partitioner'
    ),
    't5x.export': 'exports to TensorFlow have no counterpart',
    't5x.export_lib': 'exports to TensorFlow have no counterpart',
}

TABLE = alias_table.AliasTable(
    package='t5x',
    names=_TABLE,
    imported=_IMPORTED,
    absent=_ABSENT,
    advice=(
        'docs/migrating_from_t5x.md lists what each name has become; code that '
        'needs more than that keeps its own copy of it.'
    ),
)
