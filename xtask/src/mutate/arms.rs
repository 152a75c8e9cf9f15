//! All mutants in one build: the body of each function becomes a `match` on the number of the mutant, with one arm for each edit.
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
//! INVARIANT: without a mutant, or with one that was dropped because it does not compile, the program is the source as it was.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::Path;

use super::Family;
use crate::shell::{Res, fail, root};

const RULES: &[&str] = &["infer", "jvp", "transpose", "batch", "lower", "split", "dce"];

/// Signs, axes, comparisons, ends: `(from, to)`, tried wherever `from` occurs in a rule's body.
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
    /// The function that is edited: a rule, or one that picks a strategy.
    pub rule: &'static str,
    /// The replacement of `lines` (from 0) of the body.
    pub before: String,
    pub after: String,
    lines: Range<usize>,
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
    let lines: Vec<&str> = text.lines().collect();
    let mut out = Vec::new();
    for (rule, body) in bodies(&lines, RULES) {
        for at in body.clone() {
            for after in edits(lines[at]) {
                let (file, before, body) = (file.into(), lines[at].into(), body.clone());
                out.push(Mutant { file, line: at + 1, rule, before, after, lines: at..at + 1, body });
            }
        }
    }
    out
}

/// Every condition in the bodies of these functions, negated; and every comparison, moved by one.
pub fn find_picks(file: &str, text: &str, functions: &[&'static str]) -> Vec<Mutant> {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = Vec::new();
    for (rule, body) in bodies(&lines, functions) {
        let whole = lines[body.clone()].join("\n");
        let mut edited = negations(&whole);
        for (from, to) in BOUNDARIES {
            edited.extend(code_matches(&whole, from).map(|at| (at..at + from.len(), (*to).to_string())));
        }
        edited.sort_by_key(|e| e.0.start);
        for (range, with) in edited {
            let line = |at: usize| whole[..at].matches('\n').count();
            let (first, last) = (line(range.start), line(range.end));
            let start = whole[..range.start].rfind('\n').map_or(0, |n| n + 1);
            let end = whole[range.end..].find('\n').map_or(whole.len(), |n| range.end + n);
            out.push(Mutant {
                file: file.into(),
                line: body.start + first + 1,
                rule,
                before: whole[start..end].into(),
                after: format!("{}{with}{}", &whole[start..range.start], &whole[range.end..end]),
                lines: body.start + first..body.start + last + 1,
                body: body.clone(),
            });
        }
    }
    out
}

const BOUNDARIES: &[(&str, &str)] = &[(" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > ")];

/// Where a text occurs in code, outside of comments and strings.
fn code_matches<'a>(body: &'a str, what: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_code = |at: usize| {
        let line = &body[body[..at].rfind('\n').map_or(0, |n| n + 1)..at];
        !line.contains("//") && line.matches('"').count().is_multiple_of(2) && !line.contains("assert")
    };
    body.match_indices(what).map(|(at, _)| at).filter(move |at| is_code(*at))
}

/// The conditions of `if` and of guards, the operands of `match` (where they are bools), and what `then` is called on, each with its negation.
/// A condition that binds a name is made false.
fn negations(body: &str) -> Vec<(Range<usize>, String)> {
    let mut out = Vec::new();
    for word in ["if ", "match "] {
        for at in code_matches(body, word) {
            if body[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
                continue;
            }
            let from = at + word.len();
            let Some(to) = end_of_condition(&body[from..]).map(|n| from + n) else { continue };
            let condition = &body[from..to];
            let with = match condition.contains("let ") {
                true if word == "if " => format!("{condition}\n&& false"),
                true => continue,
                false => format!("!({condition}\n)"),
            };
            out.push((from..to, with));
        }
    }
    for word in [".then(", ".then_some("] {
        out.extend(code_matches(body, word).map(|at| (at..at, ".not()".into())));
    }
    out
}

/// Where a condition ends: before its block, or the arrow of its arm.
fn end_of_condition(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '{' if depth == 0 => return Some(text[..at].trim_end().len()),
            '=' if depth == 0 && text[at..].starts_with("=>") => return Some(text[..at].trim_end().len()),
            ';' if depth == 0 => return None,
            _ => (),
        }
        if depth < 0 {
            return None;
        }
    }
    None
}

