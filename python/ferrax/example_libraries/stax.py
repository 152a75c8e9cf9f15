"""Layers as pairs of functions, combined by `serial` and `parallel`.

    init, apply = serial(Dense(512), Relu, Dense(10), LogSoftmax)
    out_shape, params = init(random.key(0), (-1, 784))
    y = apply(params, x)                      # layers with noise take rng=key

Invariant: `init(rng, input_shape) -> (output_shape, params)` and `apply(params, inputs, **kwargs) -> outputs`; -1 in a shape is the batch size.
"""

from __future__ import annotations

import functools
import operator as _op
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import lax, numpy as jnp, random
from ..nn import elu, gelu, leaky_relu, log_softmax, relu, selu, sigmoid, softmax, softplus, standardize
from ..nn.initializers import glorot_normal, normal, ones, zeros

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol, TypeAlias

    _Layer: TypeAlias = tuple[Callable[..., Any], Callable[..., Any]]

    class _Pooling(Protocol):
        def __call__(
            self,
            window_shape: Sequence[int],
            strides: Sequence[int] | None = None,
            padding: str | Sequence[tuple[int, int]] = "VALID",
            spec: str | None = None,
        ) -> _Layer: ...


__all__ = [
    "AvgPool",
    "BatchNorm",
    "Conv",
    "Conv1DTranspose",
    "ConvTranspose",
    "Dense",
    "Dropout",
    "Elu",
    "Exp",
    "FanInConcat",
    "FanInSum",
    "FanOut",
    "Flatten",
    "Gelu",
    "GeneralConv",
    "GeneralConvTranspose",
    "Identity",
    "LeakyRelu",
    "LogSoftmax",
    "MaxPool",
    "Relu",
    "Selu",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "SumPool",
    "Tanh",
    "elementwise",
    "elu",
    "gelu",
    "glorot",
    "glorot_normal",
    "leaky_relu",
    "log_softmax",
    "logsoftmax",
    "normal",
    "ones",
    "parallel",
    "randn",
    "relu",
    "selu",
    "serial",
    "shape_dependent",
    "sigmoid",
    "softmax",
    "softplus",
    "standardize",
    "zeros",
]

# The founding documents' names.
logsoftmax, randn, glorot = log_softmax, normal, glorot_normal


def Dense(out_dim: int, W_init: Any = glorot_normal(), b_init: Any = normal()) -> _Layer:
    """An affine map of the last axis, from (..., n) to (..., out_dim). Its parameters are (W, b), of shapes (n, out_dim) and (out_dim,).

    Args:
        out_dim: int.
        W_init: initializer of W, a function of (key, shape).
        b_init: initializer of b.

    Returns:
        Layer, the pair (init, apply).
    """

    def init_fun(rng, input_shape):
        k1, k2 = random.split(rng)
        return tuple(input_shape[:-1]) + (out_dim,), (W_init(k1, (input_shape[-1], out_dim)), b_init(k2, (out_dim,)))

    def apply_fun(params, inputs, **kwargs):
        W, b = params
        return jnp.dot(inputs, W) + b

    return init_fun, apply_fun


def GeneralConv(
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    W_init: Any = None,
    b_init: Any = normal(1e-06),
) -> _Layer:
    """A convolution. Its parameters are (W, b): the kernel, and one number for each output channel.

    Args:
        dimension_numbers: axis letters of the inputs, the kernel and the outputs, such as ("NHWC", "HWIO", "NHWC").
        out_chan: int, the number of output channels.
        filter_shape: tuple of ints, the spatial sizes of the kernel.
        strides: tuple of ints, one for each spatial axis; None: ones.
        padding: "SAME", "VALID" or a sequence of pairs (before, after), one for each spatial axis.
        W_init: initializer of W, a function of (key, shape); None: `glorot_normal`.
        b_init: initializer of b.

    Returns:
        Layer, the pair (init, apply).
    """
    return _convolution(lax.conv_general_dilated, lax.conv_general_shape_tuple, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init)


