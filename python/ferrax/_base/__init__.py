"""The lowest layer: settings, dtypes, shapes, tracebacks, and what else needs only the
extension.
"""
