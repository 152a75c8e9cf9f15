//! ferrax-kernel: see ARCHITECTURE.md.
