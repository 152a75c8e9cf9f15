"""Mutable references: their operations, calls, and rules."""
