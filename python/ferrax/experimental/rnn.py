"""Long short-term memory: layers of cells over sequences of different lengths, one way or both, with all weights in one array.

    weights = init_lstm_weight(key, input_size, hidden_size, num_layers, bidirectional)
    y, h, c = lstm(x, h0, c0, weights, lengths, input_size, hidden_size, num_layers, 0.0, bidirectional)

Invariant: the order of the weights is that of cuDNN: matrices of all layers, then biases. On every device, and differentiable; `lstm` is `lstm_ref` of its weights.
"""

import functools
import math

import numpy as np

from .. import lax, nn, numpy as jnp, random
from .._batching import vmap
from .._config import refused

__all__ = ["get_num_params_in_lstm", "init_lstm_weight", "lstm", "lstm_ref", "swap_lstm_gates", "unpack_lstm_weights"]


def _shapes(input_size, hidden_size, num_layers, bidirectional):
    """The shapes of the weights in their order."""
    directions = 2 if bidirectional else 1
    matrices = []
    for layer in range(num_layers):
        width = input_size if layer == 0 else hidden_size * directions
        matrices += [(4 * hidden_size, width), (4 * hidden_size, hidden_size)] * directions
    return matrices + [(4 * hidden_size,)] * (2 * num_layers * directions)


def get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional):
    """How many weights there are.

    >>> get_num_params_in_lstm(3, 4, 1, False)
    144
    """
    return sum(math.prod(s) for s in _shapes(input_size, hidden_size, num_layers, bidirectional))


def init_lstm_weight(rng, input_size, hidden_size, num_layers, bidirectional):
    """Weights from U(-k, k), k = sqrt(1 / hidden_size).

    Args:
      rng: a key.
      input_size, hidden_size, num_layers, bidirectional: what there are weights for.
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


def swap_lstm_gates(weights, input_size, hidden_size, num_layers, bidirectional):
    """The weights with the gates of input and of output exchanged, each layer's two matrices and two biases behind each other.

    Args:
      weights: all of them.
      input_size, hidden_size, num_layers, bidirectional: what they are for.
    """
    swapped = []
    for part in _cut(jnp.asarray(weights), _shapes(input_size, hidden_size, num_layers, bidirectional)):
        first, second, third, fourth = jnp.split(part, 4, axis=0)
        swapped.append(jnp.concatenate([first, second, fourth, third]).ravel())
    return jnp.concatenate(swapped)


def unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional):
    """(W_ih, W_hh, b_ih, b_hh): for each layer, and each direction of it, the weights of its four gates.

    Args:
      weights: all of them.
      input_size, hidden_size, num_layers, bidirectional: what they are for.
    """
    parts = list(_cut(weights, _shapes(input_size, hidden_size, num_layers, bidirectional)))
    n = num_layers * (2 if bidirectional else 1)
    matrices, biases = parts[: 2 * n], parts[2 * n :]
    return tuple(dict(enumerate(p)) for p in (matrices[::2], matrices[1::2], biases[::2], biases[1::2]))


def lstm(x, h_0, c_0, weights, seq_lengths, input_size, hidden_size, num_layers, dropout, bidirectional, precision=None):
    """(y, h_n, c_n): the outputs, and the last states of each layer.

    Args:
      x: sequences, (batch, time, input_size).
      h_0, c_0: the first states, (layers and directions, batch, hidden_size).
      weights: all weights.
      seq_lengths: how many steps of each sequence there are; outputs behind them are 0.
      input_size, hidden_size, num_layers, bidirectional: what the weights are for.
      dropout: between layers: 0.
      precision: of the products; None.

    Raises:
      NotImplementedError: there is dropout, or a precision is asked for.
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
    """Each sequence from its last step to its first; what lies behind stays behind."""
    return vmap(functools.partial(jnp.roll, axis=0), in_axes=(1, 0), out_axes=1)(xs, xs.shape[0] - lengths)[::-1]


def lstm_ref(x, h_0, c_0, W_ih, W_hh, b_ih, b_hh, seq_lengths, input_size, hidden_size, num_layers, dropout, bidirectional):
    """As `lstm`, of the weights of each layer, as `unpack_lstm_weights` gives them.

    Args:
      x, h_0, c_0, seq_lengths, num_layers, dropout, bidirectional: as of `lstm`.
      W_ih, W_hh, b_ih, b_hh: the weights.
      input_size, hidden_size: what the shapes of the weights say.

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
