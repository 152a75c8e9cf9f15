//! `cargo xtask tidy`: the rules of the house that no compiler knows.
//!
//! Invariant: each rule is a function from the tracked files to its complaints, so all of them are printed, not
//! only the first. ARCHITECTURE.md says why each rule stands.

use std::collections::BTreeSet;

use crate::files::{ARROWS, File, tracked};
use crate::shell::{Res, fail};
use crate::{globals, layers, names, rooms, thresholds, words};

/// The files in which `unsafe` is allowed: kernels, routines and memory of the CPU, its own and other libraries', pipelines of the GPU, the interpreter's C interface,
/// and tests that call one source compiled for several instruction sets, fork, count allocations, or fence memory in. What their blocks rely on,
/// `Plan::verify` has established.
const UNSAFE: &[&str] = &[
    "crates/ferrax/src/world/meeting.rs", // memory that devices of one process lend each other
    "crates/ferrax-cpu/src/dlpack.rs",
    "crates/ferrax-cpu/src/executable.rs",
    "crates/ferrax-cpu/src/executable/row_groups.rs",
    "crates/ferrax-cpu/src/executable/combine.rs",
    "crates/ferrax-cpu/src/executable/control.rs",
    "crates/ferrax-cpu/src/executable/nests.rs",
    "crates/ferrax-cpu/src/kernels.rs",
    "crates/ferrax-cpu/src/kernels/address.rs",
    "crates/ferrax-cpu/src/kernels/block.rs",
    "crates/ferrax-cpu/src/kernels/fold.rs",
    "crates/ferrax-cpu/src/kernels/moves.rs",
    "crates/ferrax-cpu/src/kernels/program.rs",
    "crates/ferrax-cpu/src/kernels/program/rows.rs",
    "crates/ferrax-cpu/src/kernels/reduce.rs",
    "crates/ferrax-cpu/src/lowering/reduction.rs",
    "crates/ferrax-cpu/src/kernels/reduce/split.rs",
    "crates/ferrax-cpu/src/kernels/scalar.rs",
    "crates/ferrax-cpu/src/kernels/scalar/convert.rs",
    "crates/ferrax-host/src/memory.rs",
    "crates/ferrax-cpu/src/native.rs",
    "crates/ferrax-cpu/src/native/nest.rs",
    "crates/ferrax-cpu/src/native/pages.rs",
    "crates/ferrax-cpu/src/lowering/alone.rs",
    "crates/ferrax-cpu/src/lowering/compiled.rs",
    "crates/ferrax-cpu/src/executable/nests/interpret.rs",
    "crates/ferrax-cpu/src/nest.rs", // a type of functions
    "crates/ferrax-cpu/src/routines/conv/lines.rs",
    "crates/ferrax-cpu/src/routines/conv/groups.rs",
    "crates/ferrax-cpu/src/routines/conv/interleaved.rs",
    "crates/ferrax-cpu/src/routines/conv/planes.rs",
    "crates/ferrax-cpu/src/routines/conv/reading.rs",
    "crates/ferrax-cpu/src/routines/conv/windows.rs",
    "crates/ferrax-cpu/src/routines/cumulative.rs",
    "crates/ferrax-cpu/src/routines/cumulative/columns.rs",
    "crates/ferrax-cpu/src/routines/dot.rs",
    "crates/ferrax-cpu/src/routines/dot/library.rs",
    "crates/ferrax-cpu/src/routines/dynamic_slice.rs",
    "crates/ferrax-cpu/src/routines/fft.rs",
    "crates/ferrax-cpu/src/routines/fft/halves.rs",
    "crates/ferrax-cpu/src/routines/fft/pairs.rs",
    "crates/ferrax-cpu/src/routines/gather.rs",
    "crates/ferrax-cpu/src/routines/linalg.rs",
    "crates/ferrax-linalg/src/bidiagonalization.rs",
    "crates/ferrax-linalg/src/eigen_divide_and_conquer.rs",
    "crates/ferrax-linalg/src/partial_pivoting.rs",
    "crates/ferrax-linalg/src/cholesky.rs",
    "crates/ferrax-linalg/src/blocked.rs",
    "crates/ferrax-linalg/src/blocked/lu.rs",
    "crates/ferrax-linalg/src/blocked/svd.rs",
    "crates/ferrax-linalg/src/blocked/qr.rs",
    "crates/ferrax-linalg/src/blocked/spectral.rs",
    "crates/ferrax-linalg/src/blocked/symmetric_eigen.rs",
    "crates/ferrax-linalg/src/vector_merge.rs",
    "crates/ferrax-linalg/src/householder.rs",
    "crates/ferrax-linalg/src/matrix_vector.rs",
    "crates/ferrax-linalg/src/secular_equation.rs",
    "crates/ferrax-linalg/src/svd_divide_and_conquer.rs",
    "crates/ferrax-linalg/src/triangular_solve.rs",
    "crates/ferrax-linalg/src/householder_qr.rs",
    "crates/ferrax-linalg/src/tridiagonalization.rs",
    "crates/ferrax-linalg/src/lanes.rs",
    "crates/ferrax-linalg/src/without_faer.rs",
    "crates/ferrax-host/src/panel.rs",
    "crates/ferrax-cpu/src/routines/conv/grouped.rs",
    "crates/ferrax-host/src/panel/x86.rs",
    "crates/ferrax-cpu/src/routines/scatter.rs",
    "crates/ferrax-cpu/src/routines/sort.rs",
    "crates/ferrax-cpu/src/routines/top_k.rs",
    "crates/ferrax-cpu/src/routines/vector.rs",
    "crates/ferrax-cpu/src/routines/strided.rs",
    "crates/ferrax-host/src/share.rs",
    "crates/ferrax-host/src/threads.rs", // a pointer that threads share
    "crates/ferrax-linalg/src/batch.rs",
    "crates/ferrax-cpu/src/tape.rs",
    "crates/ferrax-cpu/tests/against.rs",
    "crates/ferrax-cpu/tests/against/fenced.rs",
    "crates/ferrax-cpu/tests/generated.rs",
    "crates/ferrax-cpu/tests/loops.rs",
    "crates/ferrax-host/tests/fork.rs",
    "crates/ferrax-cpu/tests/native.rs",
    "crates/ferrax-linalg/tests/main.rs",
    "crates/ferrax-kernel/tests/math_tiers.rs",
    "crates/ferrax-python/src/array/buffers.rs",
    "crates/ferrax-python/src/ffi/fork.rs",
    "crates/ferrax-python/src/ffi/frames.rs",
    "crates/ferrax-python/src/ffi/lent.rs",
    "crates/ferrax-python/src/ffi/mpi.rs",
    "crates/ferrax-python/src/ffi/recursion.rs",
    "crates/ferrax-python/src/ffi/threads.rs",
    "crates/ferrax-python/src/jit/vectorcall.rs",
    "crates/ferrax-testkit/examples/trace.rs",
    "crates/ferrax-testkit/tests/forks.rs",
    "crates/ferrax-testkit/tests/out_of_memory.rs",
    "crates/ferrax-wgpu/src/device/pipeline.rs",
];

