"""Optimizers as triples of functions.

    opt_init, opt_update, get_params = adam(1e-3)
    state = opt_init(params)
    for i, batch in enumerate(batches):
        state = opt_update(i, grad(loss)(get_params(state), batch), state)

Invariant: an `OptimizerState` is a pytree whose leaves are the packed state's arrays, so `jit` and `grad` accept it.
"""

from __future__ import annotations

import collections
import functools
import typing
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from .. import numpy as jnp
from ..tree_util import register_pytree_node, tree_flatten, tree_leaves, tree_map, tree_unflatten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from .._core import Array
    from ..typing import ArrayLike

    # init(x0), update(step, gradient, state) and params(state), of one array.
    _Triple: TypeAlias = tuple[Callable[[Any], Any], Callable[[Any, Any, Any], Any], Callable[[Any], Any]]
    _StepSize: TypeAlias = ArrayLike | Callable[[Any], Any]

_P = ParamSpec("_P")
_T = TypeVar("_T")


__all__ = [
    "JoinPoint",
    "Optimizer",
    "OptimizerState",
    "adagrad",
    "adam",
    "adamax",
    "clip_grads",
    "constant",
    "exponential_decay",
    "inverse_time_decay",
    "l2_norm",
    "make_schedule",
    "momentum",
    "nesterov",
    "optimizer",
    "pack_optimizer_state",
    "piecewise_constant",
    "polynomial_decay",
    "rmsprop",
    "rmsprop_momentum",
    "sgd",
    "sm3",
    "unpack_optimizer_state",
]

OptimizerState = collections.namedtuple("OptimizerState", ["packed_state", "tree_def", "subtree_defs"])
register_pytree_node(
    OptimizerState,
    lambda s: ((s.packed_state,), (s.tree_def, s.subtree_defs)),
    lambda aux, children: OptimizerState(children[0], *aux),
)


class Optimizer(typing.NamedTuple):
    """`init_fn(params) -> state`, `update_fn(step, grads, state) -> state`, `params_fn(state) -> params`."""

    init_fn: typing.Callable
    update_fn: typing.Callable
    params_fn: typing.Callable


def optimizer(opt_maker: Callable[_P, _Triple]) -> Callable[_P, Optimizer]:
    """Decorator: makes an optimizer of pytrees from an optimizer of single arrays.

    Args:
        opt_maker: a function returning `(init, update, get_params)`: `init(x0) -> state`,
          `update(i, g, state) -> state`, `get_params(state) -> x`, for one array, the state being
          any pytree.

    Returns:
        a function of the same arguments, returning an `Optimizer`.
    """

    @functools.wraps(opt_maker)
    def tree_opt_maker(*args, **kwargs):
        init, update, get_params = opt_maker(*args, **kwargs)

        def tree_init(x0_tree):
            x0_flat, tree = tree_flatten(x0_tree)
            flat, subtrees = _flatten_each([init(x0) for x0 in x0_flat])
            return OptimizerState(flat, tree, subtrees)

        def tree_update(i, grad_tree, opt_state):
            flat, tree, subtrees = opt_state
            grads, grad_structure = tree_flatten(grad_tree)
            if grad_structure != tree:
                raise TypeError(
                    f"optimizer update function was passed a gradient tree that did not match the parameter tree structure with which"
                    f" it was initialized: parameter tree {tree} and grad tree {grad_structure}."
                )
            states = map(tree_unflatten, subtrees, flat)
            new_flat, new_subtrees = _flatten_each([update(i, g, s) for g, s in zip(grads, states, strict=True)])
            for new, old in zip(new_subtrees, subtrees, strict=True):
                if new != old:
                    raise TypeError(
                        f"optimizer update function produced an output structure that did not match its input structure: input {old} and output {new}."
                    )
            return OptimizerState(new_flat, tree, subtrees)

        def tree_get_params(opt_state):
            flat, tree, subtrees = opt_state
            return tree_unflatten(tree, [get_params(tree_unflatten(d, s)) for d, s in zip(subtrees, flat, strict=True)])

        return Optimizer(tree_init, tree_update, tree_get_params)

    return tree_opt_maker


def _flatten_each(states):
    pairs = [tree_flatten(s) for s in states]
    return tuple(tuple(leaves) for leaves, _ in pairs), tuple(d for _, d in pairs)


# ---------------------------------------------------------------- optimizers


def _with_zeros(n):
    """The `init` of a state that is the parameter and n arrays like it, zero at first."""
    return lambda x0: (x0, *[jnp.zeros_like(x0) for _ in range(n)])


def _first(state):
    return state[0]


@optimizer
def sgd(step_size: _StepSize) -> _Triple:
    """Stochastic gradient descent.

    Args:
        step_size: float, or a function of the step that returns one.

    Returns:
        Optimizer.
    """
    step_size = make_schedule(step_size)

    def init(x0):
        return x0

    def update(i, g, x):
        return x - step_size(i) * g

    return init, update, lambda x: x


