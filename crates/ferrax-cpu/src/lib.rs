//! ferrax-cpu: see ARCHITECTURE.md.
