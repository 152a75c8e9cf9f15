//! ferrax-transform: see ARCHITECTURE.md.
