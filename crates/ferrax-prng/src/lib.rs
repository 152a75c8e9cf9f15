//! ferrax-prng: see ARCHITECTURE.md.
