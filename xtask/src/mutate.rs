//! `cargo xtask mutate`: break the rules of the primitives one by one; a law must fail for each.
//!
//! A mutant is one edit of one line inside a rule's body in `crates/ferrax-ir/src/ops/`. The work happens on a copy
//! of the sources under `target/mutate`, never on the work tree. A mutant that the laws do not notice is printed as
//! `ALIVE`; one that does not compile counts for nothing.
//!
//! ```text
//! cargo xtask mutate --only reduce.rs --list
//! cargo xtask mutate --shard 3/40          # every fortieth mutant
//! ```

use std::fs;
use std::path::Path;

use crate::shell::{Cmd, Res, fail, quiet, root};

const RULES: &[&str] = &["infer", "jvp", "transpose", "batch", "lower", "split", "dce"];

/// Signs, axes, comparisons, ends: `(from, to)`, tried wherever `from` stands in a rule's body.
const EDITS: &[(&str, &str)] = &[
    (" + 1", " - 1"),
    (" - 1", " + 1"),
    (" + ", " - "),
    (" - ", " + "),
    ("cx.neg(", "cx.same("),
    ("cx.mul(", "cx.add("),
    ("cx.add(", "cx.sub("),
    ("cx.sub(", "cx.add("),
    ("Some(0)", "Some(1)"),
    ("!self.", "self."),
    (".rev()", ""),
    (" == ", " != "),
    (" < ", " <= "),
    (" >= ", " > "),
    ("[0]", "[1]"),
    ("[1]", "[0]"),
    ("true", "false"),
    ("false", "true"),
];

struct Mutant {
    file: String,
    line: usize,
    rule: &'static str,
    before: String,
    after: String,
}

pub fn run(args: &[String]) -> Res {
    let value = |flag: &str| args.iter().position(|a| a == flag).and_then(|at| args.get(at + 1)).map(String::as_str);
    let only = value("--only").unwrap_or("");
    let (shard, shards) = match value("--shard") {
        None => (0, 1),
        Some(text) => match text.split_once('/').map(|(i, n)| (i.parse::<usize>(), n.parse::<usize>())) {
            Some((Ok(i), Ok(n))) if i < n => (i, n),
            _ => return fail("--shard wants I/N, with I from 0 to N-1"),
        },
    };
    let mut mutants = Vec::new();
    for path in rust_files("crates/ferrax-ir/src/ops")? {
        let text = fs::read_to_string(root().join(&path)).map_err(|e| e.to_string())?;
        mutants.extend(find(&path, &text));
    }
    mutants.retain(|m| m.file.contains(only) || m.rule == only);
    let mine: Vec<Mutant> =
        mutants.into_iter().enumerate().filter(|(n, _)| n % shards == shard).map(|(_, m)| m).collect();
    if args.iter().any(|a| a == "--list") {
        for m in &mine {
            println!("{}:{} {}\n  - {}\n  + {}", m.file, m.line, m.rule, m.before.trim(), m.after.trim());
        }
        println!("{} mutants", mine.len());
        return Ok(());
    }
    let copy = copy_sources()?;
    if !laws_hold(&copy) {
        return fail("the laws fail before any rule is broken");
    }
    let (mut caught, mut refused, mut alive) = (0, 0, 0);
    for m in &mine {
        let path = copy.join(&m.file);
        let text = fs::read_to_string(&path).map_err(|e| e.to_string())?;
        let broken: Vec<&str> =
            text.lines().enumerate().map(|(n, l)| if n + 1 == m.line { m.after.as_str() } else { l }).collect();
        fs::write(&path, broken.join("\n") + "\n").map_err(|e| e.to_string())?;
        let place = format!("{}:{} {}: {}", m.file, m.line, m.rule, m.after.trim());
        if !quiet(cargo(&copy, &["check", "--profile", "ci", "--package", "ferrax-ir"])) {
            refused += 1;
        } else if laws_hold(&copy) {
            alive += 1;
            println!("ALIVE   {place}");
        } else {
            caught += 1;
            println!("caught  {place}");
        }
        fs::write(&path, text).map_err(|e| e.to_string())?;
    }
    println!("{caught} caught, {alive} alive, {refused} did not compile");
    if alive == 0 { Ok(()) } else { fail("a broken rule passed the laws") }
}

fn cargo(copy: &Path, args: &[&str]) -> Cmd {
    let manifest = copy.join("Cargo.toml");
    Cmd::new("cargo")
        .args(args)
        .args(&["--manifest-path", manifest.to_str().expect("UTF-8 path"), "--target-dir"])
        .args(&[root().join("target/mutate-build").to_str().expect("UTF-8 path")])
}

/// The laws are the tests of the testkit, which runs every primitive on the real evaluator.
fn laws_hold(copy: &Path) -> bool {
    quiet(cargo(copy, &["test", "--profile", "ci", "--quiet", "--package", "ferrax-testkit"]))
}

fn copy_sources() -> Res<std::path::PathBuf> {
    let copy = root().join("target/mutate");
    let _ = fs::remove_dir_all(&copy);
    let list = Cmd::new("git").args(&["ls-files", "--cached", "--others", "--exclude-standard"]).read()?;
    for path in list.lines() {
        let (from, to) = (root().join(path), copy.join(path));
        if from.is_file() {
            fs::create_dir_all(to.parent().expect("a file has a folder"))
                .and_then(|()| fs::copy(from, to))
                .map_err(|e| e.to_string())?;
        }
    }
    Ok(copy)
}

fn rust_files(folder: &str) -> Res<Vec<String>> {
    let mut out = Vec::new();
    for entry in fs::read_dir(root().join(folder)).map_err(|e| format!("{folder}: {e}"))?.flatten() {
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            out.extend(rust_files(&path)?);
        } else if path.ends_with(".rs") {
            out.push(path);
        }
    }
    out.sort();
    Ok(out)
}

/// Every edit of every line that lies in the body of a rule.
fn find(file: &str, text: &str) -> Vec<Mutant> {
    let mut out = Vec::new();
    let mut rule: Option<(&'static str, usize)> = None;
    for (n, line) in text.lines().enumerate() {
        if line.contains("#[cfg(test)]") {
            break;
        }
        let indent = line.len() - line.trim_start().len();
        if let Some(name) = RULES.iter().find(|r| line.trim_start().starts_with(&format!("fn {r}("))) {
            rule = Some((name, indent));
            continue;
        }
        let Some((name, outer)) = rule else { continue };
        if !line.trim().is_empty() && indent <= outer && line.trim_start().starts_with('}') {
            rule = None;
            continue;
        }
        let code = line.split("//").next().unwrap_or("");
        if code.contains("assert") || code.contains("Error") || code.contains("format!") {
            continue;
        }
        for (from, to) in EDITS {
            for (at, _) in code.match_indices(from) {
                let after = format!("{}{}{}", &line[..at], to, &line[at + from.len()..]);
                out.push(Mutant { file: file.into(), line: n + 1, rule: name, before: line.into(), after });
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_of_rules_are_edited() {
        let text = "fn name() {\n    a + b\n}\nimpl Rules for X {\n    fn jvp(&self) {\n        a + b // c + d\n    }\n    fn other() {\n        a + b\n    }\n}\n";
        let found = find("x.rs", text);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].line, found[0].rule, found[0].after.trim()), (6, "jvp", "a - b // c + d"));
    }
}
