//! Rooms: modules of one crate do not use each other in a ring.
//!
//! A module's room is its file and everything beneath it: `jit.rs` and `jit/cache.rs` are one room, so a parent and its children may know
//! each other. Within a room its children are rooms again.
//!
//! Invariant: the rooms of one parent use each other in one direction: there is an order in which each can be read after those it uses.
//! What counts as use is a path of the code, be it an import or not, that begins with `crate::`, `super::` or `self::`; a name that a
//! parent re-exports counts as its child's. Tests do not count, nor does what a macro makes.
//!
//! ```text
//! crates/ferrax-python/src: a ring of rooms: array (array/host.rs:4) -> value (value.rs:9) -> array
//! ```

use crate::files::File;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Rooms that do form a ring, and why they must.
const EXCUSED: &[(&str, &[&str], &str)] = &[
    (
        "crates/ferrax-ir/src",
        &[
            "checks",
            "cx",
            "factors",
            "lower",
            "mask",
            "op",
            "operators",
            "ops",
            "param",
            "parts",
            "program",
            "simplify",
            "support",
            "typing",
            "text",
            "value",
            "verify",
        ],
        "the language: a program holds ops, an op's rules take values and parts of them, a traced value is of a program",
    ),
    (
        "crates/ferrax-ir/src/ops",
        &["gather", "pad", "reduce", "scatter", "slice"],
        "primitives that are each other's transposes",
    ),
];

/// A module as its path within the crate; the root is empty.
type Path = Vec<String>;

/// Room by room: which it uses, and where it first says so.
type Uses = BTreeMap<String, BTreeMap<String, String>>;

pub fn rooms_form_no_ring(files: &[File]) -> Vec<String> {
    let mut crates: BTreeMap<&str, Vec<(Path, &File)>> = BTreeMap::new();
    for f in files.iter().filter(|f| f.path.ends_with(".rs")) {
        if let Some((krate, inner)) = f.path.split_once("/src/")
            && !inner.starts_with("bin/")
        {
            crates.entry(krate).or_default().push((module_path(inner), f));
        }
    }
    let mut out = Vec::new();
    let mut needed = BTreeSet::new();
    for (krate, modules) in &crates {
        for (parent, uses) in by_parent(krate, modules) {
            let place = if parent.is_empty() { format!("{krate}/src") } else { format!("{krate}/src/{parent}") };
            for ring in rings(&uses) {
                let excuse =
                    EXCUSED.iter().find(|(p, rooms, _)| *p == place && ring.iter().all(|r| rooms.contains(&&**r)));
                match excuse {
                    Some((p, ..)) => drop(needed.insert(*p)),
                    None => out.push(format!("{place}: a ring of rooms: {}", told(&ring, &uses))),
                }
            }
        }
    }
    let idle = EXCUSED.iter().filter(|(p, ..)| !needed.contains(p) && files.iter().any(|f| f.path.starts_with(p)));
    out.extend(idle.map(|(p, ..)| format!("xtask/src/rooms.rs: {p} is excused, and has no ring")));
    out
}

fn module_path(inner: &str) -> Path {
    let stem = inner.trim_end_matches(".rs");
    if matches!(stem, "lib" | "main") { vec![] } else { stem.split('/').map(String::from).collect() }
}

