//! `sizes`: the lines of each folder of the CPU backend, and of the crates below it, under ceilings that only go down.
//!
//! Invariant: a folder has no more lines than its ceiling in `xtask/sizes.txt`, nor many fewer: who deletes lowers the ceiling.
//!
//! ```text
//! nest                2,540 of 2,560
//! ```

use crate::files;
use crate::shell::{Res, fail, root};
use std::collections::BTreeMap;

/// The crate whose folders are counted one by one, and those that are counted whole.
const CRATE: &str = "crates/ferrax-cpu/src/";
const WHOLE: [&str; 2] = ["ferrax-host", "ferrax-linalg"];
const CEILINGS: &str = "xtask/sizes.txt";
/// Lines below a ceiling from which it is to be lowered.
const SLACK: usize = 200;

pub fn run(_: &[String]) -> Res {
    let mut sizes: BTreeMap<String, usize> = BTreeMap::new();
    for f in files::tracked()?.iter().filter(|f| f.path.ends_with(".rs")) {
        let whole = WHOLE.iter().find(|w| f.path.starts_with(&format!("crates/{w}/src/")));
        let name = match (whole, f.path.strip_prefix(CRATE)) {
            (Some(name), _) => name,
            (_, Some(path)) => {
                // a file that a folder belongs to is the folder's
                let folder = path.split('/').next().unwrap_or(path).trim_end_matches(".rs");
                if root().join(CRATE).join(folder).is_dir() { folder } else { "(files)" }
            }
            _ => continue,
        };
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
