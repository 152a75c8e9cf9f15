"""Clustering: `vq`."""

from . import vq as vq
