"""Random keys that are consumed twice, found where `jax_debug_key_reuse` is on:
`jax.config.update("jax_debug_key_reuse", True)`, or in a block.

Drawing from a key consumes it, and so does splitting it; of an array of keys a slice consumes its
part. `fold_in`, `key_data` and comparing consume nothing, and `split`, `fold_in` and `clone` return
new keys. The check covers whole programs: loops in which every iteration would consume the same
key, branches, and calls of jitted functions. Raw keys, as `PRNGKey` makes them, are not checked.

    >>> with jax.debug_key_reuse(True):
    ...     key = jax.random.key(0)
    ...     a = jax.random.normal(key)
    ...     b = jax.random.normal(key)
    Traceback (most recent call last):
    ferrax.errors.KeyReuseError: Previously-consumed key passed to jit-compiled function at index 0
"""

__all__ = []
