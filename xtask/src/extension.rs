//! The extension module `ferrax._core`, built by cargo and copied beside the Python sources.
//!
//! Invariant: the file in `python/ferrax` is the one of the last build. It is replaced by renaming, because a
//! running process may have the old one mapped.

use std::fs;

use crate::python::Venv;
use crate::shell::{Res, root};

/// Builds `selection` (cargo's arguments, which must cover `ferrax-python`) and installs the module.
pub fn build(venv: &Venv, profile: &str, selection: &[&str]) -> Res {
    venv.cargo().args(&["build", "--profile", profile]).args(selection).go()?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    let (built, installed) = if cfg!(windows) {
        ("ferrax_core.dll", "_core.pyd")
    } else if cfg!(target_os = "macos") {
        ("libferrax_core.dylib", "_core.so")
    } else {
        ("libferrax_core.so", "_core.so")
    };
    let built = target.join(profile).join(built);
    let package = root().join("python/ferrax");
    let fresh = package.join(format!("{installed}.new"));
    fs::create_dir_all(&package)
        .and_then(|()| fs::copy(&built, &fresh))
        .and_then(|_| fs::rename(&fresh, package.join(installed)))
        .map_err(|e| format!("{} -> {}: {e}", built.display(), package.join(installed).display()))
}