/// The lines, from 0, of the bodies of functions of these names.
fn bodies(lines: &[&str], names: &[&'static str]) -> Vec<(&'static str, Range<usize>)> {
    let end = lines.iter().position(|l| l.contains("#[cfg(test)]")).unwrap_or(lines.len());
    let lines = &lines[..end];
    let indent = |l: &str| l.len() - l.trim_start().len();
    let mut out = Vec::new();
    for (n, line) in lines.iter().enumerate() {
        let declares = |name: &&&'static str| {
            let words = line.trim_start();
            let at =
                words.find("fn ").filter(|at| *at == 0 || words.starts_with("pub") || words.starts_with("unsafe "));
            at.is_some_and(|at| words[at + 3..].strip_prefix(**name).is_some_and(|rest| rest.starts_with(['(', '<'])))
        };
        let Some(name) = names.iter().find(declares) else { continue };
        // the signature may take several lines; a body ends where a brace stands below the `fn`
        let Some(start) = (n..lines.len()).find(|m| lines[*m].ends_with(['{', ';', '}'])).map(|m| m + 1) else {
            continue;
        };
        let last = |m: &usize| lines[*m].trim() == "}" && indent(lines[*m]) == indent(line);
        if !lines[start - 1].ends_with('{') {
            continue;
        }
        let Some(end) = (start..lines.len()).find(last) else { continue };
        out.push((*name, start..end));
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
pub fn insert(copy: &Path, family: &Family, all: &[Mutant], mut chosen: BTreeSet<usize>) -> Res<Vec<usize>> {
    let crates: BTreeSet<&str> = all.iter().filter_map(|m| Some(m.file.split_once("/src/")?.0)).collect();
    for krate in crates {
        let lib = format!("{krate}/src/lib.rs");
        let text = fs::read_to_string(root().join(&lib)).map_err(|e| e.to_string())?;
        write(&copy.join(lib), &(text + SWITCH + family.switch))?;
    }
    let files: BTreeSet<&str> = all.iter().map(|m| m.file.as_str()).collect();
    loop {
        let mut arms = Vec::new();
        for file in &files {
            let text = fs::read_to_string(root().join(file)).map_err(|e| e.to_string())?;
            let mine: Vec<(usize, &Mutant)> =
                chosen.iter().map(|n| (*n, &all[*n])).filter(|(_, m)| m.file == *file).collect();
            let (edited, places) = one_file(&text, &mine, family.uses);
            write(&copy.join(file), &edited)?;
            arms.extend(places.into_iter().map(|(n, lines)| (*file, n, lines)));
        }
        let args = [&["check", "--message-format", "short", "--package", family.package], family.features].concat();
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
";

/// `crates/a/src/b.rs:7:9: error[E0308]: ..`
fn place(line: &str) -> Option<(&str, usize)> {
    let (file, rest) = line.split_once(':')?;
    let (at, rest) = rest.split_once(':')?;
    rest.contains(" error").then_some((file, at.parse().ok()?))
}

/// The file with these mutants as arms, and each arm's lines, from 1.
fn one_file(text: &str, mutants: &[(usize, &Mutant)], uses: &str) -> (String, Vec<(usize, Range<usize>)>) {
    let lines: Vec<String> = text.lines().map(str::to_string).collect();
    let (mut out, mut places, mut at) = (Vec::new(), Vec::new(), 0);
    for group in mutants.chunk_by(|a, b| a.1.body == b.1.body) {
        let body = group[0].1.body.clone();
        out.extend_from_slice(&lines[at..body.start]);
        out.push("match crate::mutant() {".into());
        for (n, m) in group {
            let start = out.len() + 1;
            out.push(format!("{n} => {{{uses}"));
            out.extend_from_slice(&lines[body.start..m.lines.start]);
            out.extend(m.after.lines().map(str::to_string));
            out.extend_from_slice(&lines[m.lines.end..body.end]);
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
        let (edited, places) = one_file(TEXT, &[(7, &find("x.rs", TEXT)[0])], "");
        let lines: Vec<&str> = edited.lines().map(str::trim).collect();
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
    fn conditions_are_negated_and_bounds_moved() {
        let text = "fn pick(n: usize) -> u8 {\n    if n < 4\n        && n > 1 // n < 7\n    {\n        return 1;\n    }\n    match n {\n        m if m > 9 => 2,\n        _ => (n > 7).then(|| 3),\n    }\n}\n";
        let all = find_picks("x.rs", text, &["pick"]);
        let after: Vec<String> = all.iter().map(|m| m.after.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            after,
            [
                "if !(n < 4 && n > 1 // n < 7 )",
                "if n <= 4",
                "&& n >= 1 // n < 7",
                "match !(n ) {",
                "m if !(m > 9 ) => 2,",
                "m if m >= 9 => 2,",
                "_ => (n >= 7).then(|| 3),",
                "_ => (n > 7).not().then(|| 3),",
            ]
        );
        assert_eq!((all[0].line, all[0].lines.clone()), (2, 1..3));
    }
    #[test]
    fn errors_have_places() {
        assert_eq!(place("src/a.rs:7:9: error[E0308]: mismatched types"), Some(("src/a.rs", 7)));
        assert_eq!(place("src/a.rs:7:9: warning: unused variable"), None);
    }
}
