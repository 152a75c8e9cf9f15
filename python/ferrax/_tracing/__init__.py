"""Traces of functions into programs: `jit`, `make_jaxpr`, leaks, pickles of transformed
functions.
"""
