"""Differences, polynomials, windows."""
