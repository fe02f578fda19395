# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Where the names of the `t5` package live here: old name -> the same object.

As `t5x_alias`, for T5's tasks, preprocessors and metrics. Nothing is imported.
"""

from collections.abc import Mapping

from t5wild.compat import alias_table

_HOME = 't5wild.tasks.t5'

_PREPROCESSORS = {
    f'{_HOME}.pairs': (
        'NON_SPACED_LANGUAGE_RANGES filter_by_string_length lm multi_translate '
        'pad_nonspaced_languages parse_tsv preprocess_tsv rekey summarize '
        'tokenize translate'
    ),
    f'{_HOME}.questions': (
        'squad squad_span_space_tokenized trivia_qa trivia_qa_truncate_inputs'
    ),
    f'{_HOME}.text_forms': (
        '_pad_punctuation=with_spaced_punctuation'
    ),
    f'{_HOME}.classes': 'glue record stsb wsc',
    f'{_HOME}.referents': (
        'definite_pronoun_resolution_simple wnli_simple wsc_simple'
    ),
    f'{_HOME}.ranking': 'rank_classification rank_classification_formatter',
    f'{_HOME}.sentences': (
        'fill_in_the_blank fill_in_the_blank_sized neighboring_pairs '
        'next_sentence_prediction random_split_text split_text_to_words'
    ),
    f'{_HOME}.chunks': (
        'concatenate_and_split_to_fixed_length maybe_cast_seed '
        'reduce_concat_tokens select_random_chunk '
        'single_example_select_random_chunk split_tokens '
        'split_tokens_to_inputs_length split_tokens_to_random_length '
        'split_tokens_to_targets_length trim_and_pad_dataset '
        'trim_tokens_at_front'
    ),
    f'{_HOME}.denoising': (
        'DenoiseInputsFn DenoiseNoiseMaskFn DenoiseTargetsFn denoise full_lm '
        'iid_denoising prefix_lm random_spans_helper '
        'random_spans_targets_length random_spans_tokens_length '
        'single_example_denoise span_corruption unsupervised'
    ),
    f'{_HOME}.noise_masks': (
        'iid_noise_mask random_prefix_noise_mask random_spans_noise_mask '
        'regular_noise_mask'
    ),
    f'{_HOME}.noise': (
        'drop_noise_tokens drop_nonnoise_tokens noise_span_to_sentinel '
        'noise_span_to_unique_sentinel noise_token_to_gathered_token '
        'noise_token_to_random_token noise_token_to_random_token_or_sentinel '
        'noise_token_to_sentinel nonnoise_span_to_sentinel '
        'nonnoise_span_to_unique_sentinel permute_noise_tokens sentinel_id'
    ),
    f'{_HOME}.prefix_lm_packing': (
        'pack_prefix_lm_decoder_only pack_prefix_lm_encoder_decoder '
        'targets_for_prefix_lm_objective'
    ),
}
_GLUE = {
    f'{_HOME}.glue': (
        'GLUE_METRICS GLUE_WEIGHT_MAPPING SUPERGLUE_METRICS '
        'SUPER_GLUE_WEIGHT_MAPPING SUPER_GLUE_WEIGHT_MAPPING_SENTINEL '
        'get_glue_metric get_glue_postprocess_fn get_glue_text_preprocessor '
        'get_glue_weight_mapping get_super_glue_metric '
        'get_super_glue_weight_mapping get_super_glue_weight_mapping_sentinel'
    ),
}
_DEFAULTS = {
    f'{_HOME}.defaults': (
        'DEFAULT_EXTRA_IDS DEFAULT_SPM_PATH get_default_vocabulary '
        'rate_num_examples rate_unsupervised'
    ),
}
_PROVIDERS = {
    f'{_HOME}.function_tasks': (
        'FunctionTask SHUFFLE_BUFFER_SIZE TFExampleTask TaskRegistry '
        'TextLineTask TfdsTask'
    ),
}

_TABLE: Mapping[str, Mapping[str, str]] = {
    't5': {},
    't5.data': {
        **_DEFAULTS,
        **_GLUE,
        f'{_HOME}.function_tasks': (
            _PROVIDERS[f'{_HOME}.function_tasks'] + ' Task=FunctionTask'
        ),
        'seqio': (
            'ByteVocabulary DataSource Feature Mixture MixtureRegistry '
            'PassThroughVocabulary SentencePieceVocabulary ShardInfo '
            'Vocabulary get_mixture_or_task get_subtasks map_over_dataset'
        ),
    },
    't5.data.dataset_providers': _PROVIDERS,
    't5.data.glue_utils': _GLUE,
    't5.data.mixtures': {
        f'{_HOME}.mixtures': (
            'MixtureRegistry assign_weight_or_rate_num_examples'
        ),
    },
    't5.data.postprocessors': {
        f'{_HOME}.postprocessors': (
            'lower_text multirc qa rank_classification record span_qa '
            'string_label_to_class_id string_to_float wsc_simple'
        ),
    },
    't5.data.preprocessors': _PREPROCESSORS,
    't5.data.tasks': {
        f'{_HOME}.tasks': 'DEFAULT_OUTPUT_FEATURES TaskRegistry',
    },
    't5.data.utils': _DEFAULTS,
    't5.evaluation': {},
    't5.evaluation.metrics': {
        f'{_HOME}.metrics': (
            'accuracy all_match auc bleu coqa_f1 deduplicate_metric '
            'edit_distance f1_score_with_invalid mean_group_metric '
            'mean_multiclass_f1 multirc_f1_over_all_answers pearson_corrcoef '
            'rank_classification rouge rouge_mean score_auc sequence_accuracy '
            'sklearn_metrics_wrapper span_squad spearman_corrcoef squad '
            'trivia_qa'
        ),
    },
    't5.evaluation.qa_utils': {
        f'{_HOME}.answer_scores': (
            'normalize_squad normalize_trivia_qa qa_metrics'
        ),
    },
}

# Modules that are imported for what they do -> what does it here.
_IMPORTED: Mapping[str, str] = {
    't5.data.mixtures': f'{_HOME}.mixtures',
    't5.data.tasks': f'{_HOME}.tasks',
}

# Parts of T5 that nothing here stands for, and what to do about it.
_ABSENT: Mapping[str, str] = {
    't5.models': 'models of Mesh TensorFlow have no counterpart',
    't5.scripts': 'commands of T5 have no counterpart',
    't5.evaluation.eval_utils': 'logs of Mesh TensorFlow have no counterpart',
}

TABLE = alias_table.AliasTable(
    package='t5',
    names=_TABLE,
    imported=_IMPORTED,
    absent=_ABSENT,
    advice=(
        'Correct the name; docs/migrating_from_t5x.md ("T5 task names") lists '
        'what is here. What only the package has needs it: pip install t5.'
    ),
)
