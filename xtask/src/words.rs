//! Words that this project's prose replaced by the field's terms: CONTRIBUTING.md, "Words".
//!
//! Invariant: none of them occurs in a comment, a document, or a name of a constant. Where one has its ordinary meaning the file is listed
//! below with the reason.
use crate::files::File;

/// A word or phrase, in lower case, and its replacement.
const WORDS: &[(&str, &str)] = &[
    ("stands apart", "is materialized"),
    ("stand apart", "are materialized"),
    ("loop by rows", "row-fused loop"),
    ("loops by rows", "row-fused loops"),
    ("weave", "interleave"),
    ("weaves", "interleaves"),
    ("woven", "interleaved"),
    ("spelt", "legalized"),
    ("heir", "donation alias"),
    ("heirs", "donation aliases"),
    ("errand", "task"),
    ("errands", "tasks"),
    ("seat", "slot"),
    ("seats", "slots"),
    ("sits down", "parks"),
    ("hand over", "enqueue, pass"),
    ("hands over", "enqueues, passes"),
    ("handed over", "enqueued, passed"),
    ("dear", "expensive"),
    ("kin", "related"),
    ("face", "API, frontend"),
    ("faces", "APIs, frontends"),
    ("in a sentence", "with an error that says why"),
    ("with a sentence", "with an error that says why"),
    ("or a sentence", "or an error that says why"),
    ("allot", "allocate"),
    ("allots", "allocates"),
    ("allotted", "allocated"),
    ("allotting", "allocating"),
    ("nobody", "nothing, no thread, no other owner"),
    ("whoever", "the caller, the owner, the reader"),
    ("is told", "gets, is called with"),
    ("are told", "get, are called with"),
];
/// The same for comments of Rust and for the Python package, whose words were replaced later.
const IN_SOURCES: &[(&str, &str)] = &[
    ("gives way", "yields, is spilled, is replaced"),
    ("give way", "yield, are spilled, are replaced"),
    ("is asked", "is called, is read"),
    ("are asked", "are called, are read"),
    ("is wanted", "is required, is requested, is used"),
    ("are wanted", "are required, are requested, are used"),
    ("lies apart", "is not contiguous, does not overlap"),
    ("lie apart", "are not contiguous, do not overlap"),
    ("stands for", "means, is"),
    ("stand for", "mean, are"),
    ("stands in", "is in, occurs in"),
    ("stand in", "are in, occur in"),
    ("stands there", "is there, is live"),
    ("what stands", "the value, the element, the text"),
    ("what lies", "the elements, the rest"),
    ("hands on", "passes on, keeps"),
    ("handed on", "passed on, kept"),
    ("taken apart", "flattened, split"),
    ("taken back", "reset, freed"),
    ("trade places", "are exchanged"),
    ("trades places", "is exchanged"),
    ("turned round", "reversed, transposed, rotated"),
    ("says nothing", "is ignored, has no .., is redundant"),
    ("say nothing", "are ignored, have no .."),
    ("told", "reported, notified, passed"),
    ("tells", "distinguishes, reports, determines"),
    ("anybody", "any thread, any caller, any reader"),
    ("everybody", "all threads, all callers, all readers"),
    ("somebody", "a thread, a caller, a reader"),
    ("those who", "the callers, the readers, threads that"),
];
/// The same for the Python package alone.
const IN_PACKAGE: &[(&str, &str)] = &[
    ("in jax's words", "with JAX's message"),
    ("takes part", "is included, is promoted"),
    ("take part", "are included, are promoted"),
    ("types speak", "types contain, types track"),
    ("types say", "types contain, types track"),
    ("types know", "types contain, types track"),
    ("speaks of", "names, describes"),
    ("speak of", "name, describe"),
    ("knows of", "has, contains"),
    ("is no more", "has ended, is deleted"),
    ("hears", "receives"),
];
/// Names of constants that say neither a limit of what nor a threshold for what.
const NAMES: &[&str] = &["MOST", "WORTH", "LEAST", "TOGETHER", "LONG"];

/// Files in which a word has its ordinary meaning, or is another library's.
const EXCEPTIONS: &[(&str, &str, &str)] = &[];

fn is_text(f: &File) -> bool {
    [".rs", ".py", ".pyi", ".md"].iter().any(|end| f.path.ends_with(end)) && f.path != "xtask/src/words.rs"
}
/// What a line says: the comment of a line of Rust, all of a line of Python or of a document.
fn prose<'a>(path: &str, line: &'a str) -> &'a str {
    match path.ends_with(".rs") {
        true => line.find("//").map_or("", |at| &line[at..]),
        false => line,
    }
}
fn has_phrase(line: &str, phrase: &str) -> bool {
    let ident = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(phrase).any(|(at, _)| {
        !line[..at].chars().next_back().is_some_and(ident)
            && !line[at + phrase.len()..].chars().next().is_some_and(ident)
    })
}
fn declares(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("pub(super) ").or(line.strip_prefix("pub ")).unwrap_or(line);
    line.strip_prefix("const ").or(line.strip_prefix("static "))?.split(':').next()
}

pub fn words_are_the_fields(files: &[File]) -> Vec<String> {
    let mut out = vec![];
    let mut used = vec![false; EXCEPTIONS.len()];
    for f in files.iter().filter(|f| is_text(f)) {
        for (n, line) in f.text.lines().enumerate() {
            let said = prose(&f.path, line).to_lowercase();
            let package = f.path.starts_with("python/");
            let later = if package || f.path.ends_with(".rs") { IN_SOURCES } else { &[] };
            let of_package = if package { IN_PACKAGE } else { &[] };
            for (word, say) in WORDS.iter().chain(later).chain(of_package).filter(|w| has_phrase(&said, w.0)) {
                match EXCEPTIONS.iter().position(|e| f.path.starts_with(e.0) && e.1 == *word) {
                    Some(k) => used[k] = true,
                    None => out.push(format!("{}:{}: \"{word}\": say {say}", f.path, n + 1)),
                }
            }
            if f.path.ends_with(".rs")
                && let Some(name) = declares(line)
                && NAMES.contains(&name)
            {
                out.push(format!("{}:{}: {name}: say MAX_x, MIN_x_FOR_y or BATCH_x", f.path, n + 1));
            }
        }
    }
    let spent = EXCEPTIONS.iter().zip(&used).filter(|(_, used)| !**used);
    out.extend(spent.map(|(e, _)| format!("xtask/src/words.rs: {} has no \"{}\"", e.0, e.1)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_names_are_read() {
        let one = |path: &str, text: &str| vec![File { path: path.into(), text: text.into() }];
        let bad = "// the buffer is told of it\nlet face = 1;\nconst MOST: usize = 3;\n";
        let found: Vec<String> = words_are_the_fields(&one("crates/a/src/b.rs", bad));
        assert_eq!(found.iter().filter(|c| c.starts_with("crates/a")).count(), 3);
        let handed = "// a value that is handed on\nlet told = 1;\n";
        let found = words_are_the_fields(&one("crates/a/src/b.rs", handed));
        assert_eq!(found.iter().filter(|c| c.starts_with("crates/a")).count(), 1);
        let found = words_are_the_fields(&one("docs/a.md", "the surface of a skin\nIts kin.\n"));
        assert_eq!(found.iter().filter(|c| c.starts_with("docs/a.md:2")).count(), 1);
        let found = words_are_the_fields(&one("python/ferrax/a.py", "# in JAX's words\ntold = 1\n"));
        assert_eq!(found.iter().filter(|c| c.starts_with("python/ferrax/a.py")).count(), 2);
    }
}
