"""Scaled dot-product attention, with grouped queries, masks, sequence lengths and local windows.

Invariant: the softmax is of float32, of the scores' real parts, whatever the inputs' dtype, and a
query whose keys are all masked gives zeros where lengths mask it out.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Literal, overload

import numpy as np

from .. import numpy as jnp
from .._tracing.jit import jit
from ..scipy._softmax import softmax
from ..scipy.special import logsumexp

if TYPE_CHECKING:
    from .._core import Array
    from ..typing import ArrayLike


@overload
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: Literal["xla", "cudnn"] | None = None,
    return_residual: Literal[False] = False,
) -> Array: ...


@overload
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: Literal["xla", "cudnn"] | None = None,
    return_residual: Literal[True],
) -> tuple[Array, Array]: ...


@overload
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: Literal["xla", "cudnn"] | None = None,
    return_residual: bool = False,
) -> Array | tuple[Array, Array]: ...


def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: Literal["xla", "cudnn"] | None = None,
    return_residual: bool = False,
) -> Array | tuple[Array, Array]:
    """softmax(query @ key.T * scale + bias) @ value, over heads.

    Args:
        query: shape (B, T, N, H), or (T, N, H): batch, target positions, heads, features.
        key, value: shape (B, S, K, H), or (S, K, H), where K divides N: each key and value head
          serves N / K query heads.
        bias: added to the scores; broadcasts to (B, N, T, S).
        mask: boolean, true where a query attends to a key; broadcasts to (B, N, T, S).
        scale: by default 1 / sqrt(H).
        is_causal: position t attends to positions up to t.
        query_seq_lengths, key_value_seq_lengths: int32[B], how many positions of each are real.
        local_window_size: a pair (left, right), or one int for both: position t attends to
          positions from t - left to t + right.
        implementation: None or "xla".
        return_residual: also return the logarithm of the softmax's denominator, shape (B, T, N).

    Returns:
        an array of query's shape and dtype; with `return_residual`, a pair.

    Raises:
        ValueError: shapes do not fit, or the implementation is unknown.

    >>> nn.dot_product_attention(jnp.zeros((2, 1, 1)), jnp.zeros((2, 1, 1)), jnp.array([1.0, 3.0]).reshape(2, 1, 1)).ravel()
    Array([2., 2.], dtype=float32)
    """
    query, key, value = jnp.asarray(query), jnp.asarray(key), jnp.asarray(value)
    shape = query.shape
    if query.ndim == 3:
        query, key, value = query[None], key[None], value[None]
    batch, n_target, n_heads, n_features = query.shape
    n_source, n_kv = key.shape[1], key.shape[2]
    if key.shape != (batch, n_source, n_kv, n_features):
        raise ValueError(f"key shape should be {[batch, n_source, n_kv, n_features]}: but got {key.shape}")
    if value.shape != key.shape:
        raise ValueError(f"value shape should be {list(key.shape)}: but got {value.shape}")
    if n_heads % n_kv:
        raise ValueError(f"The number of query heads must be a multiple of key/value heads, but got {n_heads} vs {n_kv}")
    whole = (batch, n_heads, n_target, n_source)
    bias, mask = (_of_rank_4(name, x, whole) for name, x in (("bias", bias), ("mask", mask)))
    if mask is not None and mask.dtype != np.bool_:
        raise ValueError(f"mask dtype should be bool, but got {mask.dtype}")
    for name, lengths in (("query_seq_lengths", query_seq_lengths), ("key_value_seq_lengths", key_value_seq_lengths)):
        if lengths is not None and jnp.asarray(lengths).dtype != np.int32:
            raise ValueError(f"{name} dtype should be int32, but got {jnp.asarray(lengths).dtype}")
    if implementation not in (None, "xla"):
        raise ValueError(f"Unsupported implementation option: {implementation}")
    if isinstance(local_window_size, int):
        local_window_size = (local_window_size, local_window_size)
    out = _attend(
        query,
        key,
        value,
        bias,
        mask,
        query_seq_lengths,
        key_value_seq_lengths,
        scale=1 / np.sqrt(n_features) if scale is None else float(scale),
        is_causal=bool(is_causal),
        window=local_window_size,
        residual=bool(return_residual),
    )
    if return_residual:
        return out[0].reshape(shape), out[1].reshape(shape[:-1])
    return out.reshape(shape)


def _of_rank_4(name, x, whole):
    """`x` with leading axes of size 1.

    Raises ValueError unless it broadcasts to the shape of the scores.
    """
    if x is None:
        return None
    x = jnp.asarray(x)
    shape = (1,) * (4 - x.ndim) + tuple(x.shape)
    if len(shape) != 4 or any(d not in (1, n) for d, n in zip(shape, whole, strict=True)):
        raise ValueError(f"{name} must broadcast to {list(whole)}, but got shape {x.shape}")
    return jnp.reshape(x, shape)


@jit(static_argnames=("scale", "is_causal", "window", "residual"))
def _attend(query, key, value, bias, mask, q_lengths, kv_lengths, *, scale, is_causal, window, residual):
    batch, n_target, n_heads, n_features = query.shape
    n_source, n_kv = key.shape[1], key.shape[2]
    grouped = query.reshape(batch, n_target, n_kv, n_heads // n_kv, n_features)
    scores = jnp.einsum("btkgh,bskh->bkgts", grouped, key, preferred_element_type=jnp.promote_types(query.dtype, np.float32))
    scores = scores.reshape(batch, n_heads, n_target, n_source) * scores.dtype.type(scale)
    if bias is not None:
        scores = (scores + bias).astype(scores.dtype)
    seen = _visible(mask, is_causal, window, q_lengths, kv_lengths, n_target, n_source)
    if seen is not None:
        scores = jnp.where(seen, scores, np.float32(-0.7 * np.finfo(np.float32).max))
    scores = jnp.real(scores).astype(np.float32)
    weights = softmax(scores, axis=-1).astype(key.dtype)
    grouped_weights = weights.reshape(batch, n_kv, n_heads // n_kv, n_target, n_source)
    out = jnp.einsum("bkgts,bskh->btkgh", grouped_weights, value).reshape(batch, n_target, n_heads, n_features)
    if q_lengths is not None:
        real = jnp.arange(n_target)[None, :, None, None] < q_lengths[:, None, None, None]
        out = jnp.where(real, out, jnp.zeros((), out.dtype))
    if residual:
        return out, jnp.swapaxes(logsumexp(scores, axis=-1), 1, 2).astype(query.dtype)
    return out


def _visible(mask, is_causal, window, q_lengths, kv_lengths, n_target, n_source):
    """The mask of the keys that each query attends to, broadcastable to (B, N, T, S); None if
    all.
    """
    parts = [] if mask is None else [mask]
    t, s = jnp.arange(n_target)[None, None, :, None], jnp.arange(n_source)[None, None, None]
    if is_causal:
        parts.append(t >= s)
    if window is not None:
        left, right = window
        parts.append((s >= t - left) & (s <= t + right))
    if q_lengths is not None:
        parts.append(t < q_lengths[:, None, None, None])
    if kv_lengths is not None:
        parts.append(s < kv_lengths[:, None, None, None])
    return functools.reduce(lambda a, b: a & b, parts) if parts else None
