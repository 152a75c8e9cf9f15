"""Sorting, searching, sets."""
