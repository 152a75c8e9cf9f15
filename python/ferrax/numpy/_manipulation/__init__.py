"""Manipulation of shapes: reshaping, joining, splitting, tiling, padding."""
