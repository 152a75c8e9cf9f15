"""Integrals of samples."""

from ferrax.numpy import trapezoid as trapezoid

__all__ = ["trapezoid"]
