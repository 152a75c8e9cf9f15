"""Random keys that are consumed twice, found where `jax_debug_key_reuse` is on: `jax.config.update("jax_debug_key_reuse", True)`, or in a block.

Drawing from a key consumes it, and so does splitting it; of an array of keys a slice consumes its part. `fold_in`, `key_data` and comparing
consume nothing, and what `split`, `fold_in` and `clone` give is new. Programs are looked at as a whole: loops whose every turn would consume the
same key, branches, what jitted functions hand on. Keys that are words, as `PRNGKey` gives them, are not followed.

    >>> with jax.debug_key_reuse(True):
    ...     key = jax.random.key(0)
    ...     a = jax.random.normal(key)
    ...     b = jax.random.normal(key)
    Traceback (most recent call last):
    ferrax.errors.KeyReuseError: Previously-consumed key passed to jit-compiled function at index 0
"""

__all__ = []
