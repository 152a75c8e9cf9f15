"""Pytrees: nodes, prefixes, and functions over flat lists of leaves."""
