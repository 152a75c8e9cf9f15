//! The functions of the CPU that choose between strategies: what `cargo xtask mutate --picks` forces the other way.
//!
//! Invariant: a function listed here is pure, or makes its choice once for each compiled kernel, routine or loop, so that the text of the
//! compiled plan shows the choice.
use super::arms::{self, Mutant};
use super::{Family, Res, Tests, root};
use crate::shell::fail;
use std::fs;

const OF_CPU: [&str; 4] = ["--package", "ferrax-cpu", "--features", "linalg,fft,gemm,avx512"];

/// Every condition of these functions, negated, and every bound, moved by one. What the CPU compiles is text in `tests/filetests/cpu`. Tests of
/// values (`--values`) notice choices that are no strategies, but what a strategy is given: every strategy gives the same bits.
pub const PICKS: Family = Family {
    excuses: "crates/ferrax-testkit/equivalent_picks.txt",
    folder: "crates/ferrax-cpu/src/",
    package: "ferrax-cpu",
    features: &["--features", "linalg,fft,gemm,avx512"],
    switch: "",
    uses: " #[allow(unused_imports)] use std::ops::Not as _;",
    find: all_picks,
    tests: Tests {
        builds: &[
            &["--package", "ferrax-testkit", "--test", "testkit"],
            &[OF_CPU[0], OF_CPU[1], OF_CPU[2], OF_CPU[3], "--test", "cpu"],
        ],
        first: &[("testkit-", "filetests::"), ("cpu-", "tuning::")],
        others: false,
        slow: &[],
    },
    values: Tests {
        builds: &[&[OF_CPU[0], OF_CPU[1], OF_CPU[2], OF_CPU[3], "--lib", "--test", "cpu"]],
        first: &[("ferrax_cpu-", ""), ("cpu-", "routines::"), ("cpu-", "loops::")],
        others: false,
        slow: &[],
    },
};

/// By file: the functions that choose. (Whether threads share a piece of work is measured at run time: `threads.rs` has unit tests.)
const FUNCTIONS: &[(&str, &[&str])] = &[
    ("executable.rs", &["steps"]),
    ("executable/control.rs", &["compile", "compile_loop"]),
    ("executable/nests.rs", &["compile", "compile_block", "is_scalar"]),
    ("lowering/rows.rs", &["kernel_in_loops", "matrix_vector", "window"]),
    ("lowering/alone.rs", &["new", "in_blocks", "shape"]),
    ("executable/row_groups.rs", &["add", "can_reorder_before", "pays", "finish", "common_rows", "holds", "of_loop"]),
    ("kernels.rs", &["new"]),
    ("kernels/pieces.rs", &["pieces", "is_interleaved", "crossed", "blocked"]),
    ("kernels/program/build.rs", &["compile", "in_place", "out_direct", "interleaved", "pairs"]),
    ("kernels/program/code.rs", &["run_from", "vector", "is_for_tier", "pays"]),
    ("kernels/program/nest.rs", &["is_part_of_vector", "is_for_code", "merged_dims", "is_counted", "is_shared_row"]),
    ("kernels/program/patterns.rs", &["find", "turn", "round"]),
    ("kernels/program/registers.rs", &["tile", "finish"]),
    ("kernels/reduce.rs", &["compile", "column_dims", "whole_rows"]),
    ("kernels/unroll.rs", &["unrolled"]),
    ("nest/fuse.rs", &["joined", "is_injective"]),
    ("nest/simplify/iterations.rs", &["kind_of", "is_independent", "is_apart"]),
    ("nest/vectors.rs", &["statements", "in_vectors"]),
    ("nest/vectors/calls.rs", &["by_rows", "reads_after_stores"]),
    ("nest/vectors/columns.rs", &["in_columns", "flattened", "has_columns"]),
    ("nest/vectors/jam.rs", &["jammed", "is_plain", "copies_of"]),
    ("nest/vectors/values.rs", &["is_vector_op", "is_near"]),
    ("routines/conv.rs", &["compile"]),
    ("routines/conv/groups.rs", &["new", "compile"]),
    ("routines/conv/lines.rs", &["new"]),
    ("routines/conv/planes.rs", &["new", "compile"]),
    ("routines/conv/windows.rs", &["new"]),
    ("routines/cumulative.rs", &["compile"]),
    ("routines/dot.rs", &["pick", "is_small", "compile"]),
    ("routines/dynamic_slice.rs", &["new"]),
    ("routines/fft.rs", &["pick", "compile", "compiled"]),
    ("routines/gather.rs", &["new"]),
    ("routines/scatter.rs", &["addresses", "pick", "identity", "compile"]),
    ("routines/sort.rs", &["pick", "compile"]),
    ("routines/top_k.rs", &["compile"]),
    ("routines/vector.rs", &["pick_strategy", "compile"]),
    ("tuning.rs", &["splits_results"]),
];

/// Those of decompositions.
const OF_LINALG: (&str, &[&str]) = ("crates/ferrax-linalg/src/batch.rs", &["pick", "new"]);

fn all_picks() -> Res<Vec<Mutant>> {
    let mut all = Vec::new();
    let of_cpu = FUNCTIONS.iter().map(|(file, functions)| (format!("{}{file}", PICKS.folder), *functions));
    for (path, functions) in of_cpu.chain([(OF_LINALG.0.to_string(), OF_LINALG.1)]) {
        let text = fs::read_to_string(root().join(&path)).map_err(|e| format!("{path}: {e}"))?;
        if let Some(name) =
            functions.iter().find(|f| !["(", "<"].iter().any(|end| text.contains(&format!("fn {f}{end}"))))
        {
            return fail(format!("{path} has no function {name}: see xtask/src/mutate/picks.rs"));
        }
        all.extend(arms::find_picks(&path, &text, functions));
    }
    Ok(all)
}
