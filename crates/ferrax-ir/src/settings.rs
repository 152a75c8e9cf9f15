//! Settings of the host that change how types refer to meshes.
//!
//! INVARIANT: this crate holds no configuration; it asks the host each time, whose answer may differ by thread.
//!
//! ```
//! assert!(!ferrax_ir::settings::without_ones()); // without a host all have their defaults
//! ```
use std::sync::OnceLock;

/// The answers of the host.
pub struct HostSettings {
    /// Whether axes of one position are left out of types.
    pub without_ones: fn() -> bool,
    /// Whether values that vary over fewer axes than others are refused beside them, and not cast.
    pub casts_by_hand: fn() -> bool,
}
static HOST_SETTINGS: OnceLock<HostSettings> = OnceLock::new();

/// Installs the host's settings. Only the first call has an effect.
pub fn install(host: HostSettings) {
    let _ = HOST_SETTINGS.set(host);
}
pub fn without_ones() -> bool {
    HOST_SETTINGS.get().is_some_and(|h| (h.without_ones)())
}
pub fn casts_by_hand() -> bool {
    HOST_SETTINGS.get().is_some_and(|h| (h.casts_by_hand)())
}