@optimizer
def momentum(step_size: _StepSize, mass: float) -> _Triple:
    """Stochastic gradient descent with momentum: velocity = mass * velocity + g.

    Args:
        step_size: float, or a function of the step that returns one.
        mass: float, the decay of the velocity.

    Returns:
        Optimizer.
    """
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, velocity = state
        velocity = mass * velocity + g
        return x - step_size(i) * velocity, velocity

    return _with_zeros(1), update, _first


@optimizer
def nesterov(step_size: _StepSize, mass: float) -> _Triple:
    """Stochastic gradient descent with Nesterov's momentum.

    Args:
        step_size: float, or a function of the step that returns one.
        mass: float, the decay of the velocity.

    Returns:
        Optimizer.
    """
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, velocity = state
        velocity = mass * velocity + g
        return x - step_size(i) * (mass * velocity + g), velocity

    return _with_zeros(1), update, _first


@optimizer
def adagrad(step_size: _StepSize, momentum: float = 0.9) -> _Triple:
    """Adagrad (Duchi, Hazan and Singer, 2011), with momentum.

    Args:
        step_size: float, or a function of the step that returns one.
        momentum: float, the decay of the average of steps.

    Returns:
        Optimizer.
    """
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, squares, m = state
        squares = squares + jnp.square(g)
        positive = squares > 0
        scale = jnp.where(positive, 1.0 / jnp.sqrt(jnp.where(positive, squares, 1)), 0.0)
        m = (1.0 - momentum) * (g * scale) + momentum * m
        return x - step_size(i) * m, squares, m

    return _with_zeros(2), update, _first


@optimizer
def rmsprop(step_size: _StepSize, gamma: float = 0.9, eps: float = 1e-8) -> _Triple:
    """RMSProp (Tieleman and Hinton, 2012).

    Args:
        step_size: float, or a function of the step that returns one.
        gamma: float, the decay of the average of squared gradients.
        eps: float, added to the average under the root.

    Returns:
        Optimizer.
    """
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, average = state
        average = average * gamma + jnp.square(g) * (1.0 - gamma)
        return x - step_size(i) * g / jnp.sqrt(average + eps), average

    return _with_zeros(1), update, _first


@optimizer
def rmsprop_momentum(step_size: _StepSize, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9) -> _Triple:
    """RMSProp with momentum.

    Args:
        step_size: float, or a function of the step that returns one.
        gamma: float, the decay of the average of squared gradients.
        eps: float, added to the average under the root.
        momentum: float, the decay of the velocity.

    Returns:
        Optimizer.
    """
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, average, m = state
        average = average * gamma + jnp.square(g) * (1.0 - gamma)
        m = momentum * m + step_size(i) * g / jnp.sqrt(average + eps)
        return x - m, average, m

    return _with_zeros(2), update, _first


@optimizer
def adam(step_size: _StepSize, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> _Triple:
    """Adam (Kingma and Ba, 2014).

    Args:
        step_size: float, or a function of the step that returns one.
        b1: float, the decay of the average of gradients.
        b2: float, the decay of the average of their squares.
        eps: float, added to the divisor.

    Returns:
        Optimizer.
    """
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * jnp.square(g) + b2 * v
        mhat = m / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))
        vhat = v / (1 - jnp.asarray(b2, m.dtype) ** (i + 1))
        return x - step_size(i) * mhat / (jnp.sqrt(vhat) + eps), m, v

    return _with_zeros(2), update, _first


@optimizer
def adamax(step_size: _StepSize, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> _Triple:
    """AdaMax, the variant of Adam that uses the infinity norm.

    Args:
        step_size: float, or a function of the step that returns one.
        b1: float, the decay of the average of gradients.
        b2: float, the decay of the largest gradient.
        eps: float, added to the divisor.

    Returns:
        Optimizer.
    """
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = jnp.maximum(b2 * v, jnp.abs(g))
        return x - (step_size(i) / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))) * m / (v + eps), m, v

    return _with_zeros(2), update, _first


@optimizer
def sm3(step_size: _StepSize, momentum: float = 0.9) -> _Triple:
    """SM3 (Anil et al., 2019): Adagrad with one accumulator for each index of an axis in place of one for each element.

    Args:
        step_size: float, or a function of the step that returns one.
        momentum: float, the decay of the average of steps.

    Returns:
        Optimizer.
    """
    step_size = make_schedule(step_size)

    def along(i, n):
        return (None,) * i + (slice(None),) + (None,) * (n - i - 1)

    def init(x0):
        x0 = jnp.asarray(x0)
        # A scalar has no axis; its one accumulator is a scalar.
        return x0, jnp.zeros_like(x0), [jnp.zeros(s, x0.dtype) for s in x0.shape or [()]]

    def update(i, g, state):
        x, m, axes = state
        spread = [v[along(k, x.ndim)] for k, v in enumerate(axes)] if x.ndim else axes
        squares = functools.reduce(jnp.minimum, spread) + jnp.square(g)
        positive = squares > 0
        scale = jnp.where(positive, 1.0 / jnp.sqrt(jnp.where(positive, squares, 1)), 0.0)
        m = (1.0 - momentum) * (g * scale) + momentum * m
        axes = [squares.max(tuple(a for a in range(x.ndim) if a != k)) for k in range(x.ndim)] or [squares]
        return x - step_size(i) * m, m, axes

    return init, update, _first


