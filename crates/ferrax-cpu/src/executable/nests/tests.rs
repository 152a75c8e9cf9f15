//! Passes over nests, as texts: `tests/filetests/nests/*.txt` has the nest before and after each pass.
//!
//! ```text
//!     == fuse: a loop that reads what another writes        the pass, and the point of the case
//!     arrays ..                                             the nest before
//!     --
//!     arrays ..                                             after, or `refused: ..`
//! ```
//! `FERRAX_BLESS=1` writes what the passes make of it.
use crate::lowering::functions::NAMES;
use crate::nest::{drop_dead_stores, fuse, inline_functions, simplify, text, vectorize, verify};
use crate::tier::Tier;
use crate::tuning::{KernelTuning, Target, Tuning};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests/nests")
}
fn target(tier: Tier) -> Target {
    let kernels = KernelTuning { min_long_vector_bytes: 64, ..KernelTuning::DEFAULT };
    Target { tier, tuning: Tuning { kernels, ..Tuning::DEFAULT } }
}
/// A nest after a pass.
fn after(pass: &str, nest: &str) -> Result<String, String> {
    let mut nest = text::parse::parse(nest, &NAMES)?;
    let refused = |why: &str| Err(format!("refused: {why}"));
    match pass {
        "verify" => (),
        "fuse" => {
            if !fuse(&mut nest, 8) {
                return refused("nothing is joined");
            }
        }
        "dead stores" => drop_dead_stores(&mut nest, &|array| array == 0),
        "simplify" => nest = simplify(&nest),
        "inline" => nest = inline_functions(nest),
        "vectorize" | "vectorize long" => {
            let tier = if pass == "vectorize" { Tier::Avx2 } else { Tier::Avx512 };
            if vectorize(&mut nest, &target(tier)).is_none() {
                return refused("no vectors");
            }
        }
        other => return refused(&format!("no pass is called {other}")),
    }
    verify(&nest).map_err(|e| format!("refused: {e}"))?;
    Ok(text::print(&nest, &NAMES))
}

#[test]
fn passes_make_what_is_written() {
    let bless = std::env::var_os("FERRAX_BLESS").is_some();
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder()).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    let mut wrong = vec![];
    for path in files {
        let all = std::fs::read_to_string(&path).unwrap();
        let (head, cases) = all.split_once("\n== ").unwrap_or((&all, ""));
        let mut blessed = head.to_string();
        for case in cases.split("\n== ").filter(|c| !c.is_empty()) {
            let case = case.trim_end().to_string() + "\n";
            let (title, rest) = case.split_once('\n').unwrap();
            let (before, wanted) = rest.split_once("--\n").unwrap_or((rest, ""));
            let pass = title.split_once(": ").map_or(title, |t| t.0);
            let made = after(pass, before).unwrap_or_else(|e| e + "\n");
            if made.trim_end() != wanted.trim_end() {
                wrong.push(format!("{}: {title}\n{made}", path.display()));
            }
            blessed += &format!("\n== {title}\n{before}--\n{made}");
        }
        if bless {
            std::fs::write(&path, blessed.trim_end().to_string() + "\n").unwrap();
        }
    }
    assert!(bless || wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The text of each nest of the files, before and after its pass, is a nest with that text.
#[test]
fn texts_are_nests() {
    for f in std::fs::read_dir(folder()).unwrap() {
        let all = std::fs::read_to_string(f.unwrap().path()).unwrap();
        for case in all.split("\n== ").skip(1) {
            let (_, rest) = case.split_once('\n').unwrap();
            for part in rest.split("--\n").filter(|p| !p.starts_with("refused") && !p.is_empty()) {
                let parse = |s: &str| text::parse::parse(s, &NAMES).unwrap_or_else(|e| panic!("{e}:\n{s}"));
                let print = |s: &str| text::print(&parse(s), &NAMES);
                let once = print(part);
                assert_eq!(print(&once), once);
            }
        }
    }
}