/// Longer files are listed, not refused: the list is a question to their reader.
const MAX_LINES: usize = 600;

type Rule = fn(&[File]) -> Vec<String>;

const RULES: &[Rule] = &[
    arrows,
    transforms_name_no_primitive,
    unsafe_lives_in_named_modules,
    promises_name_tests,
    modules_are_named_and_introduced,
    nothing_is_left_open,
    no_path_of_one_machine,
    messages_speak_of_this_library,
    facts_stand_once,
    hooks_alone_name_the_package,
    cpu_functions_are_short,
    annotations_are_inline,
    every_test_file_is_built,
    globals::globals_are_listed,
    layers::python_imports_point_down,
    layers::tests_mirror_the_package,
    names::types_have_names_of_their_own,
    rooms::rooms_form_no_ring,
    thresholds::thresholds_stand_in_tunings,
    words::words_are_the_fields,
];

pub fn run(_: &[String]) -> Res {
    let files = tracked()?;
    let complaints: Vec<String> = RULES.iter().flat_map(|rule| rule(&files)).collect();
    for c in &complaints {
        println!("{c}");
    }
    report_long_files(&files);
    if complaints.is_empty() { Ok(()) } else { fail(format!("tidy: {} complaints", complaints.len())) }
}

fn sources<'a>(files: &'a [File], ext: &'a str) -> impl Iterator<Item = &'a File> {
    files.iter().filter(move |f| f.path.ends_with(ext))
}

fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or("")
}

/// Whether `word` occurs in `line` as a whole identifier.
fn has_word(line: &str, word: &str) -> bool {
    let ident = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].chars().next_back().is_some_and(ident) && !line[at + word.len()..].chars().next().is_some_and(ident)
    })
}

