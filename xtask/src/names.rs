//! Names of types: one name, one thing.
//!
//! Invariant: a type that other files can see shares its name with no other such type of the workspace; one that its file keeps to itself
//! shares it with nothing in its crate, nor in the crates below. So a name that is read in one file means the same in the next. The check
//! does not see what a macro makes, and does not ask about tests and the associated types of traits.
//!
//! ```text
//! crates/ferrax-kernel/src/plan.rs:   pub struct Window       one of a loop's operands, an element at a time
//! crates/ferrax-cpu/src/control.rs:   struct Window           refused: it is the compiled one, so CellWindow
//! ```

use crate::files::{self, File};
use std::collections::BTreeMap;

/// Names that several types bear, and why.
const EXCUSED: &[(&str, &str)] = &[
    ("Conv", "the primitive, and the routine that it becomes"),
    ("Dot", "the primitive, and the routine that it becomes"),
    ("Fft", "the primitive, and the routine that it becomes"),
    ("Gather", "the primitive, and the routine that it becomes"),
    ("Scatter", "the primitive, and the routine that it becomes"),
    ("Loop", "the primitive, and the step of a plan that it becomes"),
    ("Trip", "how often a loop runs: in a program, and in a plan"),
    ("Error", "each half of the library has its own, and one becomes the other by `?`"),
    ("Res", "a result of the crate's own error"),
];

struct Declared<'a> {
    at: String,
    krate: &'a str,
    visible: bool,
}

/// No two types of the workspace have one name.
pub fn types_have_names_of_their_own(files: &[File]) -> Vec<String> {
    let mut types: BTreeMap<&str, Vec<Declared>> = BTreeMap::new();
    for f in files.iter().filter(|f| f.path.ends_with(".rs")) {
        let Some((krate, _)) = f.path.trim_start_matches("crates/").split_once("/src/") else { continue };
        for (n, line) in f.text.lines().enumerate() {
            if let Some((name, visible)) = declared(line) {
                types.entry(name).or_default().push(Declared { at: format!("{}:{}", f.path, n + 1), krate, visible });
            }
        }
    }
    let mut out = Vec::new();
    for (name, found) in &types {
        let excused = EXCUSED.iter().any(|(n, _)| n == name);
        let clash = |d: &Declared| {
            let meets = |o: &&Declared| {
                o.at != d.at && (o.krate == d.krate || o.visible && (d.visible || files::sees(d.krate, o.krate)))
            };
            found.iter().find(meets).map(|o| o.at.clone())
        };
        let mut clashes = found.iter().filter_map(|d| Some((d.at.clone(), clash(d)?)));
        match clashes.next() {
            Some((at, other)) if !excused => out.push(format!("{at}: the name {name} is taken: {other}")),
            None if excused && found.iter().any(|d| d.visible) => {
                out.push(format!("xtask/src/names.rs: {name} is excused, and needs no excuse"))
            }
            _ => (),
        }
    }
    out
}

/// The type that a line declares, and whether other files can see it. Those of a primitive's declaration stand one step in.
fn declared(line: &str) -> Option<(&str, bool)> {
    let text = line.strip_prefix("    ").filter(|l| l.starts_with("pub struct") && l.contains(" = ")).unwrap_or(line);
    let (visible, rest) = match text.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => (true, rest.split_once(") ")?.1),
        Some(rest) => (true, rest.strip_prefix(' ')?),
        None => (false, text),
    };
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let name = ["struct ", "enum ", "union ", "trait ", "type "].iter().find_map(|k| rest.strip_prefix(k))?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    (end > 0).then(|| (&name[..end], visible))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<File> =
            files.iter().map(|(path, text)| File { path: format!("crates/{path}"), text: (*text).into() }).collect();
        types_have_names_of_their_own(&files)
    }
    fn ours(files: &[(&str, &str)]) -> Vec<String> {
        complaints(files).into_iter().filter(|c| !c.contains("needs no excuse")).collect()
    }

    #[test]
    fn a_name_that_others_see_is_taken() {
        let kernel = ("ferrax-kernel/src/x.rs", "pub struct Window {\n}\n");
        let of = |path, text| ours(&[kernel, (path, text)]);
        assert_eq!(
            of("ferrax-cpu/src/y.rs", "//! b\nenum Window<'a> {}\n"),
            ["crates/ferrax-cpu/src/y.rs:2: the name Window is taken: crates/ferrax-kernel/src/x.rs:1"]
        );
        assert!(of("ferrax-runtime/src/y.rs", "enum Window<'a> {}\n").is_empty());
        assert_eq!(of("ferrax-runtime/src/y.rs", "pub(crate) enum Window<'a> {}\n").len(), 1);
        let op = [("a/src/x.rs", "pub(super) type Odd = u8;\n"), ("b/src/y.rs", "    pub struct Odd = \"odd\" {}\n")];
        assert_eq!(ours(&op).len(), 1);
    }

    #[test]
    fn names_behind_one_files_doors_are_told_apart_by_the_crate() {
        let of = |path| ours(&[("a/src/x.rs", "struct Entry;\n"), (path, "struct Entry;\n")]).len();
        assert_eq!((of("a/src/y.rs"), of("b/src/y.rs"), of("a/tests/y.rs")), (1, 0, 0));
        assert!(
            ours(&[("a/src/x.rs", "impl X {\n    type Out = u8;\n}\n"), ("a/src/y.rs", "pub enum Out {}\n")])
                .is_empty()
        );
    }

    #[test]
    fn an_excuse_that_nobody_needs_is_refused() {
        let [(name, _), ..] = EXCUSED else { panic!("nothing is excused") };
        let one = ("ferrax-ir/src/x.rs", &*format!("pub struct {name};\n"));
        let two = ("ferrax-kernel/src/x.rs", one.1);
        assert_eq!((complaints(&[one]).len(), complaints(&[one, two]).len()), (1, 0));
    }
}
