//! Every law for every example of every primitive; see `laws.rs` and `examples.rs` of the crate. `FERRAX_ONLY=name` keeps the examples
//! whose text contains the name.
use ferrax_testkit::api::{nums, sc};
use ferrax_testkit::examples::{self, ELSEWHERE, Example};
use ferrax_testkit::laws::LAWS;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// All examples under one law; every failure is reported, not only the first.
fn holds(name: &str) {
    let law = LAWS.iter().find(|l| l.0 == name).expect("a law").1;
    let only = std::env::var("FERRAX_ONLY").unwrap_or_default();
    let chosen: Vec<Example> = examples::all().into_iter().filter(|e| e.text.contains(&only)).collect();
    assert!(!chosen.is_empty(), "no example says {only}");
    let failed: Vec<String> =
        chosen.iter().filter_map(|e| catch_unwind(AssertUnwindSafe(|| law(e))).err().map(|p| said(e, p))).collect();
    assert!(failed.is_empty(), "{name}: {} of {} examples\n{}", failed.len(), chosen.len(), failed.join("\n"));
}
fn said(e: &Example, p: Box<dyn std::any::Any + Send>) -> String {
    match p.downcast::<String>() {
        Ok(s) => *s,
        Err(p) => format!("{}: {:?}", e.text, p.downcast_ref::<ferrax_ir::Error>()),
    }
}

#[test]
fn types_are_what_infer_says() {
    holds("run");
}
/// 2**31 positions have numbers below 2**31; one more has not.
#[test]
fn the_longest_axis_of_top_k() {
    let e = |n: usize| Example::parse(&format!("top_k[axis=0 k=1] i8[{n}]"));
    assert!([1 << 31, (1 << 31) - 1].iter().all(|n| e(*n).op.rules().infer(&e(*n).avals()).is_ok()));
    assert!(e((1 << 31) + 1).op.rules().infer(&e((1 << 31) + 1).avals()).is_err());
}
/// No two draws agree, so it has no example.
#[test]
fn uniform_draws_lie_between_their_bounds() {
    let op = Example::parse("rng_uniform[shape=(50,)] f64[] f64[]").op;
    let x = nums(&ferrax_ir::cx::bind(&op, &[sc(2.0), sc(2.5)]).unwrap()[0]);
    assert!(x.len() == 50 && x.iter().all(|x| (2.0..2.5).contains(x)) && x.windows(2).any(|w| w[0] != w[1]), "{x:?}");
}
#[test]
fn a_system_of_no_unknowns_has_no_solution() {
    let none = "{ lambda ; . let  in () }";
    let e = Example::parse(&format!(
        "custom_linear_solve[const_lengths=(0, 0, 0, 0) jaxprs=({none} {none} {none} {none})]"
    ));
    assert!(e.op.rules().infer(&[]).unwrap().is_empty());
}
#[test]
fn text_reads_back() {
    holds("text");
}
#[test]
fn cpu_is_the_reference() {
    holds("reference");
}
#[test]
fn staged_is_eager_bit_for_bit() {
    holds("staged");
}
#[test]
fn derivatives_are_finite_differences() {
    holds("derivative");
}
#[test]
fn transposes_are_adjoint() {
    holds("adjoint");
}
#[test]
fn batches_are_loops_over_lanes() {
    holds("lanes");
}
#[test]
fn named_axes_nest_with_batches() {
    holds("nested");
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = |text: &&&str| {
        let (op, avals) = ferrax_ir::text::parse_application(text).expect("an application");
        matches!(catch_unwind(AssertUnwindSafe(|| op.rules().infer(&avals))), Ok(Err(_)))
    };
    let accepted: Vec<&&str> = examples::refused::LINES.iter().filter(|text| !refused(text)).collect();
    assert!(accepted.is_empty(), "{} are not refused with an error:\n{accepted:#?}", accepted.len());
}

#[test]
fn a_refusal_names_what_does_not_fit() {
    let lines = [
        ("select_n bool[2] f64[2] f32[2]", "got float64, float32."),
        (
            "scatter[dimension_numbers=ScatterDimensionNumbers(update_window_dims=(1,) inserted_window_dims=(1,) scatter_dims_to_operand_dims=(1,) operand_batching_dims=(0,) scatter_indices_batching_dims=(0,)) indices_are_sorted=False mode=GatherScatterMode.CLIP unique_indices=False] f64[2,3] i32[2,1] f64[2,1]",
            "window of size 3; doesn't match operand of rank 2.",
        ),
    ];
    for (text, words) in lines {
        let (op, avals) = ferrax_ir::text::parse_application(text).expect("an application");
        let e = op.rules().infer(&avals).expect_err(text);
        assert!(e.message().contains(words), "{e:?}");
    }
}

#[test]
fn a_pair_outside_the_axis_is_refused() {
    for pair in ["(0, 2)", "(2, 0)"] {
        let e = Example::parse(&format!("lanes 2: ppermute[axis_name=(i,) perm=({pair},)] f64[3]"));
        let y = ferrax_testkit::api::catch(|| e.call(&e.values(&e.avals(), 0)));
        assert!(y.is_err_and(|e| e.message().contains("out of range")), "{pair}");
    }
}

fn names_within(op: &ferrax_ir::Op, out: &mut BTreeSet<&'static str>) {
    out.insert(op.name());
    for p in op.bodies() {
        p.eqns().iter().for_each(|e| names_within(&e.op, out));
    }
}
#[test]
fn every_primitive_has_examples() {
    let mut seen = BTreeSet::new();
    examples::all().iter().for_each(|e| names_within(&e.op, &mut seen));
    let elsewhere: BTreeSet<&str> = ELSEWHERE.iter().map(|e| e.0).collect();
    let missing: Vec<&str> =
        ferrax_ir::Op::names().into_iter().filter(|n| !seen.contains(n) && !elsewhere.contains(n)).collect();
    assert!(missing.is_empty(), "no example of {missing:?}");
    let stale: Vec<&&str> = elsewhere.iter().filter(|n| seen.contains(*n)).collect();
    assert!(stale.is_empty(), "{stale:?} have examples and are excused too");
}
