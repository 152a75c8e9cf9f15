//! ferrax-testkit: see ARCHITECTURE.md.
