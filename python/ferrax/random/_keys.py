"""Keys of the three generators: typed ones of dtype `key<fry>`, `key<rbg>` or `key<urbg>`, and raw
ones, arrays `u32[..., 2]` (or 4) of words.

Raw keys belong to the default generator.
Invariant: inside the package keys are typed; `typed` wraps on the way in and `like` unwraps on the
way out, so a raw key gives raw keys.
"""

from __future__ import annotations

import operator
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base import config as _config

if TYPE_CHECKING:
    from collections.abc import Hashable

    from .._core import Array, KeyTy
    from ..typing import ArrayLike, DTypeLike

# How many words a key of each generator has.
_WORDS = {"threefry2x32": 2, "rbg": 4, "unsafe_rbg": 4}
_LEGACY = (
    "Legacy uint32 key array passed as key to jax.random function. Please create keys using jax.random.key(). If use of a raw key array"
    ' was intended, set jax_legacy_prng_key="allow".'
)


def is_typed(x):
    """Whether `x` is an array of typed keys."""
    return isinstance(x, _core.Array) and not isinstance(x.dtype, np.dtype)


def _implementation(spec):
    """The generator's name, of its name or of its keys' dtype; the default one's of None."""
    if spec is None:
        return _config.config.jax_default_prng_impl
    if isinstance(spec, _core.KeyTy):
        return spec.implementation
    spec = getattr(spec, "name", spec)  # of `extend.random`
    if not isinstance(spec, str):
        raise TypeError(f"unrecognized type {type(spec)} for specifying PRNG implementation.")
    if spec not in _WORDS:
        names = ", ".join(f'"{name}"' for name in _WORDS)
        raise ValueError(f'unrecognized PRNG implementation "{spec}". Did you mean one of: {names}?')
    return spec


def _check_data(bits, impl):
    if not all(hasattr(bits, name) for name in ("ndim", "shape", "dtype")):
        raise TypeError(f"JAX encountered invalid PRNG key data: expected key_data to have ndim, shape, and dtype attributes. Got {bits}")
    words = _WORDS[impl]
    if bits.ndim < 1 or bits.shape[-1] != words:
        raise TypeError(f"JAX encountered invalid PRNG key data: expected key_data.shape to end with ({words},); got shape={tuple(bits.shape)} for impl={impl}")
    if bits.dtype != np.uint32:
        raise TypeError(f"JAX encountered invalid PRNG key data: expected key_data.dtype = uint32; got dtype={bits.dtype}")


def typed(key):
    """The key as typed keys, and whether it was raw.

    Raises:
        TypeError: `key` is not an array of keys.
        ValueError: it is raw, and `jax_legacy_prng_key` is "error".
    """
    if is_typed(key):
        return key, False
    if isinstance(key, (list, tuple)):
        raise TypeError(f"unexpected PRNG key type {type(key)}")
    impl = _implementation(None)
    _check_data(key, impl)
    legacy = _config.config.jax_legacy_prng_key
    if legacy == "error":
        raise ValueError(_LEGACY)
    if legacy == "warn":
        warnings.warn(_LEGACY, stacklevel=3)
    return _core.bind("random_wrap", key, impl=impl), True


def single(name, key):
    """`typed`, for functions of one key.

    Raises:
        ValueError: there is a batch of keys.
    """
    keys, raw = typed(key)
    if keys.ndim:
        raise ValueError(f"{name} accepts a single key, but was given a key array of shape {tuple(key.shape)} != (). Use jax.vmap for batching.")
    return keys, raw


def like(keys, raw):
    """Typed keys, or their words if the caller's keys were raw."""
    return _core.bind("random_unwrap", keys) if raw else keys


def _seeded(name, seed, impl):
    impl = _implementation(impl)
    if is_typed(seed):
        raise TypeError(f"{name} accepts a scalar seed, but was given a PRNG key.")
    if isinstance(seed, (bool, int)):
        seed = int(seed) + _config.config.jax_random_seed_offset
        if not -(2**63) <= seed < 2**63:
            raise OverflowError("Python int too large to convert to C long")
        if not _config.config.jax_enable_x64:
            # Without 64-bit types the upper word of the seed is lost, as in JAX.
            seed = int(np.int64(seed).astype(np.int32))
        seed = np.asarray(seed, np.int64 if _config.config.jax_enable_x64 else np.int32)
    aval = _core.get_aval(seed)
    if aval.shape != ():
        raise TypeError(f"{name} accepts a scalar seed, but was given an array of shape {tuple(aval.shape)} != (). Use jax.vmap for batching")
    if aval.dtype.kind not in "iub":
        raise TypeError(f"PRNG key seed must be an integer; got {seed}")
    if aval.dtype.kind == "b":
        seed = _core.bind("convert_element_type", seed, new_dtype=np.dtype(np.int32), weak_type=False, sharding=None)
    return _core.bind("random_seed", seed, impl=impl)


def PRNGKey(seed: ArrayLike, *, impl: str | None = None) -> Array:
    """A raw key, `uint32[2]` (of "rbg" and "unsafe_rbg" `uint32[4]`), from an integer seed.

    Args:
        seed: a Python int or an integer scalar.
        impl: the generator, "threefry2x32", "rbg" or "unsafe_rbg", or the dtype of its keys; by
          default that of `jax_default_prng_impl`.

    Returns:
        Raw key, uint32 of shape (2,) or (4,).

    Raises:
        TypeError: the seed is not an integer scalar.
        OverflowError: it does not fit 64 bits.

    >>> random.PRNGKey(3)
    Array([0, 3], dtype=uint32)
    """
    keys = _seeded("PRNGKey", seed, impl)
    return keys if _config.config.jax_enable_custom_prng else like(keys, True)


