"""Functions of functions: ufuncs, `vectorize`, `apply_along_axis`."""
