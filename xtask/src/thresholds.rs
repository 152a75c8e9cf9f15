//! Numbers in the CPU's sources: thresholds are in `tuning.rs`; other constants are listed here with their reasons.
//!
//! Invariant: a numeric constant of `crates/ferrax-cpu/src` is a field of a `Tuning`, or one of the entries below, each of which exists.
use crate::files::File;

const FOLDER: &str = "crates/ferrax-cpu/src/";
const FORMAT: &str = "a number of a foreign interface or of an instruction's encoding";
const BLOCK: &str = "the size of a block: arrays have it, and loops are compiled for it";
const ORDER: &str = "the size of a block whose order of sums is part of the results' bits";
const MEMORY: &str = "how much memory is kept, and in which classes";
const MARK: &str = "a mark: a value that no number takes";
const COST: &str = "the measured cost of one operation";

/// File, names, reason.
const CONSTANTS: &[(&str, &[&str], &str)] = &[
    ("dlpack.rs", &["MAJOR", "HOST", "READ_ONLY", "COMPLEX"], FORMAT),
    ("executable.rs", &["KEPT_ARENA"], MEMORY),
    ("kernels/address.rs", &["AT_ONCE"], BLOCK),
    ("kernels/address.rs", &["OUTSIDE"], MARK),
    ("kernels/columns.rs", &["COLUMNS_OF_VECTOR"], BLOCK),
    ("kernels/fold.rs", &["WIDE", "MAX_ROW"], BLOCK),
    ("kernels/moves.rs", &["TRANSPOSED_SIDE", "COUNTED", "FAR", "MAX_SHORT_ROW"], BLOCK),
    ("kernels/program.rs", &["DIRECT"], MARK),
    ("kernels/program.rs", &["VECTOR"], BLOCK),
    ("kernels/program/patterns.rs", &["MAX_ROUNDS"], BLOCK),
    (
        "memory.rs",
        &["ALIGN", "LARGE", "HUGE_PAGE", "CLASSES", "THREAD_KEEPS", "THREAD_BLOCKS", "SHARED_KEEPS", "MAX_KEPT"],
        MEMORY,
    ),
    ("memory.rs", &["MADV_HUGEPAGE"], FORMAT),
    ("native/asm.rs", &["BASES", "SAVED", "TABLE", "LAST", "GATHERING", "TWICE"], FORMAT),
    ("native/encode.rs", &["RAX", "RCX", "RDX", "RBX", "RSP", "RBP", "RSI", "RDI", "R8"], FORMAT),
    ("native/encode.rs", &["MASK", "ROW_MASK", "ZEROING", "ROW_ALONE"], FORMAT),
    ("native/encode.rs", &["BELOW", "EQUAL", "NOT_EQUAL", "NOT_ABOVE", "LESS", "NOT_GREATER"], FORMAT),
    ("native/folding.rs", &["CHAINS", "MAX_ACCUMULATORS"], BLOCK),
    ("native/folding.rs", &["PAIRS", "ONES"], FORMAT),
    ("instructions/graph.rs", &["EVENS_FIRST", "HALF_BIAS"], FORMAT),
    ("native/masks.rs", &["FIRST", "END"], FORMAT),
    ("native/nest.rs", &["MAX_WORDS"], MEMORY),
    ("nest/frame.rs", &["OPERAND_WORDS"], MEMORY),
    ("native/nest/allocate.rs", &["WHOLE", "FLOATS"], FORMAT),
    ("native/nest/emit.rs", &["V0", "V1", "V2"], FORMAT),
    ("native/nest/emit.rs", &["SHORT"], "how late a cancelled run may end"),
    ("nest.rs", &["FOLD_SCRATCH"], MEMORY),
    ("nest/vectors/calls.rs", &["ALIGN"], MEMORY),
    ("nest/vectors.rs", &["MAX_WIDTH"], BLOCK),
    ("nest/vectors.rs", &["VECTOR", "LONG_VECTOR", "VECTOR_SUMS"], BLOCK),
    ("nest/facts.rs", &["MAX_TERMS"], "terms of an index that are kept apart"),
    ("native/pages.rs", &["MAX_PAGES"], MEMORY),
    ("instructions/record.rs", &["EQ", "NE", "LT", "LE", "UNORDERED"], FORMAT),
    ("native/regalloc.rs", &["NONE", "SPILL"], MARK),
    ("routines/conv/lines.rs", &["BLOCKS"], BLOCK),
    ("routines/cumulative.rs", &["ABREAST"], BLOCK),
    ("routines/cumulative/columns.rs", &["COLUMNS", "ROW", "LEVEL_ROWS"], BLOCK),
    ("routines/dot.rs", &["NANOS"], COST),
    ("routines/dot.rs", &["COLUMNS", "TINY"], BLOCK),
    ("routines/dot/library.rs", &["BATCH"], BLOCK),
    ("routines/fft.rs", &["NANOS"], COST),
    ("routines/fft.rs", &["LINES"], BLOCK),
    ("routines/fft/halves.rs", &["PAIRS"], BLOCK),
    ("routines/fft/pairs.rs", &["NUMBERS"], BLOCK),
    ("routines/linalg.rs", &["NANOS"], COST),
    ("routines/linalg/bidiagonal.rs", &["PANEL", "PIECES"], ORDER),
    ("routines/linalg/conquer.rs", &["LEAF", "MAX_STEPS"], ORDER),
    ("routines/linalg/elimination.rs", &["PANEL", "STRIP", "LANES"], ORDER),
    ("routines/linalg/factor.rs", &["BLOCK", "STRIP", "MAX_ROWS", "BATCH"], ORDER),
    ("routines/linalg/large.rs", &["PANEL", "BLOCK", "WIDE", "NARROW", "SIDE", "LANES"], ORDER),
    ("routines/linalg/large.rs", &["NANOS"], COST),
    ("routines/linalg/large/elimination.rs", &["PANEL"], ORDER),
    ("routines/linalg/large/symmetric.rs", &["SIDE"], BLOCK),
    ("routines/linalg/merged.rs", &["ROWS"], BLOCK),
    ("routines/linalg/reflections.rs", &["BATCH", "ROWS", "SIDE"], ORDER),
    ("routines/linalg/rows.rs", &["GROUP", "STRIP", "BATCH"], ORDER),
    ("routines/linalg/secular.rs", &["LANES"], ORDER),
    ("routines/linalg/singular.rs", &["LEAF", "MAX_STEPS"], ORDER),
    ("routines/linalg/substitute.rs", &["SIDES", "STRIP"], ORDER),
    ("routines/linalg/triangular.rs", &["STRIP"], ORDER),
    ("routines/linalg/tridiagonal.rs", &["PANEL", "PIECES", "ROWS"], ORDER),
    ("routines/linalg/vectors.rs", &["LANES"], BLOCK),
    ("routines/panel.rs", &["SLACK", "DEPTH", "MEMORY", "BLOCK_DEPTH", "BLOCK_ROWS", "BLOCK_PANELS", "BLOCKS"], ORDER),
    ("routines/panel.rs", &["PADDING", "PANEL_PADDING", "PARTS"], BLOCK),
    ("routines/panel/x86.rs", &["LANES"], BLOCK),
    ("routines/sort.rs", &["LOW"], FORMAT),
    ("routines/strided.rs", &["CHUNK"], BLOCK),
    ("routines/top_k.rs", &["BATCH"], BLOCK),
    ("routines/vector.rs", &["SUMS", "ROWS", "COLUMNS", "FEW_COLUMNS"], ORDER),
    ("routines/vector.rs", &["LINE", "STREAMS"], BLOCK),
    ("routines/vector.rs", &["NANOS"], COST),
    ("share.rs", &["CLOSED"], MARK),
    ("share.rs", &["SPINS"], "how long a thread spins before it sleeps"),
    ("standby.rs", &["MAX_PARKED"], BLOCK),
    ("standby.rs", &["IDLE", "PARKED", "SIGNALLED", "ASSIGNED"], MARK),
];

