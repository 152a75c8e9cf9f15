//! ferrax-python: see ARCHITECTURE.md.