# ---------------------------------------------------------------- schedules


def constant(step_size: Any) -> Callable[[Any], Any]:
    """The same step size at every step.

    Args:
        step_size: float.

    Returns:
        A function of the step.
    """
    return lambda i: step_size


def exponential_decay(step_size: ArrayLike, decay_steps: ArrayLike, decay_rate: ArrayLike) -> Callable[[Any], Any]:
    """The step size step_size * decay_rate ** (i / decay_steps) at step i.

    Args:
        step_size: float, the step size at step 0.
        decay_steps: number of steps in which the step size decays by `decay_rate`.
        decay_rate: float.

    Returns:
        A function of the step.
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size: ArrayLike, decay_steps: ArrayLike, decay_rate: ArrayLike, staircase: bool = False) -> Callable[[Any], Any]:
    """The step size step_size / (1 + decay_rate * i / decay_steps) at step i.

    Args:
        step_size: float, the step size at step 0.
        decay_steps: number of steps.
        decay_rate: float.
        staircase: bool; whether i / decay_steps is rounded down.

    Returns:
        A function of the step.
    """
    if staircase:
        return lambda i: step_size / (1 + decay_rate * jnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(step_size: ArrayLike, decay_steps: ArrayLike, final_step_size: ArrayLike, power: float = 1.0) -> Callable[[Any], Any]:
    """The step size that decreases from `step_size` to `final_step_size` in `decay_steps` steps, along (1 - i / decay_steps) ** power.

    Args:
        step_size: float, the step size at step 0.
        decay_steps: number of steps.
        final_step_size: float.
        power: float.

    Returns:
        A function of the step.
    """

    def schedule(step):
        step = jnp.minimum(step, decay_steps)
        return (1 - step / decay_steps) ** power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Callable[[Any], Any]:
    """The step size values[k] at the steps after boundaries[k - 1], up to boundaries[k].

    Args:
        boundaries: sequence of n steps, increasing.
        values: sequence of n + 1 floats.

    Returns:
        A function of the step.

    Raises:
        ValueError: an argument does not have one dimension, or there is not exactly one more value than boundaries.
    """
    boundaries, values = jnp.asarray(boundaries), jnp.asarray(values)
    if not boundaries.ndim == values.ndim == 1:
        raise ValueError("boundaries and values must be sequences")
    if boundaries.shape[0] != values.shape[0] - 1:
        raise ValueError("boundaries length must be one shorter than values length")
    return lambda i: values[jnp.sum(i > boundaries)]


def make_schedule(scalar_or_schedule: float | Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A step size as a function of the step.

    Args:
        scalar_or_schedule: number, or a function of the step.

    Returns:
        The function itself, or one that returns the number at every step.

    Raises:
        TypeError: the argument is neither a function nor a scalar.
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if np.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(type(scalar_or_schedule))


# ---------------------------------------------------------------- norms, packing


def l2_norm(tree: Any) -> Array:
    """The Euclidean norm of all leaves of a pytree together.

    Args:
        tree: pytree of real arrays.

    Returns:
        Scalar array.
    """
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in tree_leaves(tree)))


def clip_grads(grad_tree: _T, max_norm: ArrayLike) -> _T:
    """A pytree scaled down so that its norm is at most `max_norm`.

    Args:
        grad_tree: pytree of real arrays.
        max_norm: float.

    Returns:
        Pytree of the same structure, shapes and dtypes.
    """
    norm = l2_norm(grad_tree)
    return tree_map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


class JoinPoint:
    """Marks in a pytree where the parameters' tree ends and each parameter's state begins."""

    def __init__(self, subtree: Any) -> None:
        self.subtree = subtree

    def __iter__(self) -> Iterator[Any]:
        yield self.subtree


def unpack_optimizer_state(opt_state: Any) -> Any:
    """An optimizer's state as a pytree like the parameters, with a `JoinPoint` around the state of each, for writing to a file.

    Args:
        opt_state: OptimizerState.

    Returns:
        Pytree of `JoinPoint`.
    """
    flat, tree, subtrees = opt_state
    return tree_unflatten(tree, [JoinPoint(tree_unflatten(d, s)) for d, s in zip(subtrees, flat, strict=True)])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The inverse of `unpack_optimizer_state`.

    Args:
        marked_pytree: pytree of `JoinPoint`.

    Returns:
        OptimizerState.

    Raises:
        TypeError: a leaf is not a `JoinPoint`.
    """
    sentinels, tree = tree_flatten(marked_pytree)
    if not all(isinstance(s, JoinPoint) for s in sentinels):
        raise TypeError("pack_optimizer_state: every leaf must be a JoinPoint")
    flat, subtrees = _flatten_each([s.subtree for s in sentinels])
    return OptimizerState(flat, tree, subtrees)