/// The name of a numeric constant that a line declares with a value of its own, not with one of a `Tuning`.
fn declared(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line
        .strip_prefix("pub(super) ")
        .or(line.strip_prefix("pub(crate) "))
        .or(line.strip_prefix("pub "))
        .unwrap_or(line);
    let (name, rest) = line.strip_prefix("const ")?.split_once(": ")?;
    let (kind, value) = rest.split_once(" = ").or(rest.strip_suffix(" =").map(|kind| (kind, "")))?;
    let kind = kind.trim_start_matches('[').split(';').next()?;
    let is_number =
        ["usize", "isize", "u8", "u16", "u32", "u64", "u128", "i8", "i16", "i32", "i64", "f32", "f64"].contains(&kind);
    (is_number && !value.contains("TUNING.") && !value.contains("Tuning::")).then_some(name)
}

pub fn thresholds_stand_in_tunings(files: &[File]) -> Vec<String> {
    let mut found = vec![];
    let mut out = vec![];
    for f in files.iter().filter(|f| f.path.ends_with(".rs") && !f.path.contains("/decoded")) {
        let Some(file) = f.path.strip_prefix(FOLDER).filter(|file| *file != "tuning.rs") else { continue };
        let lines = f.text.lines().take_while(|l| !l.contains("#[cfg(test)]"));
        for (n, name) in lines.enumerate().filter_map(|(n, l)| Some((n, declared(l)?))) {
            // numbers of an element type: limits of its format
            if name == "MIN_NORMAL" || name == "ROUNDING" {
                continue;
            }
            found.push((file, name));
            if !CONSTANTS.iter().any(|c| c.0 == file && c.1.contains(&name)) {
                out.push(format!(
                    "{}:{}: {name} is a threshold: make it a field of a Tuning in tuning.rs, or it is listed in xtask/src/thresholds.rs with its reason",
                    f.path,
                    n + 1
                ));
            }
        }
    }
    for (file, names, _) in CONSTANTS {
        let spent = names.iter().filter(|n| !found.contains(&(*file, **n)));
        out.extend(spent.map(|n| format!("xtask/src/thresholds.rs: {FOLDER}{file} has no constant {n}")));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_known_by_their_lines() {
        assert_eq!(declared("    pub const MOST: usize = 64;"), Some("MOST"));
        assert_eq!(declared("const BASES: [u8; 9] = [1, 2];"), Some("BASES"));
        assert_eq!(declared("const TRIES: u32 = TUNING.runs_of_try;"), None);
        assert_eq!(declared("const NAME: &str = \"x\";"), None);
        assert_eq!(declared("fn f<const N: usize>() {}"), None);
    }
}
