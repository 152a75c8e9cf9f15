//! ferrax-ir: see ARCHITECTURE.md.
