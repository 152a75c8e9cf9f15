//! Names of types: one name, one thing, within a crate.
//!
//! Invariant: no two types that a crate's sources declare share a name. Types of different crates may: their paths tell them apart. The
//! check does not see what a macro makes, and does not ask about tests and the associated types of traits.
//!
//! ```text
//! crates/ferrax-cpu/src/row_groups.rs:     struct Entry
//! crates/ferrax-cpu/src/control.rs:   struct Entry       refused: the crate has one
//! ```

use crate::files::File;
use std::collections::BTreeMap;

/// No two types of a crate have one name.
pub fn types_have_names_of_their_own(files: &[File]) -> Vec<String> {
    let mut types: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for f in files.iter().filter(|f| f.path.ends_with(".rs")) {
        let Some((krate, _)) = f.path.trim_start_matches("crates/").split_once("/src/") else { continue };
        for (n, line) in f.text.lines().enumerate() {
            if let Some(name) = declared(line) {
                types.entry((krate, name)).or_default().push(format!("{}:{}", f.path, n + 1));
            }
        }
    }
    let clash = |((_, name), at): (&(&str, &str), &Vec<String>)| match &at[..] {
        [first, second, ..] => Some(format!("{second}: the name {name} is taken: {first}")),
        _ => None,
    };
    types.iter().filter_map(clash).collect()
}

/// The type that a line declares. Those of a primitive's declaration stand one step in.
fn declared(line: &str) -> Option<&str> {
    let text = line.strip_prefix("    ").filter(|l| l.starts_with("pub struct") && l.contains(" = ")).unwrap_or(line);
    let rest = match text.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.strip_prefix(' ')?,
        None => text,
    };
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let name = ["struct ", "enum ", "union ", "trait ", "type "].iter().find_map(|k| rest.strip_prefix(k))?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    (end > 0).then(|| &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<File> =
            files.iter().map(|(path, text)| File { path: format!("crates/{path}"), text: (*text).into() }).collect();
        types_have_names_of_their_own(&files)
    }

    #[test]
    fn a_name_is_taken_within_its_crate() {
        let kernel = ("ferrax-kernel/src/x.rs", "pub struct Window {\n}\n");
        assert_eq!(
            complaints(&[kernel, ("ferrax-kernel/src/y.rs", "//! b\nenum Window<'a> {}\n")]),
            ["crates/ferrax-kernel/src/y.rs:2: the name Window is taken: crates/ferrax-kernel/src/x.rs:1"]
        );
        assert!(complaints(&[kernel, ("ferrax-cpu/src/y.rs", "pub(crate) enum Window<'a> {}\n")]).is_empty());
        let op = [("a/src/x.rs", "pub(super) type Odd = u8;\n"), ("a/src/y.rs", "    pub struct Odd = \"odd\" {}\n")];
        assert_eq!(complaints(&op).len(), 1);
        assert!(
            complaints(&[("a/src/x.rs", "impl X {\n    type Out = u8;\n}\n"), ("a/src/y.rs", "pub enum Out {}\n")])
                .is_empty()
        );
    }
}
