"""Modules of `jax.experimental` that exist under `import jax` only."""
