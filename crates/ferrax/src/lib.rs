//! ferrax: see ARCHITECTURE.md.
