"""Long short-term memory: layers of cells over sequences of different lengths, one way or both,
with all weights in one array.

    weights = init_lstm_weight(key, input_size, hidden_size, num_layers, bidirectional)
    y, h, c = lstm(x, h0, c0, weights, lengths, input_size, hidden_size, num_layers, 0.0, bidirectional)

Invariant: the order of the weights is that of cuDNN: matrices of all layers, then biases. On every
device, and differentiable; `lstm` is `lstm_ref` of its weights.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from .. import lax, nn, numpy as jnp, random
from .._base.flags import refused
from .._core import Array
from .._transforms.vmap import vmap

__all__ = ["get_num_params_in_lstm", "init_lstm_weight", "lstm", "lstm_ref", "swap_lstm_gates", "unpack_lstm_weights"]


def _shapes(input_size, hidden_size, num_layers, bidirectional):
    """The shapes of the weights in their order."""
    directions = 2 if bidirectional else 1
    matrices = []
    for layer in range(num_layers):
        width = input_size if layer == 0 else hidden_size * directions
        matrices += [(4 * hidden_size, width), (4 * hidden_size, hidden_size)] * directions
    return matrices + [(4 * hidden_size,)] * (2 * num_layers * directions)


def get_num_params_in_lstm(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> int:
    """The number of weights of LSTM layers.

    Args:
        input_size: int, the number of features of the inputs.
        hidden_size: int, the number of features of the state.
        num_layers: int.
        bidirectional: bool; whether each layer runs in both directions.

    Returns:
        int.

    >>> get_num_params_in_lstm(3, 4, 1, False)
    144
    """
    return sum(math.prod(s) for s in _shapes(input_size, hidden_size, num_layers, bidirectional))


def init_lstm_weight(rng: Array, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Array:
    """Weights of LSTM layers, drawn uniformly from -k to k, k = sqrt(1 / hidden_size).

    Args:
        rng: random key.
        input_size: int, the number of features of the inputs.
        hidden_size: int, the number of features of the state.
        num_layers: int.
        bidirectional: bool; whether each layer runs in both directions.

    Returns:
        float32 array (weights,), as many as `get_num_params_in_lstm` says.
    """
    k = np.sqrt(1.0 / hidden_size)
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    return random.uniform(rng, shape=(count,), dtype=np.float32, minval=-k, maxval=k)


def _cut(weights, shapes):
    at = 0
    for shape in shapes:
        n = math.prod(shape)
        yield weights[at : at + n].reshape(shape)
        at += n


def swap_lstm_gates(weights: Array, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Array:
    """Weights with the last two of the four gates exchanged, in each layer.

    Args:
        weights: array (weights,).
        input_size: int, the number of features of the inputs.
        hidden_size: int, the number of features of the state.
        num_layers: int.
        bidirectional: bool; whether each layer runs in both directions.

    Returns:
        Array (weights,).
    """
    swapped = []
    for part in _cut(jnp.asarray(weights), _shapes(input_size, hidden_size, num_layers, bidirectional)):
        first, second, third, fourth = jnp.split(part, 4, axis=0)
        swapped.append(jnp.concatenate([first, second, fourth, third]).ravel())
    return jnp.concatenate(swapped)


def unpack_lstm_weights(
    weights: Array, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> tuple[dict[int, Array], dict[int, Array], dict[int, Array], dict[int, Array]]:
    """The matrices and biases that an array of weights consists of.

    Args:
        weights: array (weights,).
        input_size: int, the number of features of the inputs.
        hidden_size: int, the number of features of the state.
        num_layers: int.
        bidirectional: bool; whether each layer runs in both directions.

    Returns:
        (W_ih, W_hh, b_ih, b_hh), each a dict of arrays by the number of the layer and direction:
        matrices (4 hidden_size, inputs) and (4 hidden_size, hidden_size), biases (4 hidden_size,),
        the four gates one below the other.
    """
    parts = list(_cut(weights, _shapes(input_size, hidden_size, num_layers, bidirectional)))
    n = num_layers * (2 if bidirectional else 1)
    matrices, biases = parts[: 2 * n], parts[2 * n :]
    return tuple(dict(enumerate(p)) for p in (matrices[::2], matrices[1::2], biases[::2], biases[1::2]))


def lstm(
    x: Array,
    h_0: Array,
    c_0: Array,
    weights: Array,
    seq_lengths: Array,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: None = None,
) -> tuple[Array, Array, Array]:
    """LSTM layers over sequences.

    Args:
        x: array (batch, time, input_size), the sequences.
        h_0: array (layers and directions, batch, hidden_size), the first outputs.
        c_0: array of the same shape, the first states.
        weights: array (weights,).
        seq_lengths: int32 array (batch,), the lengths of the sequences; outputs behind them are 0.
        input_size: int, the number of features of the inputs.
        hidden_size: int, the number of features of the state.
        num_layers: int.
        dropout: must be 0.
        bidirectional: bool; whether each layer runs in both directions.
        precision: must be None.

    Returns:
        (y, h_n, c_n): the outputs (batch, time, directions * hidden_size), and the last outputs and
        states, of the shape of `h_0`.

    Raises:
        NotImplementedError: dropout or a precision is requested, or lengths are not int32.
    """
    if precision is not None:
        refused("lstm", "precision", precision, "products are of single precision; config.jax_default_matmul_precision sets it")
    W_ih, W_hh, b_ih, b_hh = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    return lstm_ref(x, h_0, c_0, W_ih, W_hh, b_ih, b_hh, seq_lengths, input_size, hidden_size, num_layers, dropout, bidirectional)


def _cell(carry, x, W_ih, W_hh, b_ih, b_hh):
    h, c = carry
    gates = x @ W_ih.T + b_ih[None] + h @ W_hh.T + b_hh[None]
    i, f, g, o = jnp.split(gates, 4, axis=-1)
    c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
    h = nn.sigmoid(o) * jnp.tanh(c)
    return (h, c), (h, c, h)


def _layer(xs, h, c, lengths, weights):
    """(outputs, last h, last c) over time."""
    _, (hs, cs, ys) = lax.scan(lambda carry, x: _cell(carry, x, *weights), (h, c), xs)
    at = (lengths - 1, jnp.arange(hs.shape[1]))
    there = lengths[None] > jnp.arange(ys.shape[0], dtype=np.int32)[:, None]
    return jnp.where(there[..., None], ys, 0), hs[at], cs[at]


def _reversed(xs, lengths):
    """Each sequence from its last step to its first; the padding behind it stays in place."""
    return vmap(functools.partial(jnp.roll, axis=0), in_axes=(1, 0), out_axes=1)(xs, xs.shape[0] - lengths)[::-1]


def lstm_ref(
    x: Array,
    h_0: Array,
    c_0: Array,
    W_ih: dict[int, Array],
    W_hh: dict[int, Array],
    b_ih: dict[int, Array],
    b_hh: dict[int, Array],
    seq_lengths: Array,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
) -> tuple[Array, Array, Array]:
    """LSTM layers over sequences, with weights as `unpack_lstm_weights` returns them.

    Args:
        x: array (batch, time, input_size), the sequences.
        h_0: array (layers and directions, batch, hidden_size), the first outputs.
        c_0: array of the same shape, the first states.
        W_ih, W_hh, b_ih, b_hh: dicts of matrices and biases by the number of the layer and
          direction.
        seq_lengths: int32 array (batch,), the lengths of the sequences; outputs behind them are 0.
        input_size, hidden_size: ints; the weights' shapes say the same.
        num_layers: int.
        dropout: must be 0.
        bidirectional: bool; whether each layer runs in both directions.

    Returns:
        (y, h_n, c_n): the outputs (batch, time, directions * hidden_size), and the last outputs and
        states, of the shape of `h_0`.

    Raises:
        NotImplementedError: lengths are not int32, or there is dropout.
    """
    if seq_lengths.dtype != np.int32:
        raise NotImplementedError("`seq_lengths` can only be int32.")
    if dropout != 0.0:
        raise NotImplementedError("Dropout not supported in LSTM reference because we cannot determine CUDNN dropout mask.")
    of = lambda k: (W_ih[k], W_hh[k], b_ih[k], b_hh[k])
    xs, hs, cs = x.transpose(1, 0, 2), [], []
    for layer in range(num_layers):
        if not bidirectional:
            xs, h, c = _layer(xs, h_0[layer], c_0[layer], seq_lengths, of(layer))
            hs.append(h)
            cs.append(c)
            continue
        forward, h, c = _layer(xs, h_0[2 * layer], c_0[2 * layer], seq_lengths, of(2 * layer))
        backward, hb, cb = _layer(_reversed(xs, seq_lengths), h_0[2 * layer + 1], c_0[2 * layer + 1], seq_lengths, of(2 * layer + 1))
        xs = jnp.concatenate([forward, _reversed(backward, seq_lengths)], axis=-1)
        hs += [h, hb]
        cs += [c, cb]
    return xs.transpose(1, 0, 2), jnp.stack(hs), jnp.stack(cs)