fn arrows(files: &[File]) -> Vec<String> {
    let mut out = Vec::new();
    for f in files.iter().filter(|f| f.path.ends_with("/Cargo.toml")) {
        let name = f.path.split('/').rev().nth(1).unwrap_or_default();
        let Some((_, allowed)) = ARROWS.iter().find(|(n, _)| *n == name) else {
            if f.path.starts_with("crates/") {
                out.push(format!("{}: the crate {name} has no arrows in xtask/src/tidy.rs", f.path));
            }
            continue;
        };
        let mut section = String::new();
        for line in f.text.lines().map(str::trim) {
            if let Some(s) = line.strip_prefix('[') {
                section = s.trim_end_matches(']').to_string();
                continue;
            }
            let dep = line.split(['=', '.', ' ']).next().unwrap_or_default();
            let ours = ARROWS.iter().any(|(n, _)| *n == dep);
            let test_only = section.ends_with("dev-dependencies");
            if ours && section.ends_with("dependencies") && !allowed.contains(&dep) && !(test_only && dep != "xtask") {
                out.push(format!("{}: {name} must not use {dep}", f.path));
            }
        }
    }
    out
}

/// Backends cannot name one (they do not see ferrax-ir); transforms could, so they are read.
fn transforms_name_no_primitive(files: &[File]) -> Vec<String> {
    let mut ops = BTreeSet::new();
    for f in files.iter().filter(|f| f.path == "crates/ferrax-ir/src/op.rs") {
        let list = f.text.split("\nops! {").nth(1).and_then(|rest| rest.split("\n}").next()).unwrap_or("");
        // A row of the list reads `first DotGeneral(dot::DotGeneral);`
        ops.extend(list.lines().filter_map(|l| l.split_whitespace().nth(1)?.split('(').next()));
    }
    let mut out = Vec::new();
    for f in sources(files, ".rs").filter(|f| f.path.starts_with("crates/ferrax-transform/src/")) {
        for (n, line) in f.text.lines().enumerate() {
            if line.contains("#[cfg(test)]") {
                break;
            }
            let line = code(line);
            let names =
                |op: &&&str| has_word(line, &format!("Op::{op}")) || (line.contains("ops::") && has_word(line, op));
            if let Some(op) = ops.iter().find(names) {
                out.push(format!("{}:{}: a transform names the primitive {op}", f.path, n + 1));
            }
        }
    }
    out
}

fn unsafe_lives_in_named_modules(files: &[File]) -> Vec<String> {
    let mut out = Vec::new();
    for path in UNSAFE {
        let spent = |f: &&File| f.path == *path && !f.text.lines().any(|l| has_word(code(l), "unsafe"));
        out.extend(files.iter().find(spent).map(|f| format!("{}: named for its unsafe blocks, and has none", f.path)));
    }
    for f in sources(files, ".rs").filter(|f| f.path.starts_with("crates/")) {
        if f.path.ends_with("/src/lib.rs")
            && !f.text.contains("#![forbid(unsafe_code)]")
            && !f.text.contains("#![deny(unsafe_code)]")
        {
            out.push(format!(
                "{}: wants #![forbid(unsafe_code)], or #![deny(unsafe_code)] and allowances by name",
                f.path
            ));
        }
        let named = UNSAFE.contains(&f.path.as_str());
        let lines: Vec<&str> = f.text.lines().collect();
        for (n, line) in lines.iter().enumerate() {
            let line = code(line);
            if !has_word(line, "unsafe") || line.contains('"') {
                continue;
            }
            if !named {
                out.push(format!("{}:{}: unsafe outside of the modules named in xtask/src/tidy.rs", f.path, n + 1));
            } else if line.contains("unsafe {") && !lines[n.saturating_sub(8)..=n].iter().any(|l| l.contains("SAFETY:"))
            {
                out.push(format!("{}:{}: an unsafe block without its SAFETY proof", f.path, n + 1));
            }
        }
    }
    out
}

