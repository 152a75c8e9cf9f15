//! ferrax-wgpu: see ARCHITECTURE.md.
