//! The repository as the rules read it: its files, and which crate may use which.
//!
//! Invariant: what git tracks or would track is read once, so that all rules see one state.

use std::fs;

use crate::shell::{Cmd, Res, root};

/// Which crate may use which, at run time. Any crate may use `ferrax-testkit` in its tests.
pub const ARROWS: &[(&str, &[&str])] = &[
    ("ferrax-derive", &[]),
    ("ferrax-prng", &[]),
    ("ferrax-runtime", &[]),
    ("ferrax-peers", &[]),
    ("ferrax-kernel", &["ferrax-prng", "ferrax-runtime"]),
    ("ferrax-ir", &["ferrax-prng", "ferrax-kernel"]),
    ("ferrax-transform", &["ferrax-kernel", "ferrax-ir"]),
    ("ferrax-host", &["ferrax-kernel"]),
    ("ferrax-linalg", &["ferrax-kernel", "ferrax-host"]),
    ("ferrax-cpu", &["ferrax-kernel", "ferrax-host", "ferrax-linalg"]),
    ("ferrax-wgpu", &["ferrax-kernel"]),
    (
        "ferrax",
        &[
            "ferrax-derive",
            "ferrax-prng",
            "ferrax-runtime",
            "ferrax-peers",
            "ferrax-kernel",
            "ferrax-ir",
            "ferrax-transform",
            "ferrax-cpu",
            "ferrax-wgpu",
        ],
    ),
    ("ferrax-python", &["ferrax-kernel", "ferrax-ir", "ferrax-transform", "ferrax"]),
    ("ferrax-testkit", &["ferrax-prng", "ferrax-kernel", "ferrax-ir", "ferrax-transform", "ferrax-cpu", "ferrax"]),
    ("xtask", &[]),
];

pub struct File {
    pub path: String,
    pub text: String,
}

pub fn tracked() -> Res<Vec<File>> {
    let list = Cmd::new("git").args(&["ls-files", "--cached", "--others", "--exclude-standard"]).read()?;
    let read = |path: &str| {
        let text = fs::read_to_string(root().join(path)).ok()?;
        Some(File { path: path.into(), text })
    };
    Ok(list.lines().filter_map(read).collect())
}
