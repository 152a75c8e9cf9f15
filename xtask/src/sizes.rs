//! `sizes`: the lines of each folder of the CPU backend, under ceilings that only go down.
//!
//! Invariant: a folder has no more lines than its ceiling in `xtask/sizes.txt`, nor many fewer: who deletes lowers the ceiling.
//!
//! ```text
//! nest                2,540 of 2,560
//! ```

use crate::files;
use crate::shell::{Res, fail, root};
use std::collections::BTreeMap;

/// The crate whose sizes are printed.
const CRATE: &str = "crates/ferrax-cpu/src/";
const CEILINGS: &str = "xtask/sizes.txt";
/// Lines below a ceiling from which it is to be lowered.
const SLACK: usize = 200;

pub fn run(_: &[String]) -> Res {
    let mut sizes: BTreeMap<String, usize> = BTreeMap::new();
    for f in files::tracked()?.iter().filter(|f| f.path.ends_with(".rs")) {
        let Some(path) = f.path.strip_prefix(CRATE) else { continue };
        // a file that a folder belongs to is the folder's
        let folder = path.split('/').next().unwrap_or(path).trim_end_matches(".rs");
        let is_folder = root().join(CRATE).join(folder).is_dir();
        let name = if is_folder { folder } else { "(files)" };
        *sizes.entry(name.to_string()).or_default() += f.text.lines().count();
    }
    let text = std::fs::read_to_string(root().join(CEILINGS)).map_err(|e| format!("{CEILINGS}: {e}"))?;
    let mut ceilings: BTreeMap<&str, usize> = BTreeMap::new();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        if let Some((name, most)) = line.split_once(' ') {
            ceilings.insert(name, most.trim().parse().map_err(|e| format!("{CEILINGS}: {line}: {e}"))?);
        }
    }
    let mut wrong = vec![];
    for (name, lines) in &sizes {
        let most = ceilings.get(name.as_str()).copied().unwrap_or(0);
        println!("{name:<20} {lines:>6} of {most}");
        if *lines > most {
            wrong.push(format!("{name} has {lines} lines, its ceiling is {most}"));
        } else if lines + SLACK < most {
            wrong.push(format!("{name} has {lines} lines: lower its ceiling of {most}"));
        }
    }
    println!("{:<20} {:>6}", "all", sizes.values().sum::<usize>());
    if wrong.is_empty() { Ok(()) } else { fail(format!("{CEILINGS}: {}", wrong.join("; "))) }
}