def _convolution(convolve, shape_tuple, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init):
    """A convolution layer, with the function that computes its result's shape."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    strides = strides or (1,) * len(filter_shape)
    W_init = W_init or glorot_normal(rhs_spec.index("I"), rhs_spec.index("O"))

    def init_fun(rng, input_shape):
        sizes = iter(filter_shape)
        kernel_shape = [out_chan if c == "O" else input_shape[lhs_spec.index("C")] if c == "I" else next(sizes) for c in rhs_spec]
        output_shape = shape_tuple(input_shape, kernel_shape, strides, padding, dimension_numbers)
        bias_shape = tuple(out_chan if c == "C" else 1 for c in out_spec)
        k1, k2 = random.split(rng)
        return tuple(output_shape), (W_init(k1, kernel_shape), b_init(k2, bias_shape))

    def apply_fun(params, inputs, **kwargs):
        W, b = params
        return convolve(inputs, W, strides, padding, dimension_numbers=dimension_numbers) + b

    return init_fun, apply_fun


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))


def GeneralConvTranspose(
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    W_init: Any = None,
    b_init: Any = normal(1e-06),
) -> _Layer:
    """A transposed convolution, which enlarges the spatial axes by its strides. Its parameters are (W, b), like those of `GeneralConv`.

    Args:
        dimension_numbers: axis letters of the inputs, the kernel and the outputs, such as ("NHWC", "HWIO", "NHWC").
        out_chan: int, the number of output channels.
        filter_shape: tuple of ints, the spatial sizes of the kernel.
        strides: tuple of ints, one for each spatial axis; None: ones.
        padding: "SAME", "VALID" or a sequence of pairs (before, after), one for each spatial axis.
        W_init: initializer of W, a function of (key, shape); None: `glorot_normal`.
        b_init: initializer of b.

    Returns:
        Layer, the pair (init, apply).
    """
    return _convolution(lax.conv_transpose, lax.conv_transpose_shape_tuple, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init)


Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


def BatchNorm(
    axis: int | Sequence[int] = (0, 1, 2), epsilon: float = 1e-05, center: bool = True, scale: bool = True, beta_init: Any = zeros, gamma_init: Any = ones
) -> _Layer:
    """Normalisation to mean 0 and variance 1 over some axes, then scale and shift. Its parameters are (beta, gamma), of the shape of the other axes.

    Args:
        axis: int or tuple of ints, the axes over which mean and variance are taken.
        epsilon: float, added to the variance.
        center: bool; whether beta is added.
        scale: bool; whether the result is multiplied by gamma.
        beta_init: initializer of beta, a function of (key, shape).
        gamma_init: initializer of gamma.

    Returns:
        Layer, the pair (init, apply).
    """
    axis = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng, input_shape):
        shape = tuple(d for i, d in enumerate(input_shape) if i not in axis)
        k1, k2 = random.split(rng)
        return input_shape, (beta_init(k1, shape) if center else (), gamma_init(k2, shape) if scale else ())

    def apply_fun(params, x, **kwargs):
        beta, gamma = params
        spread = tuple(None if i in axis else slice(None) for i in range(jnp.ndim(x)))
        z = standardize(x, axis, epsilon=epsilon)
        z = gamma[spread] * z if scale else z
        return z + beta[spread] if center else z

    return init_fun, apply_fun


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> _Layer:
    """A layer without parameters that applies a function to each element.

    Args:
        fun: function of an array.
        **fun_kwargs: arguments of `fun` by name.

    Returns:
        Layer, the pair (init, apply).
    """
    return lambda rng, input_shape: (input_shape, ()), lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs)


Tanh = elementwise(jnp.tanh)
Relu = elementwise(relu)
Exp = elementwise(jnp.exp)
LogSoftmax = elementwise(log_softmax, axis=-1)
Softmax = elementwise(softmax, axis=-1)
Softplus = elementwise(softplus)
Sigmoid = elementwise(sigmoid)
Elu = elementwise(elu)
LeakyRelu = elementwise(leaky_relu)
Selu = elementwise(selu)
Gelu = elementwise(gelu)


def _pooling(reducer, init_val, rescaler=None) -> _Pooling:
    def Pool(window_shape, strides=None, padding="VALID", spec=None):
        """Pooling over windows, a layer without parameters.

        Args:
            window_shape: tuple of ints, the sizes of the window along the spatial axes.
            strides: tuple of ints, one for each spatial axis; None: ones.
            padding: "SAME", "VALID" or a sequence of pairs (before, after), one for each axis of the inputs.
            spec: axis letters of the inputs; "N" and "C" are not pooled. None: the first axis and the last are not pooled.

        Returns:
            Layer, the pair (init, apply).
        """
        strides = strides or (1,) * len(window_shape)
        rescale = rescaler(window_shape, strides, padding) if rescaler else None
        positions = (0, len(window_shape) + 1) if spec is None else (spec.index("N"), spec.index("C"))
        dims, steps = list(window_shape), list(strides)
        for i in sorted(positions):
            dims.insert(i, 1)
            steps.insert(i, 1)
        dims, steps = tuple(dims), tuple(steps)

        def init_fun(rng, input_shape):
            pads = lax.padtype_to_pads(input_shape, dims, steps, padding) if isinstance(padding, str) else padding
            sizes = [n if n < 0 else (n + lo + hi - w) // s + 1 for n, (lo, hi), w, s in zip(input_shape, pads, dims, steps, strict=True)]
            return tuple(sizes), ()

        def apply_fun(params, inputs, **kwargs):
            out = lax.reduce_window(inputs, np.asarray(init_val, inputs.dtype)[()], reducer, dims, steps, padding)
            return rescale(out, inputs, spec) if rescale else out

        return init_fun, apply_fun

    return Pool


def _average(dims, strides, padding):
    """Divides each sum by how many elements, padding not counted, its window had."""

    def rescale(outputs, inputs, spec):
        batch, channel = (0, inputs.ndim - 1) if spec is None else (spec.index("N"), spec.index("C"))
        one = jnp.ones([d for i, d in enumerate(inputs.shape) if i not in (batch, channel)], inputs.dtype)
        count = lax.reduce_window(one, np.asarray(0, inputs.dtype)[()], lax.add, dims, strides, padding)
        for i in sorted((batch, channel)):
            count = jnp.expand_dims(count, i)
        return outputs / count

    return rescale


MaxPool = _pooling(lax.max, -np.inf)
SumPool = _pooling(lax.add, 0.0)
AvgPool = _pooling(lax.add, 0.0, _average)


def _flatten():
    def init_fun(rng, input_shape):
        return (input_shape[0], functools.reduce(_op.mul, input_shape[1:], 1)), ()

    def apply_fun(params, inputs, **kwargs):
        return jnp.reshape(inputs, (inputs.shape[0], -1))

    return init_fun, apply_fun


Flatten = _flatten()
Identity = (lambda rng, input_shape: (input_shape, ())), (lambda params, inputs, **kwargs: inputs)


def FanOut(num: int) -> _Layer:
    """A layer without parameters that returns a list of `num` copies of its input.

    Args:
        num: int.

    Returns:
        Layer, the pair (init, apply).
    """
    return (lambda rng, input_shape: ([input_shape] * num, ())), (lambda params, inputs, **kwargs: [inputs] * num)


FanInSum = (lambda rng, input_shape: (input_shape[0], ())), (lambda params, inputs, **kwargs: sum(inputs))


def FanInConcat(axis: int = -1) -> _Layer:
    """A layer without parameters that concatenates the arrays of a list.

    Args:
        axis: int, the axis along which they are joined.

    Returns:
        Layer, the pair (init, apply).
    """

    def init_fun(rng, input_shape):
        at = axis % len(input_shape[0])
        size = sum(shape[at] for shape in input_shape)
        return tuple(input_shape[0][:at]) + (size,) + tuple(input_shape[0][at + 1 :]), ()

    def apply_fun(params, inputs, **kwargs):
        return jnp.concatenate(inputs, axis)

    return init_fun, apply_fun


def Dropout(rate: float, mode: str = "train") -> _Layer:
    """A layer without parameters that, in mode "train", keeps each element with probability `rate` and divides it by `rate`. Other elements become 0.

    Args:
        rate: float, the probability of keeping an element.
        mode: "train", or another string, with which inputs are unchanged.

    Returns:
        Layer, the pair (init, apply). `apply` needs `rng=`, a key, and raises ValueError without it.
    """

    def init_fun(rng, input_shape):
        return input_shape, ()

    def apply_fun(params, inputs, **kwargs):
        rng = kwargs.get("rng", None)
        if rng is None:
            raise ValueError(
                "Dropout layer requires apply_fun to be called with a PRNG key argument. That is, instead of `apply_fun(params,"
                " inputs)`, call it like `apply_fun(params, inputs, rng)` where `rng` is a PRNG key (e.g. from `jax.random.key`)."
            )
        if mode != "train":
            return inputs
        keep = random.bernoulli(rng, rate, inputs.shape)
        return jnp.where(keep, inputs / rate, 0)

    return init_fun, apply_fun


def serial(*layers: _Layer) -> _Layer:
    """Layers applied in sequence. The parameters are a list with an entry for each layer; `rng` is split among them.

    Args:
        *layers: pairs (init, apply).

    Returns:
        Layer, the pair (init, apply).
    """
    inits, applies = zip(*layers, strict=True) if layers else ((), ())

    def init_fun(rng, input_shape):
        params = []
        for init in inits:
            rng, layer_rng = random.split(rng)
            input_shape, param = init(layer_rng, input_shape)
            params.append(param)
        return input_shape, params

    def apply_fun(params, inputs, **kwargs):
        for apply, param, rng in zip(applies, params, _rngs(kwargs, len(layers)), strict=True):
            inputs = apply(param, inputs, rng=rng, **kwargs)
        return inputs

    return init_fun, apply_fun


def parallel(*layers: _Layer) -> _Layer:
    """Layers side by side, from a list of inputs to a list of outputs. The parameters are a tuple with an entry for each layer.

    Args:
        *layers: pairs (init, apply).

    Returns:
        Layer, the pair (init, apply).
    """
    inits, applies = zip(*layers, strict=True) if layers else ((), ())

    def init_fun(rng, input_shape):
        rngs = random.split(rng, len(layers))
        pairs = [init(key, shape) for init, key, shape in zip(inits, rngs, input_shape, strict=True)]
        return [shape for shape, _ in pairs], tuple(param for _, param in pairs)

    def apply_fun(params, inputs, **kwargs):
        return [f(p, x, rng=r, **kwargs) for f, p, x, r in zip(applies, params, inputs, _rngs(kwargs, len(layers)), strict=True)]

    return init_fun, apply_fun


def _rngs(kwargs, n):
    rng = kwargs.pop("rng", None)
    return (None,) * n if rng is None else random.split(rng, n)


def shape_dependent(make_layer: Callable[[Any], _Layer]) -> _Layer:
    """A layer that is constructed when the shape of its input is known.

    Args:
        make_layer: function of the input's shape that returns a layer.

    Returns:
        Layer, the pair (init, apply).
    """

    def init_fun(rng, input_shape):
        return make_layer(input_shape)[0](rng, input_shape)

    def apply_fun(params, inputs, **kwargs):
        return make_layer(inputs.shape)[1](params, inputs, **kwargs)

    return init_fun, apply_fun