/// Every test that `docs/reliability.md` names is there.
fn promises_name_tests(files: &[File]) -> Vec<String> {
    let doc = "docs/reliability.md";
    let text = files.iter().find(|f| f.path == doc).map_or("", |f| &f.text);
    let named = text.split('`').skip(1).step_by(2);
    let is_file = |name: &&str| [".rs", ".py", ".txt"].iter().any(|end| name.ends_with(end));
    let is_test = |name: &&str| name.contains('_') && name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let there = |f: &File, name: &str| f.path == name || f.path.ends_with(&format!("/{name}"));
    let mut out = Vec::new();
    for name in named.clone().filter(is_file).filter(|n| !files.iter().any(|f| there(f, n))) {
        out.push(format!("{doc}: there is no {name}"));
    }
    for name in named.filter(is_test).filter(|n| *n != "effects_barrier") {
        let defines = |f: &&File| f.path != doc && f.text.contains(&format!("fn {name}("));
        if sources(files, ".rs").find(defines).is_none() {
            out.push(format!("{doc}: there is no test {name}"));
        }
    }
    out
}

fn modules_are_named_and_introduced(files: &[File]) -> Vec<String> {
    let vague = ["utils", "util", "helpers", "helper", "common", "misc", "manager"];
    let mut out = Vec::new();
    for f in files {
        let name = f.path.rsplit('/').next().unwrap_or_default();
        let stem = name.split('.').next().unwrap_or_default().trim_start_matches('_');
        if name == "mod.rs" {
            out.push(format!("{}: foo.rs beside foo/, never {name}", f.path));
        }
        let jaxs = f.path.starts_with("python/ferrax/compat/_src/"); // named after JAX's modules
        if vague.contains(&stem) && !jaxs {
            out.push(format!("{}: the name does not say what is inside", f.path));
        }
        let introduced = match name.rsplit('.').next() {
            Some("rs") if f.path.starts_with("crates/") || f.path.starts_with("xtask/") => f.text.starts_with("//!"),
            Some("py") if f.path.starts_with("python/") => {
                let start = f.text.trim_start();
                start.starts_with("\"\"\"") || start.starts_with("r\"\"\"") || start.starts_with("#!")
            }
            _ => true,
        };
        if !introduced {
            out.push(format!("{}: wants a first line that says what the module is", f.path));
        }
    }
    out
}

fn nothing_is_left_open(files: &[File]) -> Vec<String> {
    let words = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("todo", "!("), concat!("unimplemented", "!(")];
    let mut out = Vec::new();
    for f in files.iter().filter(|f| f.path.ends_with(".rs") || f.path.ends_with(".py")) {
        for (n, line) in f.text.lines().enumerate() {
            if let Some(w) = words.iter().find(|w| line.contains(**w))
                && !line.contains(&format!("{w}(#"))
            {
                out.push(format!("{}:{}: {w} without an issue's number", f.path, n + 1));
            }
        }
    }
    out
}

fn no_path_of_one_machine(files: &[File]) -> Vec<String> {
    let paths = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/tmp/or", "acle")];
    let mut out = Vec::new();
    for f in files.iter().filter(|f| !f.path.ends_with(".lock")) {
        for (n, line) in f.text.lines().enumerate() {
            if let Some(p) = paths.iter().find(|p| line.contains(**p)) {
                out.push(format!("{}:{}: {p} is a path of one machine", f.path, n + 1));
            }
        }
    }
    out
}

/// What a user reads names no other compiler, and sends users to no other people's trackers. (One file says what JAX says, for users who wait for its words; one
/// reads a variable that programs set.)
fn messages_speak_of_this_library(files: &[File]) -> Vec<String> {
    let words = ["XLA", "MLIR", "StableHLO", "open an issue"];
    let mut out = Vec::new();
    let ours = |p: &str| {
        (p.starts_with("python/ferrax/") && p != "python/ferrax/compat/_logs.py")
            || (p.starts_with("crates/") && p.contains("/src/") && p != "crates/ferrax/src/device.rs")
    };
    for f in files.iter().filter(|f| ours(&f.path) && (f.path.ends_with(".rs") || f.path.ends_with(".py"))) {
        for (n, line) in f.text.lines().enumerate() {
            let said = if f.path.ends_with(".rs") { code(line) } else { line };
            if let Some(w) = words.iter().find(|w| said.contains(**w)) {
                out.push(format!("{}:{}: {w} is of other people's worlds", f.path, n + 1));
            }
        }
    }
    out
}

