//! Numbers in the CPU's sources: thresholds are in `tuning.rs`; other constants are listed here with their reasons.
//!
//! Invariant: a numeric constant of `ferrax-cpu`, `ferrax-linalg` and `ferrax-host` is a field of a `Tuning`, or one of the entries below, each of which exists.
use crate::files::File;

const CRATES: [&str; 3] = ["cpu", "host", "linalg"];
const FORMAT: &str = "a number of a foreign interface or of an instruction's encoding";
const BLOCK: &str = "the size of a block: arrays have it, and loops are compiled for it";
const ORDER: &str = "the size of a block whose order of sums is part of the results' bits";
const MEMORY: &str = "how much memory is kept, and in which classes";
const MARK: &str = "a mark: a value that no number takes";
const COST: &str = "the measured cost of one operation";

/// Crate and file, names, reason.
const CONSTANTS: &[(&str, &[&str], &str)] = &[
    ("cpu/dlpack.rs", &["MAJOR", "HOST", "READ_ONLY", "COMPLEX"], FORMAT),
    ("cpu/executable.rs", &["KEPT_ARENA"], MEMORY),
    ("cpu/lowering/alone.rs", &["MIN_ROWS", "MIN_COLUMNS"], BLOCK),
    ("cpu/kernels/address.rs", &["AT_ONCE"], BLOCK),
    ("cpu/kernels/address.rs", &["OUTSIDE"], MARK),
    ("cpu/kernels/fold.rs", &["WIDE", "MAX_ROW"], BLOCK),
    ("cpu/kernels/moves.rs", &["TRANSPOSED_SIDE", "COUNTED", "FAR", "MAX_SHORT_ROW"], BLOCK),
    ("cpu/kernels/program.rs", &["DIRECT"], MARK),
    ("cpu/kernels/program.rs", &["VECTOR"], BLOCK),
    ("cpu/kernels/program/patterns.rs", &["MAX_ROUNDS"], BLOCK),
    (
        "host/memory.rs",
        &["ALIGN", "LARGE", "HUGE_PAGE", "CLASSES", "THREAD_KEEPS", "THREAD_BLOCKS", "SHARED_KEEPS", "MAX_KEPT"],
        MEMORY,
    ),
    ("host/memory.rs", &["MADV_HUGEPAGE"], FORMAT),
    ("cpu/native/asm.rs", &["BASES", "SAVED", "TABLE", "LAST", "GATHERING", "TWICE"], FORMAT),
    ("cpu/native/encode.rs", &["RAX", "RCX", "RDX", "RBX", "RSP", "RBP", "RSI", "RDI", "R8"], FORMAT),
    ("cpu/native/encode.rs", &["MASK", "ROW_MASK", "ZEROING", "ROW_ALONE"], FORMAT),
    ("cpu/native/encode.rs", &["BELOW", "EQUAL", "NOT_EQUAL", "NOT_ABOVE", "LESS", "NOT_GREATER"], FORMAT),
    ("cpu/instructions/graph.rs", &["EVENS_FIRST", "HALF_BIAS"], FORMAT),
    ("cpu/native/masks.rs", &["FIRST", "END"], FORMAT),
    ("cpu/native/nest.rs", &["MAX_WORDS"], MEMORY),
    ("cpu/nest/frame.rs", &["OPERAND_WORDS"], MEMORY),
    ("cpu/native/nest/allocate.rs", &["WHOLE", "FLOATS"], FORMAT),
    ("cpu/native/nest/emit.rs", &["V0", "V1", "V2"], FORMAT),
    ("cpu/native/nest/emit.rs", &["SHORT"], "how late a cancelled run may end"),
    ("cpu/nest.rs", &["FOLD_SCRATCH"], MEMORY),
    ("cpu/nest/vectors/calls.rs", &["ALIGN"], MEMORY),
    ("cpu/nest/vectors.rs", &["MAX_WIDTH"], BLOCK),
    ("cpu/nest/vectors.rs", &["VECTOR", "LONG_VECTOR", "VECTOR_SUMS"], BLOCK),
    ("cpu/nest/facts.rs", &["MAX_TERMS"], "terms of an index that are kept apart"),
    ("cpu/native/pages.rs", &["MAX_PAGES"], MEMORY),
    ("cpu/instructions/record.rs", &["EQ", "NE", "LT", "LE", "UNORDERED"], FORMAT),
    ("cpu/native/regalloc.rs", &["NONE", "SPILL"], MARK),
    ("cpu/routines/conv/lines.rs", &["BLOCKS"], BLOCK),
    ("cpu/routines/cumulative.rs", &["ABREAST"], BLOCK),
    ("cpu/routines/cumulative/columns.rs", &["COLUMNS", "ROW", "LEVEL_ROWS"], BLOCK),
    ("cpu/routines/dot.rs", &["NANOS"], COST),
    ("cpu/routines/dot.rs", &["COLUMNS", "TINY"], BLOCK),
    ("cpu/routines/dot/library.rs", &["BATCH"], BLOCK),
    ("cpu/routines/fft.rs", &["NANOS"], COST),
    ("cpu/routines/fft.rs", &["LINES"], BLOCK),
    ("cpu/routines/fft/halves.rs", &["PAIRS"], BLOCK),
    ("cpu/routines/fft/pairs.rs", &["NUMBERS"], BLOCK),
    ("linalg/batch.rs", &["NANOS"], COST),
    ("linalg/bidiagonalization.rs", &["PANEL", "PIECES"], ORDER),
    ("linalg/eigen_divide_and_conquer.rs", &["LEAF", "MAX_STEPS"], ORDER),
    ("linalg/partial_pivoting.rs", &["PANEL", "STRIP", "LANES"], ORDER),
    ("linalg/cholesky.rs", &["BLOCK", "STRIP", "MAX_ROWS", "BATCH"], ORDER),
    ("linalg/blocked.rs", &["PANEL", "BLOCK", "WIDE", "NARROW", "SIDE", "LANES"], ORDER),
    ("linalg/blocked.rs", &["NANOS"], COST),
    ("linalg/blocked/lu.rs", &["PANEL"], ORDER),
    ("linalg/blocked/symmetric_eigen.rs", &["SIDE"], BLOCK),
    ("linalg/vector_merge.rs", &["ROWS"], BLOCK),
    ("linalg/householder.rs", &["BATCH", "ROWS", "SIDE"], ORDER),
    ("linalg/matrix_vector.rs", &["GROUP", "STRIP", "BATCH"], ORDER),
    ("linalg/secular_equation.rs", &["LANES"], ORDER),
    ("linalg/svd_divide_and_conquer.rs", &["LEAF", "MAX_STEPS"], ORDER),
    ("linalg/triangular_solve.rs", &["SIDES", "STRIP"], ORDER),
    ("linalg/householder_qr.rs", &["STRIP"], ORDER),
    ("linalg/tridiagonalization.rs", &["PANEL", "PIECES", "ROWS"], ORDER),
    ("linalg/lanes.rs", &["LANES"], BLOCK),
    ("host/panel.rs", &["SLACK", "DEPTH", "MEMORY", "BLOCK_DEPTH", "BLOCK_ROWS", "BLOCK_PANELS", "BLOCKS"], ORDER),
    ("host/panel.rs", &["PADDING", "PANEL_PADDING", "PARTS", "MIN_PREFETCHED_BYTES"], BLOCK),
    ("host/panel/x86.rs", &["LANES"], BLOCK),
    ("cpu/routines/sort.rs", &["LOW"], FORMAT),
    ("cpu/routines/strided.rs", &["CHUNK"], BLOCK),
    ("cpu/routines/top_k.rs", &["BATCH"], BLOCK),
    ("cpu/routines/vector.rs", &["SUMS", "ROWS", "COLUMNS", "FEW_COLUMNS"], ORDER),
    ("cpu/routines/vector.rs", &["LINE", "STREAMS"], BLOCK),
    ("cpu/routines/vector.rs", &["NANOS"], COST),
    ("host/share.rs", &["CLOSED"], MARK),
    ("host/share.rs", &["SPINS"], "how long a thread spins before it sleeps"),
    ("host/standby.rs", &["MAX_PARKED"], BLOCK),
    ("host/standby.rs", &["IDLE", "PARKED", "SIGNALLED", "ASSIGNED"], MARK),
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
        let source = f.path.strip_prefix("crates/ferrax-").and_then(|p| p.split_once("/src/"));
        let Some((krate, file)) = source.filter(|s| CRATES.contains(&s.0) && s.1 != "tuning.rs") else { continue };
        let file = format!("{krate}/{file}");
        let lines = f.text.lines().take_while(|l| !l.contains("#[cfg(test)]"));
        for (n, name) in lines.enumerate().filter_map(|(n, l)| Some((n, declared(l)?))) {
            // numbers of an element type: limits of its format
            if name == "MIN_NORMAL" || name == "ROUNDING" {
                continue;
            }
            found.push((file.clone(), name));
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
        let spent = names.iter().filter(|n| !found.contains(&(file.to_string(), **n)));
        out.extend(spent.map(|n| format!("xtask/src/thresholds.rs: {file} has no constant {n}")));
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