/// For each module with children, what its children use of each other.
fn by_parent(krate: &str, modules: &[(Path, &File)]) -> BTreeMap<String, Uses> {
    let known: BTreeSet<&Path> = modules.iter().map(|(p, _)| p).collect();
    let mut handed_on: BTreeMap<(Path, String), Path> = BTreeMap::new();
    for (at, f) in modules {
        for (_, path, public) in paths(&f.text, at) {
            // `pub use error::Res`, or `pub use crate::error::Res`
            if public && let Some((name, of)) = path.split_last() {
                let child = longest(&known, of).or_else(|| longest(&known, &[&at[..], of].concat()));
                handed_on.extend(child.filter(|c| !c.is_empty()).map(|c| ((at.clone(), name.clone()), c)));
            }
        }
    }
    let mut out: BTreeMap<String, Uses> = BTreeMap::new();
    for (at, f) in modules {
        for (line, path, public) in paths(&f.text, at) {
            let mut target = longest(&known, &path).unwrap_or_default();
            while let Some(name) = path.get(target.len())
                && let Some(child) = handed_on.get(&(target.clone(), name.clone()))
                && child.starts_with(&target)
                && child.len() > target.len()
                && !public
            {
                target = child.clone();
                if target.len() >= path.len() {
                    break;
                }
            }
            let shared = at.iter().zip(&target).take_while(|(a, b)| a == b).count();
            let (Some(from), Some(to)) = (at.get(shared), target.get(shared)) else { continue };
            let inner = f.path.trim_start_matches(krate).trim_start_matches("/src/");
            let uses = out.entry(at[..shared].join("/")).or_default();
            uses.entry(from.clone()).or_default().entry(to.clone()).or_insert_with(|| format!("{inner}:{line}"));
        }
    }
    out
}

/// The longest beginning of a path that is a module.
fn longest(known: &BTreeSet<&Path>, path: &[String]) -> Option<Path> {
    (1..=path.len()).rev().map(|n| path[..n].to_vec()).find(|p| known.contains(p))
}

/// The paths that a file's code names, from the crate's root: line, path, and whether it is a re-export.
fn paths(text: &str, at: &Path) -> Vec<(usize, Path, bool)> {
    let code = stripped(text);
    let mut out = Vec::new();
    let ident = |c: char| c.is_alphanumeric() || c == '_';
    let mut from = 0;
    while let Some(found) =
        ["crate::", "super::", "self::", "pub use "].iter().filter_map(|w| code[from..].find(w).map(|i| (i, *w))).min()
    {
        let (start, word) = (from + found.0, found.1);
        from = start + word.len();
        if code[..start].chars().next_back().is_some_and(|c| ident(c) || c == ':') {
            continue;
        }
        let line = code[..start].matches('\n').count() + 1;
        let public = word == "pub use ";
        let mut base: Path = vec![];
        let mut rest = &code[start..];
        if public {
            rest = &rest[word.len()..];
        }
        if let Some(inner) = rest.strip_prefix("crate::") {
            rest = inner;
        } else if rest.starts_with("super::") || rest.starts_with("self::") {
            base = at.clone();
            rest = rest.strip_prefix("self::").unwrap_or(rest);
            while let Some(inner) = rest.strip_prefix("super::") {
                base.pop();
                rest = inner;
            }
        } else {
            // A re-export of a child's, by its own name.
            base = at.clone();
        }
        let mut found = Vec::new();
        tree(rest, &base, &mut found);
        from = code.len() - rest.len();
        out.extend(found.into_iter().map(|p| (line, p, public)));
    }
    out
}

/// The paths of a tree `a::{b, c::d}`; gives what is left of the text.
fn tree<'a>(text: &'a str, base: &Path, out: &mut Vec<Path>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = tree(rest, base, out).trim_start();
            // `as other`
            let end = rest.find([',', '}']).unwrap_or(rest.len());
            rest = &rest[end..];
            match rest.strip_prefix(',') {
                Some(more) if !more.trim_start().starts_with('}') => rest = more,
                Some(more) => return more.trim_start().strip_prefix('}').unwrap_or(""),
                None => return rest.strip_prefix('}').unwrap_or(""),
            }
        }
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let mut path = base.clone();
    if end > 0 && &text[..end] != "self" {
        path.push(text[..end].to_string());
    }
    match text[end..].strip_prefix("::") {
        Some(rest) if rest.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '{') => tree(rest, &path, out),
        _ => {
            out.push(path);
            &text[end..]
        }
    }
}

/// The code without comments, texts and the tests at its end; lines stay.
fn stripped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        if line.starts_with("#[cfg(test)]") {
            break;
        }
        let line = line.split("//").next().unwrap_or_default();
        for (i, part) in line.split('"').enumerate() {
            out.push_str(if i % 2 == 0 { part } else { " " });
        }
        out.push('\n');
    }
    out
}