/// What Rust calls in the Python package is listed in one file. A class may say in which module users see it.
fn hooks_alone_name_the_package(files: &[File]) -> Vec<String> {
    let quoted = ["\"ferrax.", "\"ferrax\""];
    let mut out = Vec::new();
    let rust =
        |p: &str| p.starts_with("crates/ferrax-python/src/") && p.ends_with(".rs") && !p.ends_with("src/hooks.rs");
    for f in files.iter().filter(|f| rust(&f.path)) {
        for (n, line) in f.text.lines().enumerate() {
            let said = code(line);
            let class = said.contains("pyclass(") || said.contains("name: c\"");
            if !class && quoted.iter().any(|q| said.contains(q)) {
                out.push(format!("{}:{}: only hooks.rs names what Python's side defines", f.path, n + 1));
            }
        }
    }
    out
}

/// Facts that were once written twice, by the one place where each may stand: a text, the places that may hold it, and what it is.
const FACTS: &[(&str, &[&str], &str)] = &[
    ("version = \"0.", &["Cargo.toml"], "the version"),
    ("__version__ =", &["python/ferrax/_base/config.py"], "the version, which is the extension's"),
    ("def canonicalize_axis(", &["python/ferrax/_base/shapes.py"], "how an axis is counted from the front"),
    ("def canonicalize_axes(", &["python/ferrax/_base/shapes.py"], "how axes are counted from the front"),
    ("def canonicalize_shape(", &["python/ferrax/_base/shapes.py"], "what a shape may be"),
    ("def is_inexact(", &["python/ferrax/_base/dtypes.py"], "which dtypes are inexact"),
    ("def issubdtype(", &["python/ferrax/_base/dtypes.py", "python/ferrax/dtypes.py"], "the hierarchy of dtypes"),
];

fn facts_stand_once(files: &[File]) -> Vec<String> {
    let mut out = Vec::new();
    let read = |p: &str| {
        (p.starts_with("python/") && !p.ends_with(".pyi"))
            || p == "pyproject.toml"
            || (p.starts_with("crates/") && p.ends_with("Cargo.toml"))
    };
    for f in files.iter().filter(|f| read(&f.path)) {
        for (n, line) in f.text.lines().enumerate() {
            for (text, places, what) in FACTS.iter().filter(|(text, ..)| line.starts_with(text)) {
                if !places.contains(&f.path.as_str()) {
                    let place = places.first().map_or("elsewhere".to_string(), |p| format!("in {p}"));
                    out.push(format!("{}:{}: {what} stands {place} already ({text})", f.path, n + 1));
                }
            }
        }
    }
    out
}

/// The sources of the CPU engine.
const ENGINE: [&str; 3] = ["crates/ferrax-host/src/", "crates/ferrax-linalg/src/", "crates/ferrax-cpu/src/"];
/// The longest function of the CPU engine. Each strategy is a function of its own.
const LONGEST_FUNCTION: usize = 100;

fn cpu_functions_are_short(files: &[File]) -> Vec<String> {
    let mut out = vec![];
    // the decoder that tests read code with is one pass over its instructions
    let is_read = |f: &&File| f.path.ends_with(".rs") && !f.path.contains("native/decoded");
    for f in files.iter().filter(|f| ENGINE.iter().any(|krate| f.path.starts_with(krate))).filter(is_read) {
        let lines: Vec<&str> = f.text.lines().collect();
        for (n, line) in lines.iter().enumerate() {
            let indent = line.len() - line.trim_start().len();
            let is_signature = has_word(code(line), "fn") && !line.trim_start().starts_with("//");
            if !is_signature || line.trim_end().ends_with(['}', ';']) {
                continue;
            }
            // rustfmt puts the closing brace below the signature's first character
            let end = lines[n..].iter().position(|l| l.len() == indent + 1 && l.ends_with('}'));
            if let Some(length) = end.filter(|length| *length >= LONGEST_FUNCTION) {
                out.push(format!(
                    "{}:{}: a function of {} lines, {LONGEST_FUNCTION} at most",
                    f.path,
                    n + 1,
                    length + 1
                ));
            }
        }
    }
    out
}

/// Where a crate lists its test programs, a file of tests that is in none of them would be tests that never run.
fn every_test_file_is_built(files: &[File]) -> Vec<String> {
    let mut out = vec![];
    let manifests = files.iter().filter(|f| f.path.ends_with("/Cargo.toml") && f.text.contains("autotests = false"));
    for manifest in manifests {
        let folder = manifest.path.trim_end_matches("Cargo.toml");
        let is_program =
            |f: &&File| f.path.strip_prefix(folder).is_some_and(|p| manifest.text.contains(&format!("path = \"{p}\"")));
        let programs: Vec<&File> = files.iter().filter(is_program).collect();
        let tests = format!("{folder}tests/");
        for f in files {
            let name = f.path.strip_prefix(&tests).and_then(|p| p.strip_suffix(".rs")).unwrap_or("/");
            let listed = |p: &&&File| p.text.lines().any(|l| l == format!("mod {name};"));
            if !name.contains('/') && !is_program(&f) && !programs.iter().any(|p| listed(&p)) {
                out.push(format!("{}: in no test program of {}", f.path, manifest.path));
            }
        }
    }
    out
}

