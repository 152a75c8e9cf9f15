"""Indexing: `x[i]`, `x.at[i]`, functions that take, choose and select."""