/// A shortest ring through each tangle of rooms.
fn rings(uses: &Uses) -> Vec<Vec<String>> {
    let mut out: Vec<Vec<String>> = Vec::new();
    for room in uses.keys() {
        if out.iter().any(|r| r.contains(room)) {
            continue;
        }
        let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
        let mut todo = VecDeque::from([room.as_str()]);
        while let Some(at) = todo.pop_front() {
            for next in uses.get(at).into_iter().flat_map(|u| u.keys()) {
                if !came_from.contains_key(next.as_str()) {
                    came_from.insert(next, at);
                    todo.push_back(next);
                }
            }
        }
        let mut ring = Vec::new();
        let mut at = room.as_str();
        while let Some(before) = came_from.get(at) {
            ring.push(before.to_string());
            at = before;
            if at == room {
                ring.reverse();
                out.push(ring);
                break;
            }
        }
    }
    out
}

fn told(ring: &[String], uses: &Uses) -> String {
    let next = ring.iter().cycle().skip(1);
    let steps = ring.iter().zip(next).map(|(a, b)| format!("{a} ({})", uses[a][b]));
    steps.chain([ring[0].clone()]).collect::<Vec<_>>().join(" -> ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(files: &[(&str, &str)]) -> Vec<String> {
        let file = |(path, text): &(&str, &str)| File { path: format!("crates/x/src/{path}"), text: (*text).into() };
        rooms_form_no_ring(&files.iter().map(file).collect::<Vec<_>>())
    }

    #[test]
    fn a_ring_is_refused_wherever_its_paths_stand() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\npub use c::Thing;\n"),
            ("a.rs", "//! a\nuse crate::{b::{self, f}, d};\n"),
            ("b/inner.rs", "fn f() {\n    super::super::c::g()\n}\n"),
            ("b.rs", "mod inner;\n"),
            ("c.rs", "fn g() { crate::a::h() }\n"),
        ];
        assert_eq!(
            complaints(&files),
            ["crates/x/src: a ring of rooms: a (a.rs:2) -> b (b/inner.rs:2) -> c (c.rs:1) -> a"]
        );
        assert!(complaints(&files[..4]).is_empty());
    }

    #[test]
    fn a_name_that_the_root_hands_on_is_its_owners() {
        let of =
            |root| complaints(&[("lib.rs", root), ("a.rs", "use crate::Thing;\n"), ("b.rs", "use crate::a::f;\n")]);
        assert_eq!(of("pub use b::Thing;\n").len(), 1);
        assert_eq!(of("pub use b::{Other, Thing};\n").len(), 1);
        assert!(of("pub use b::Other;\npub struct Thing;\n").is_empty());
    }

    #[test]
    fn a_parent_and_its_children_are_one_room_and_children_are_rooms() {
        let files = [("a.rs", "mod b;\nuse b::f;\n"), ("a/b.rs", "use super::g;\n"), ("a/c.rs", "use super::b::f;\n")];
        assert!(complaints(&files).is_empty());
        let back = [&files[..], &[("a/b/d.rs", "use crate::a::c::h;\n")]].concat();
        assert_eq!(
            complaints(&back),
            ["crates/x/src/a: a ring of rooms: b (b/d.rs:1) -> c (c.rs:1) -> b"]
                .map(|s| s.replace("(b/", "(a/b/").replace("(c.rs", "(a/c.rs"))
        );
    }

    #[test]
    fn comments_texts_and_tests_do_not_count() {
        let b = ("b.rs", "use crate::a::f;\n");
        let of = |text: &str| complaints(&[("a.rs", text), b]).len();
        assert_eq!(of("use crate::b::g;\n"), 1);
        assert_eq!(
            of(
                "//! [`crate::b::g`]\nconst T: &str = \"crate::b::g\";\n#[cfg(test)]\nmod tests {\n    use crate::b::g;\n}\n"
            ),
            0
        );
    }
}
