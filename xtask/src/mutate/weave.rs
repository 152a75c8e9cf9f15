//! All mutants in one build: each rule's body becomes a `match` on the number of the mutant, with one arm for each edit of the body.
//!
//! ```text
//! fn jvp(&self) -> R {        fn jvp(&self) -> R {
//!     a + b                       match crate::mutant() {
//! }                                   17 => { a - b }
//!                                     _ => { a + b }
//!                                 }
//!                             }
//! ```
//!
//! INVARIANT: no mutant, or one that was dropped because it does not compile, is the source as it was.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::Path;

use crate::shell::{Res, fail, root};

const RULES: &[&str] = &["infer", "jvp", "transpose", "batch", "lower", "split", "dce"];

/// Signs, axes, comparisons, ends: `(from, to)`, tried wherever `from` stands in a rule's body.
const EDITS: &[(&str, &str)] = &[
    (" + 1", " - 1"),
    (" - 1", " + 1"),
    (" + ", " - "),
    (" - ", " + "),
    ("cx.neg(", "crate::same("),
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

pub struct Mutant {
    pub file: String,
    /// From 1.
    pub line: usize,
    pub rule: &'static str,
    pub before: String,
    pub after: String,
    /// The lines of the rule's body, from 0.
    body: Range<usize>,
}
impl Mutant {
    pub fn place(&self) -> String {
        format!("{}:{} {}: {}", self.file, self.line, self.rule, self.after.trim())
    }
    /// Named by its file, its file and line, or its rule.
    pub fn is(&self, name: &str) -> bool {
        let at = format!("{}:{}", self.file, self.line);
        self.file.contains(name) || at.ends_with(&format!("/{name}")) || self.rule == name
    }
}

/// Every edit of every line that lies in the body of a rule.
pub fn find(file: &str, text: &str) -> Vec<Mutant> {
    let lines: Vec<&str> = text.lines().take_while(|l| !l.contains("#[cfg(test)]")).collect();
    let indent = |l: &str| l.len() - l.trim_start().len();
    let mut out = Vec::new();
    for (n, line) in lines.iter().enumerate() {
        let Some(rule) = RULES.iter().find(|r| line.trim_start().starts_with(&format!("fn {r}("))) else { continue };
        // the signature may take several lines; a body ends where a brace stands below the `fn`
        let Some(start) = (n..lines.len()).find(|m| lines[*m].ends_with(['{', ';', '}'])).map(|m| m + 1) else {
            continue;
        };
        let last = |m: &usize| {
            lines[*m].starts_with(&" ".repeat(indent(line)))
                && lines[*m].trim() == "}"
                && indent(lines[*m]) == indent(line)
        };
        if !lines[start - 1].ends_with('{') {
            continue;
        }
        let Some(end) = (start..lines.len()).find(last) else { continue };
        for at in start..end {
            for after in edits(lines[at]) {
                let (file, before) = (file.into(), lines[at].into());
                out.push(Mutant { file, line: at + 1, rule, before, after, body: start..end });
            }
        }
    }
    out
}

fn edits(line: &str) -> BTreeSet<String> {
    let code = line.split("//").next().unwrap_or("");
    if ["assert", "Error", "format!"].iter().any(|w| code.contains(w)) {
        return BTreeSet::new();
    }
    let all = EDITS.iter().flat_map(|(from, to)| code.match_indices(from).map(move |(at, _)| (at, from.len(), to)));
    // words of an error are no rule
    let all = all.filter(|(at, ..)| line[..*at].matches('"').count().is_multiple_of(2));
    all.map(|(at, len, to)| format!("{}{}{}", &line[..at], to, &line[at + len..])).collect()
}

/// Writes the chosen mutants into the copy and drops those that do not compile; what is left.
pub fn weave(copy: &Path, all: &[Mutant], mut chosen: BTreeSet<usize>) -> Res<Vec<usize>> {
    let lib = "crates/ferrax-ir/src/lib.rs";
    let text = fs::read_to_string(root().join(lib)).map_err(|e| e.to_string())?;
    write(&copy.join(lib), &(text + SWITCH))?;
    let files: BTreeSet<&str> = all.iter().map(|m| m.file.as_str()).collect();
    loop {
        let mut arms = Vec::new();
        for file in &files {
            let text = fs::read_to_string(root().join(file)).map_err(|e| e.to_string())?;
            let mine: Vec<(usize, &Mutant)> =
                chosen.iter().map(|n| (*n, &all[*n])).filter(|(_, m)| m.file == *file).collect();
            let (woven, places) = one_file(&text, &mine);
            write(&copy.join(file), &woven)?;
            arms.extend(places.into_iter().map(|(n, lines)| (*file, n, lines)));
        }
        let args = ["check", "--message-format", "short", "--package", "ferrax-ir"];
        let out = super::cargo(copy, &args).output().map_err(|e| format!("cargo check: {e}"))?;
        if out.status.success() {
            return Ok(chosen.into_iter().collect());
        }
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        let errors = text.lines().filter_map(place);
        let wrong = |(file, line): (&str, usize)| {
            arms.iter().find(|(f, _, lines)| *f == file && lines.contains(&line)).map(|(_, n, _)| *n)
        };
        let before = chosen.len();
        errors.filter_map(wrong).for_each(|n| {
            chosen.remove(&n);
        });
        if chosen.len() == before {
            return fail(format!("the mutants do not compile, whoever is to blame\n{text}"));
        }
    }
}

const SWITCH: &str = "
/// The number of the mutant to be.
pub fn mutant() -> usize {
    static CHOSEN: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *CHOSEN.get_or_init(|| std::env::var(\"FERRAX_MUTANT\").ok().and_then(|n| n.parse().ok()).unwrap_or(usize::MAX))
}
/// What a lost sign leaves.
pub fn same(x: &Value) -> Res<Value> {
    Ok(x.clone())
}
";

/// `crates/a/src/b.rs:7:9: error[E0308]: ..`
fn place(line: &str) -> Option<(&str, usize)> {
    let (file, rest) = line.split_once(':')?;
    let (at, rest) = rest.split_once(':')?;
    rest.contains(" error").then_some((file, at.parse().ok()?))
}

/// The file with these mutants as arms, and each arm's lines, from 1.
fn one_file(text: &str, mutants: &[(usize, &Mutant)]) -> (String, Vec<(usize, Range<usize>)>) {
    let lines: Vec<String> = text.lines().map(str::to_string).collect();
    let (mut out, mut places, mut at) = (Vec::new(), Vec::new(), 0);
    for group in mutants.chunk_by(|a, b| a.1.body == b.1.body) {
        let body = group[0].1.body.clone();
        out.extend_from_slice(&lines[at..body.start]);
        out.push("match crate::mutant() {".into());
        for (n, m) in group {
            let start = out.len() + 1;
            out.push(format!("{n} => {{"));
            out.extend_from_slice(&lines[body.start..m.line - 1]);
            out.push(m.after.clone());
            out.extend_from_slice(&lines[m.line..body.end]);
            out.push("}".into());
            places.push((*n, start..out.len() + 1));
        }
        out.push("_ => {".into());
        out.extend_from_slice(&lines[body.clone()]);
        out.extend(["}".into(), "}".into()]);
        at = body.end;
    }
    out.extend_from_slice(&lines[at..]);
    (out.join("\n") + "\n", places)
}

/// An unchanged file keeps its time, and what was built of it.
fn write(path: &Path, text: &str) -> Res {
    match fs::read_to_string(path) {
        Ok(old) if old == text => Ok(()),
        _ => fs::write(path, text).map_err(|e| format!("{}: {e}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "fn name() {\n    a + b\n}\nimpl Rules for X {\n    fn jvp(&self) {\n        a + b // c + d\n    }\n    fn other() {\n        a + b\n    }\n}\n";

    #[test]
    fn only_lines_of_rules_are_edited() {
        let found = find("x.rs", TEXT);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].line, found[0].rule, found[0].after.trim()), (6, "jvp", "a - b // c + d"));
    }
    #[test]
    fn an_arm_lies_where_it_says() {
        let (woven, places) = one_file(TEXT, &[(7, &find("x.rs", TEXT)[0])]);
        let lines: Vec<&str> = woven.lines().map(str::trim).collect();
        assert_eq!(places, [(7, 7..10)]);
        assert_eq!(
            lines[4..14],
            [
                "fn jvp(&self) {",
                "match crate::mutant() {",
                "7 => {",
                "a - b // c + d",
                "}",
                "_ => {",
                "a + b // c + d",
                "}",
                "}",
                "}"
            ]
        );
    }
    #[test]
    fn errors_have_places() {
        assert_eq!(place("src/a.rs:7:9: error[E0308]: mismatched types"), Some(("src/a.rs", 7)));
        assert_eq!(place("src/a.rs:7:9: warning: unused variable"), None);
    }
}
