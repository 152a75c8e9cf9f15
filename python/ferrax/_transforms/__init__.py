"""Transforms of functions: `grad`, `vjp`, `vmap`, `checkpoint`, custom rules."""
