# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Optax transformations as optimizers: `optimizers.adamw()` and the like.

A wrapped constructor called without `learning_rate` follows the trainer's
schedule; called with one (a number or an optax schedule) it keeps to its own,
as in T5X. Each takes `global_norm_clip_threshold` besides optax's arguments.
"""

from collections.abc import Callable, Mapping, Sequence
import functools
import inspect
from typing import Any

from flax import serialization
from flax import struct
from flax import traverse_util
import flax.core
import jax
import jax.numpy as jnp
import optax

from t5wild.optimizers import base as optimizers_base

__all__ = [
    'OptaxWrapper', 'adabelief', 'adagrad', 'adam', 'adamw', 'chain', 'dpsgd',
    'fromage', 'lamb', 'lars', 'lion', 'muon', 'noisy_sgd', 'radam', 'rmsprop',
    'sgd', 'wrap_optax_optimizer', 'yogi',
]

_EMPTY = traverse_util.empty_node


@struct.dataclass
class OptaxHyperParams:
  """What a step may override.

  Attributes:
    learning_rate: The trainer's rate; read only by optimizers made without one.
    global_norm_clip_threshold: Largest gradient norm let through; None: any.
  """

  learning_rate: float | None = None
  global_norm_clip_threshold: float | None = None


class OptaxWrapper(optimizers_base.OptimizerDef):
  """An optax transformation behind T5X's optimizer interface.

  The state of any transformation is sharded: an array inside it that belongs to
  a parameter (the path ends in the parameter's path) and has its shape gets its
  axes, everything else is replicated.
  """

  def __init__(
      self,
      optax_optimizer: optax.GradientTransformation | None = None,
      *,
      make_optax_optimizer: Callable[..., Any] | None = None,
      global_norm_clip_threshold: float | None = None,
  ):
    """Wraps a transformation, or a way to make one for a learning rate.

    Args:
      optax_optimizer: Transformation with its own learning rate.
      make_optax_optimizer: learning rate -> transformation, called with the
        trainer's rate in each step. Give one of the two.
      global_norm_clip_threshold: Scale gradients down to this norm first;
        None: no clipping.
    """
    if (optax_optimizer is None) == (make_optax_optimizer is None):
      raise ValueError(
          f'optax_optimizer is {optax_optimizer!r} and make_optax_optimizer is '
          f'{make_optax_optimizer!r}, expected one of them: drop one'
      )
    self.optax_optimizer = optax_optimizer
    self._make_optax_optimizer = make_optax_optimizer
    super().__init__(
        OptaxHyperParams(global_norm_clip_threshold=global_norm_clip_threshold)
    )

  def _transformation(self, learning_rate) -> optax.GradientTransformation:
    if self.optax_optimizer is not None:
      return self.optax_optimizer
    if learning_rate is None:
      raise ValueError(
          f'learning_rate is {learning_rate!r} in the optax optimizer of '
          f'{self._make_optax_optimizer!r} and in the step, expected a '
          'number: pass it to apply_gradient (the trainer does, from '
          'trainer.Trainer.learning_rate_fn) or to the optimizer'
      )
    return self._make_optax_optimizer(learning_rate)

  def init_state(self, params: Any) -> optimizers_base.OptimizerState:
    """Returns step 0 and the transformation's initial state."""
    # The state's structure does not depend on the rate.
    transformation = self._transformation(1.0)
    return optimizers_base.OptimizerState(
        step=jnp.zeros((), jnp.int32),
        param_states=transformation.init(params),
    )

  def apply_gradient(self, hyper_params, params, state, grads):
    """Returns the updated parameters and state."""
    grads = optimizers_base.clip_by_global_norm(
        grads, hyper_params.global_norm_clip_threshold
    )
    if isinstance(params, flax.core.FrozenDict):
      grads = flax.core.freeze(grads)
    transformation = self._transformation(hyper_params.learning_rate)
    updates, param_states = transformation.update(
        grads, state.param_states, params
    )
    return (
        optax.apply_updates(params, updates),
        optimizers_base.OptimizerState(
            step=state.step + 1, param_states=param_states
        ),
    )

  def derive_logical_axes(
      self, optimizer: optimizers_base.Optimizer, param_logical_axes: Any
  ) -> optimizers_base.Optimizer:
    """Returns `optimizer` with logical axes (None: replicated) as leaves."""
    shapes = {
        path: jnp.shape(param) for path, param in _leaves(optimizer.target)
    }
    axes = dict(_leaves(param_logical_axes, is_leaf=_is_axes))
    find = functools.partial(_axes_of_leaf, shapes=shapes, axes=axes)
    state = optimizers_base.OptimizerState(
        step=None,
        param_states=jax.tree_util.tree_map_with_path(
            find, optimizer.state.param_states
        ),
    )
    return optimizer.replace(state=state, target=param_logical_axes)

  def state_dict(
      self, target: Any, state: optimizers_base.OptimizerState
  ) -> dict[str, Any]:
    """Returns nested dicts of arrays, without the empty ones.

    Many transformations have empty states; a checkpoint cannot hold them.
    """
    nested = super().state_dict(target, state)
    nested['state'] = traverse_util.unflatten_dict(
        traverse_util.flatten_dict(nested['state'])
    )
    return nested

  def restore_state(
      self,
      opt_target: Any,
      opt_state: optimizers_base.OptimizerState,
      state_dict: Mapping[str, Any],
  ) -> tuple[Any, optimizers_base.OptimizerState]:
    """Returns target and state holding the leaves of `state_dict`.

    Raises:
      ValueError: When `state_dict` lacks a leaf of the state.
    """
    wanted = traverse_util.flatten_dict(
        serialization.to_state_dict(opt_state), keep_empty_nodes=True
    )
    given = traverse_util.flatten_dict(dict(state_dict['state']))
    missing = [
        '/'.join(path)
        for path, leaf in wanted.items()
        if path not in given and leaf is not _EMPTY
    ]
    if missing:
      raise ValueError(
          f'optimizer state lacks {missing}, expected all of '
          f'{["/".join(path) for path in wanted]}: restore a checkpoint of the '
          'same optimizer, or only its parameters'
      )
    whole = {path: given.get(path, _EMPTY) for path in wanted}
    return super().restore_state(
        opt_target,
        opt_state,
        {
            'target': state_dict['target'],
            'state': traverse_util.unflatten_dict(whole),
        },
    )


def _is_axes(x: Any) -> bool:
  return x is None or isinstance(x, jax.sharding.PartitionSpec)


def _leaves(tree: Any, *, is_leaf=None) -> list[tuple[tuple[str, ...], Any]]:
  leaves = jax.tree_util.tree_leaves_with_path(
      flax.core.unfreeze(tree), is_leaf=is_leaf
  )
  return [(_names(path), leaf) for path, leaf in leaves]


def _names(path) -> tuple[str, ...]:
  return tuple(
      jax.tree_util.keystr((key,), simple=True, separator='/') for key in path
  )


def _axes_of_leaf(path, leaf, *, shapes, axes):
  """Returns the axes of the parameter that a state's leaf belongs to."""
  names = _names(path)
  # The longest suffix first: 'b/kernel' may end the path of 'a/b/kernel'.
  for start in range(len(names)):
    if names[start:] in shapes:
      same_shape = jnp.shape(leaf) == shapes[names[start:]]
      return axes[names[start:]] if same_shape else None
  return None


def wrap_optax_optimizer(optax_optimizer: Callable[..., Any]):
  """Returns a constructor that makes an `OptaxWrapper`.

  It takes the arguments of `optax_optimizer` and
  `global_norm_clip_threshold`; `learning_rate` becomes optional and, left out,
  is the trainer's.

  Args:
    optax_optimizer: A function that returns an optax transformation.
  """
  signature = inspect.signature(optax_optimizer)

  @functools.wraps(optax_optimizer)
  def make_optimizer(*args, global_norm_clip_threshold=None, **kwargs):
    wrap = functools.partial(
        OptaxWrapper, global_norm_clip_threshold=global_norm_clip_threshold
    )
    bound = signature.bind_partial(*args, **kwargs)
    own_rate = bound.arguments.get('learning_rate')
    if 'learning_rate' in signature.parameters and own_rate is None:

      def for_rate(learning_rate):
        bound.arguments['learning_rate'] = learning_rate
        return optax_optimizer(*bound.args, **bound.kwargs)

      return wrap(make_optax_optimizer=for_rate)
    return wrap(optax_optimizer(*args, **kwargs))

  # gin reads it, and refuses an argument that is not there; it would look
  # through __wrapped__ first, where ours are missing.
  make_optimizer.__signature__ = _with_our_arguments(signature)
  del make_optimizer.__wrapped__
  return make_optimizer


def _with_our_arguments(signature: inspect.Signature) -> inspect.Signature:
  parameters = []
  # A default may not stand before a required argument.
  optional = True
  for p in reversed(signature.parameters.values()):
    optional = optional and (
        p.name == 'learning_rate' or p.default is not p.empty
    )
    if p.name == 'learning_rate' and optional:
      p = p.replace(default=None)
    parameters.insert(0, p)
  clip = inspect.Parameter(
      'global_norm_clip_threshold',
      inspect.Parameter.KEYWORD_ONLY,
      default=None,
  )
  position = len(parameters)
  if parameters and parameters[-1].kind is inspect.Parameter.VAR_KEYWORD:
    position -= 1
  parameters.insert(position, clip)
  return signature.replace(parameters=parameters)


def _chain(
    transformations: Sequence[optax.GradientTransformation],
) -> optax.GradientTransformation:
  """Applies optax transformations one after the other."""
  return optax.chain(*transformations)


chain = wrap_optax_optimizer(_chain)
adabelief = wrap_optax_optimizer(optax.adabelief)
adagrad = wrap_optax_optimizer(optax.adagrad)
adam = wrap_optax_optimizer(optax.adam)
adamw = wrap_optax_optimizer(optax.adamw)
dpsgd = wrap_optax_optimizer(optax.contrib.dpsgd)
fromage = wrap_optax_optimizer(optax.fromage)
lamb = wrap_optax_optimizer(optax.lamb)
lars = wrap_optax_optimizer(optax.lars)
lion = wrap_optax_optimizer(optax.lion)
muon = wrap_optax_optimizer(optax.contrib.muon)
noisy_sgd = wrap_optax_optimizer(optax.noisy_sgd)
radam = wrap_optax_optimizer(optax.radam)
rmsprop = wrap_optax_optimizer(optax.rmsprop)
sgd = wrap_optax_optimizer(optax.sgd)
yogi = wrap_optax_optimizer(optax.yogi)