def key(seed: ArrayLike, *, impl: str | None = None, dtype: DTypeLike | None = None) -> Array:
    """A typed key, from an integer seed.

    Args:
        seed: a Python int or an integer scalar.
        impl: the generator, "threefry2x32", "rbg" or "unsafe_rbg"; None: that of
          `jax_default_prng_impl`.
        dtype: the dtype of the generator's keys, in place of `impl`.

    Returns:
        Key of shape () and dtype `key<fry>`, `key<rbg>` or `key<urbg>`.

    Raises:
        TypeError: the seed is not an integer scalar, or both impl and dtype are given.
        OverflowError: the seed does not fit 64 bits.

    >>> random.key_data(random.key(3))
    Array([0, 3], dtype=uint32)
    """
    if dtype is not None and impl is not None:
        raise TypeError("key() accepts either impl or dtype, not both.")
    return _seeded("key", seed, impl if dtype is None else dtype)


def split(key: ArrayLike, num: int | tuple[int, ...] = 2) -> Array:
    """New independent keys.

    Args:
        key: one key.
        num: how many, or the shape of the array of keys.

    Returns:
        keys of shape (num,), or of shape `num`; raw keys have a last axis of size 2.

    >>> random.key_data(random.split(random.key(0)))
    Array([[1797259609, 2579123966],
           [ 928981903, 3453687069]], dtype=uint32)
    """
    keys, raw = single("split", key)
    shape = tuple(map(operator.index, num)) if isinstance(num, (tuple, list, range)) else (operator.index(num),)
    if any(n < 0 for n in shape):
        raise ValueError(f"split cannot make a negative number of keys: num={num}")
    return like(_core.bind("random_split", keys, shape=shape), raw)


def fold_in(key: ArrayLike, data: ArrayLike) -> Array:
    """A new key made from a key and an integer.

    Args:
        key: one key.
        data: an integer scalar, below 2**32.

    Returns:
        Key of the kind and dtype of key.

    Raises:
        TypeError: `data` is not a scalar.
        OverflowError: it is a Python int outside 32 bits.

    >>> random.key_data(random.fold_in(random.key(0), 1))
    Array([ 928981903, 3453687069], dtype=uint32)
    """
    keys, raw = single("fold_in", key)
    aval = None
    if isinstance(data, int):
        if not 0 <= data < 2**32:
            raise OverflowError(f"Python integer {data} out of bounds for uint32")
        data = np.uint32(data)
    else:
        aval = _core.get_aval(data)
        if aval.shape != ():
            raise TypeError(f"fold_in accepts a scalar, but was given an array ofshape {tuple(aval.shape)} != (). Use jax.vmap for batching.")
        if aval.dtype != np.uint32:
            data = _core.bind("convert_element_type", data, new_dtype=np.dtype(np.uint32), weak_type=False, sharding=None)
    return like(_core.bind("random_fold_in", keys, data), raw)


def key_data(keys: ArrayLike) -> Array:
    """The words of keys: `uint32[..., 2]`, or 4.

    Args:
        keys: typed or raw keys.

    Returns:
        Array of uint32, keys.shape + (2,), or 4 of "rbg" and "unsafe_rbg".

    >>> random.key_data(random.key(0))
    Array([0, 0], dtype=uint32)
    """
    return like(typed(keys)[0], True)


def wrap_key_data(key_bits_array: Array, *, impl: str | None = None, dtype: DTypeLike | None = None) -> Array:
    """Typed keys from their words.

    Args:
        key_bits_array: uint32 of shape (..., 2); of "rbg" and "unsafe_rbg" (..., 4).
        impl: the generator; None: that of `jax_default_prng_impl`.
        dtype: the dtype of the generator's keys, in place of `impl`.

    Returns:
        Keys of shape (...).

    Raises:
        TypeError: the last axis or the dtype is not that of the generator's words, or both `impl`
          and `dtype` are given.

    >>> random.wrap_key_data(jnp.array([0, 7], "uint32")).shape
    ()
    """
    if dtype is not None and impl is not None:
        raise TypeError("wrap_key_data() accepts either impl or dtype, not both.")
    impl = _implementation(impl if dtype is None else dtype)
    _check_data(key_bits_array, impl)
    return _core.bind("random_wrap", key_bits_array, impl=impl)


def _unpickled(words, impl):
    return wrap_key_data(words, impl=impl)


def key_impl(keys: ArrayLike) -> Hashable:
    """The name of the generator that keys belong to.

    Args:
        keys: typed or raw keys.

    Returns:
        The generator's name, or an object that represents it.

    >>> str(random.key_impl(random.key(0)))
    'threefry2x32'
    """
    return typed(keys)[0].dtype.implementation


def key_dtype(impl_spec: str | None = None) -> KeyTy:
    """The dtype of typed keys of a generator.

    Args:
        impl_spec: the generator; None: that of `jax_default_prng_impl`.

    Returns:
        dtype.

    >>> random.key_dtype() == random.key(0).dtype
    True
    """
    return key(0, impl=impl_spec).dtype


def clone(key: Any) -> Array:
    """The same key, as a value that the check for key reuse does not connect with the first.

    Args:
        key: typed or raw keys.

    Returns:
        Keys like key.

    >>> random.clone(random.key(0)).shape
    ()
    """
    keys, raw = typed(key)
    return like(_core.bind("random_clone", keys), raw)
