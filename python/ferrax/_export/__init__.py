"""Exported programs: symbolic sizes, shardings and trees of their files."""
