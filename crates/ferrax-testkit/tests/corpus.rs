//! The corpus (`tests/corpus/*.toml`) on the reference evaluator and on every tier of the CPU. The GPU's runner is in ferrax-wgpu.
use ferrax_cpu::{CpuBackend, Tier};
use ferrax_kernel::reference::{self, ReferenceBackend};
use ferrax_kernel::{Bin, ReduceKind, Scalar, Un};
use ferrax_testkit::corpus::{self, Tolerances, cases, families};
use std::collections::BTreeSet;

fn tier(t: Tier) {
    let Some(b) = CpuBackend::with_tier(t) else {
        eprintln!("this machine has no {}: nothing was tested", t.name());
        return;
    };
    corpus::check("cpu", &b);
}

#[test]
fn reference_answers() {
    corpus::check("cpu", &ReferenceBackend);
}
#[test]
fn avx512_answers() {
    tier(Tier::Avx512);
}
#[test]
fn avx2_answers() {
    tier(Tier::Avx2);
}
#[test]
fn portable_answers() {
    tier(Tier::Portable);
}

/// Bit for bit, but that all nans are one.
#[test]
fn tiers_agree() {
    let tiers: Vec<(Tier, CpuBackend)> =
        Tier::ALL.into_iter().filter_map(|t| Some((t, CpuBackend::with_tier(t)?))).collect();
    let mut wrong = vec![];
    for c in families().iter().flat_map(|f| cases(f)) {
        let values = |b: &CpuBackend| -> Vec<Vec<Scalar>> {
            let outs = c.run(b).unwrap_or_else(|e| panic!("{}: {e}", c.text));
            let slots = c.plan.outputs.iter().map(|s| c.plan.slots[*s as usize].dtype);
            slots.zip(outs).map(|(d, y)| reference::read(d, &y)).collect()
        };
        let same = |x: &Scalar, y: &Scalar| x == y || x.dtype.is_float() && x.to_f64().is_nan() && y.to_f64().is_nan();
        let first = values(&tiers[0].1);
        for (t, b) in &tiers[1..] {
            let equal = values(b).iter().zip(&first).all(|(x, y)| x.iter().zip(y).all(|(x, y)| same(x, y)));
            if !equal {
                wrong.push(format!("{} on {}", c.text, t.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} cases have other bits than on portable:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_primitive_has_a_case() {
    let missing = corpus::missing();
    assert!(missing.is_empty(), "no case of {missing:?}");
}
/// The plans of the corpus use every part of the waist.
#[test]
fn every_scalar_function_and_routine_has_a_case() {
    let text: String = families().iter().flat_map(|f| cases(f)).map(|c| c.plan.to_string()).collect();
    let words: BTreeSet<&str> = text.split_whitespace().collect();
    // no primitive lowers to trunc
    let functions =
        Un::ALL.iter().filter(|f| **f != Un::Trunc).map(|f| f.name()).chain(Bin::ALL.iter().map(|f| f.name()));
    let missing: Vec<&str> =
        functions.chain(ReduceKind::ALL.iter().map(|k| k.name())).filter(|n| !words.contains(n)).collect();
    assert!(missing.is_empty(), "no case of {missing:?}");
    for r in [
        "dot",
        "gather",
        "scatter",
        "dynamic_slice",
        "dynamic_update_slice",
        "sort",
        "top_k",
        "cumulative",
        "conv",
        "linalg",
    ] {
        assert!(words.contains(r), "no case of {r}");
    }
}
/// A family's file is named as it is in ferrax-ir/src/ops.
#[test]
fn families_are_named_as_in_the_ir() {
    let ops = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../ferrax-ir/src/ops");
    for f in families() {
        assert!(ops.join(format!("{f}.rs")).exists(), "{f}");
    }
}
/// No row of tolerance.toml that no case reads.
#[test]
fn tolerances_are_used() {
    let used: BTreeSet<String> = families().iter().flat_map(|f| cases(f)).map(|c| c.tolerance).collect();
    let stale: Vec<String> = Tolerances::read().names().filter(|n| !used.contains(*n)).cloned().collect();
    assert!(stale.is_empty(), "nothing reads the rows {stale:?}");
}