/// The extension's stub: the one module whose annotations cannot be in its source.
const STUB: &str = "python/ferrax/_core.pyi";

fn annotations_are_inline(files: &[File]) -> Vec<String> {
    files
        .iter()
        .filter(|f| f.path.starts_with("python/") && f.path.ends_with(".pyi") && f.path != STUB)
        .map(|f| format!("{}: annotations are inline; the only stub is {STUB}", f.path))
        .collect()
}

fn report_long_files(files: &[File]) {
    let mut long: Vec<(usize, &str)> = files
        .iter()
        .filter(|f| f.path.ends_with(".rs") || f.path.ends_with(".py"))
        .filter(|f| !f.path.contains("tests/"))
        .map(|f| (f.text.lines().count(), f.path.as_str()))
        .filter(|(n, _)| *n > MAX_LINES)
        .collect();
    long.sort_unstable_by(|a, b| b.cmp(a));
    for (n, path) in &long {
        println!("long: {path}, {n} lines");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(path: &str, text: &str) -> Vec<File> {
        vec![File { path: path.into(), text: text.into() }]
    }

    #[test]
    fn an_arrow_that_is_not_drawn_is_refused() {
        let bad = one("crates/ferrax-cpu/Cargo.toml", "[dependencies]\nferrax-ir = { workspace = true }\n");
        assert_eq!(arrows(&bad).len(), 1);
        let good = one(
            "crates/ferrax-cpu/Cargo.toml",
            "[dependencies]\nferrax-kernel.workspace = true\n[dev-dependencies]\nferrax-testkit.workspace = true\n",
        );
        assert!(arrows(&good).is_empty());
    }

    #[test]
    fn a_transform_that_names_a_primitive_is_refused() {
        let mut files = one("crates/ferrax-ir/src/op.rs", "\nops! {\n    first DotGeneral(dot::DotGeneral);\n}\n");
        files.extend(one(
            "crates/ferrax-transform/src/jvp.rs",
            "// Op::DotGeneral is fine here\nlet x = Op::DotGeneral;\n",
        ));
        assert_eq!(
            transforms_name_no_primitive(&files),
            ["crates/ferrax-transform/src/jvp.rs:2: a transform names the primitive DotGeneral"]
        );
    }

    #[test]
    fn unsafe_wants_a_named_module_and_a_proof() {
        assert_eq!(unsafe_lives_in_named_modules(&one("crates/ferrax-ir/src/a.rs", "unsafe { x() }")).len(), 1);
        assert_eq!(unsafe_lives_in_named_modules(&one("crates/ferrax-cpu/src/tape.rs", "unsafe { x() }")).len(), 1);
        assert!(
            unsafe_lives_in_named_modules(&one("crates/ferrax-cpu/src/tape.rs", "// SAFETY: x is.\nunsafe { x() }"))
                .is_empty()
        );
    }

    #[test]
    fn a_stub_beside_a_python_module_is_refused() {
        assert!(annotations_are_inline(&one(STUB, "class Array: ...")).is_empty());
        assert_eq!(annotations_are_inline(&one("python/ferrax/dtypes.pyi", "")).len(), 1);
    }

    #[test]
    fn a_module_named_outside_the_hooks_is_refused() {
        let bad = "py.import(\"ferrax.numpy\")?;\n#[pyclass(module = \"ferrax.core\")]\n// \"ferrax.lax\"\n";
        assert_eq!(hooks_alone_name_the_package(&one("crates/ferrax-python/src/a.rs", bad)).len(), 1);
        assert!(hooks_alone_name_the_package(&one("crates/ferrax-python/src/hooks.rs", bad)).is_empty());
    }

    #[test]
    fn words_are_whole() {
        assert!(
            has_word("Op::Add;", "Op::Add") && !has_word("Op::AddAny", "Op::Add") && !has_word("MyOp::Add", "Op::Add")
        );
    }
}
