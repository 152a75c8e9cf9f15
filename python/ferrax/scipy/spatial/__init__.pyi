"""Geometry: `transform`."""

from . import transform as transform
