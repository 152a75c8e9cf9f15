//! Broken plans: lowered programs and the waist's examples with one to three things in them changed. Each is refused by
//! `Plan::verify`, or gives on the CPU, donated inputs and a used arena included, what it gives with memory of its own for each slot.
//! `MUTANTS=n` sets how many are made of each plan.
use crate::examples;
use ferrax_cpu::CpuBackend;
use ferrax_ir::lower::lower;
use ferrax_kernel::backend::RunArg;
use ferrax_kernel::plan::{Loop, Place, SlotId, Step, Trip};
use ferrax_kernel::reference::{self, ReferenceBackend};
use ferrax_kernel::{Backend, DType, Kernel, Node, Plan, Res, Routine, RunCx, Scalar, VerifiedPlan};
use ferrax_testkit::api::*;
use ferrax_testkit::rng::Rng;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn visit<'a>(steps: &'a [Step], f: &mut dyn FnMut(&'a Step)) {
    for s in steps {
        f(s);
        match s {
            Step::Loop(l) => {
                if let Trip::While { cond, .. } = &l.trip {
                    visit(cond, f);
                }
                visit(&l.body, f);
            }
            Step::Switch { branches, .. } => branches.iter().for_each(|b| visit(b, f)),
            _ => (),
        }
    }
}
fn any(p: &Plan, is: impl Fn(&Step) -> bool) -> bool {
    let mut found = false;
    visit(&p.steps, &mut |s| found |= is(s));
    found
}
fn blocks(steps: &mut Vec<Step>) -> Vec<&mut Vec<Step>> {
    // a recursive walk would borrow twice: it collects the blocks of each step, since the list
    // itself is not reachable afterwards
    let mut out = vec![];
    for s in steps {
        match s {
            Step::Loop(l) => {
                let Loop { trip, body, .. } = &mut **l;
                if let Trip::While { cond, .. } = trip {
                    out.push(cond);
                }
                out.push(body);
            }
            Step::Switch { branches, .. } => out.extend(branches.iter_mut()),
            _ => (),
        }
    }
    out
}
/// Some block of the plan, the outermost one in one case of two.
fn block<'a>(steps: &'a mut Vec<Step>, r: &mut Rng) -> &'a mut Vec<Step> {
    let inner = blocks(steps).len();
    if inner == 0 || r.below(2) == 0 {
        return steps;
    }
    let k = r.below(inner);
    block(blocks(steps).swap_remove(k), r)
}
fn slots_of<'a>(s: &'a mut Step, out: &mut Vec<&'a mut SlotId>) {
    match s {
        Step::Kernel { ins, outs, .. }
        | Step::Routine { ins, outs, .. }
        | Step::Callback { ins, outs, .. }
        | Step::Collective { ins, outs, .. } => out.extend(ins.iter_mut().chain(outs)),
        Step::Copy { from: a, to: b } | Step::TapeLen { tape: a, out: b } => out.extend([a, b]),
        Step::EmptyTape { out: o } => out.push(o),
        Step::Switch { index, outs, .. } => out.extend(std::iter::once(index).chain(outs)),
        Step::Loop(l) => {
            match &mut l.trip {
                Trip::Dyn(n) => out.push(n),
                Trip::While { pred, .. } => out.push(pred),
                Trip::Static(_) => (),
            }
            out.extend(l.carries.iter_mut().flat_map(|c| [&mut c.init, &mut c.slot, &mut c.next, &mut c.out]));
            out.extend(l.xs.iter_mut().chain(&mut l.ys).flat_map(|w| [&mut w.all, &mut w.each]));
            out.extend(&mut l.count);
        }
    }
}

/// Moves slots in memory: the plan's meaning is unchanged.
fn misplace(p: &mut Plan, r: &mut Rng) {
    let n = p.slots.len();
    if n == 0 {
        return;
    }
    let s = r.below(n);
    match r.below(9) {
        0 => p.places[s] = Place::Arena(64 * r.below(p.arena / 64 + 2)),
        1 => p.places[s] = Place::Same(r.below(n) as SlotId),
        2 => {
            let t = r.below(n);
            p.places.swap(s, t);
        }
        3 => p.places[s] = Place::Output(r.below(p.outputs.len() + 1) as u32),
        4 => p.places[s] = Place::Input(r.below(p.inputs.len() + 1) as u32),
        5 => p.places[s] = [Place::Window, Place::Tape, Place::Arena(8 * r.below(32))][r.below(3)].clone(),
        6 => p.arena = [p.arena.saturating_add(64), p.arena.saturating_sub(64), 0, usize::MAX][r.below(4)],
        7 => {
            let to = Some(r.below(p.inputs.len() + 1) as u32);
            if let Some(d) = r.of(&mut p.donatable) {
                *d = to;
            }
        }
        // two slots whose lifetimes may be disjoint: often still sound
        _ => {
            if let Place::Arena(at) = p.places[r.below(n)] {
                p.places[s] = Place::Arena(at);
            }
        }
    }
}
/// Changes the plan's meaning, or makes it meaningless.
fn rewrite(p: &mut Plan, r: &mut Rng) {
    let n = p.slots.len();
    match r.below(10) {
        0 => {
            if let Some(s) = r.of(&mut p.slots) {
                s.len = [s.len.saturating_add(1), s.len.saturating_sub(1), 0, usize::MAX][r.below(4)];
            }
        }
        1 => {
            if let Some(s) = r.of(&mut p.slots) {
                s.dtype = [DType::F32, DType::F64, DType::I32, DType::Bool][r.below(4)];
            }
        }
        2 => {
            if let Some(s) = r.of(&mut p.slots) {
                s.tape = r.below(3) as u8;
            }
        }
        3 => {
            let b = block(&mut p.steps, r);
            if !b.is_empty() {
                b.remove(r.below(b.len()));
            }
        }
        4 => {
            let b = block(&mut p.steps, r);
            if !b.is_empty() {
                let (i, j) = (r.below(b.len()), r.below(b.len()));
                b.swap(i, j);
            }
        }
        5 => {
            let b = block(&mut p.steps, r);
            if !b.is_empty() {
                let s = b[r.below(b.len())].clone();
                b.insert(r.below(b.len() + 1), s);
            }
        }
        6 => {
            let to = r.below(n + 1) as SlotId;
            let b = block(&mut p.steps, r);
            if let Some(s) = r.of(b) {
                let mut ids = vec![];
                slots_of(s, &mut ids);
                if let Some(id) = r.of(&mut ids) {
                    **id = to;
                }
            }
        }
        7 => {
            let to = r.below(n + 1) as SlotId;
            let which = r.below(2);
            if let Some(s) = r.of(if which == 0 { &mut p.outputs } else { &mut p.inputs }) {
                *s = to;
            }
        }
        8 => {
            let b = block(&mut p.steps, r);
            if let Some(Step::Loop(l)) = r.of(b) {
                l.reverse ^= true;
                if let Trip::Static(n) = &mut l.trip {
                    *n = [n.saturating_add(1), n.saturating_sub(1), *n][r.below(3)];
                }
            }
        }
        _ => {
            let b = block(&mut p.steps, r);
            if let Some(Step::Kernel { kernel, .. }) = r.of(b) {
                let mut k: Kernel = (**kernel).clone();
                if let Some((_, Node::Load(a))) = r.of(&mut k.nodes) {
                    a.at.offset = a.at.offset.saturating_add([1, -1, i64::MAX, 1 << 40][r.below(4)]);
                }
                *kernel = Arc::new(k);
            }
        }
    }
}

fn operand(d: DType, len: usize, seed: usize) -> Vec<u8> {
    let x: Vec<Scalar> = (0..len).map(|i| Scalar::from_f64(d, ((i * 7 + seed * 3) % 5) as f64)).collect();
    reference::write(&x)
}
fn run(device: &dyn Backend, plan: &VerifiedPlan, ins: &[Vec<u8>], donate: bool) -> Res<Vec<Vec<u8>>> {
    let exe = device.compile(plan.clone())?;
    let mut out = vec![];
    // the second run finds the first one's arena
    for _ in 0..2 {
        let args = ins.iter().map(|b| Ok(RunArg { buffer: device.upload(b)?, donated: donate })).collect::<Res<_>>()?;
        let bufs = exe.run(&RunCx { cancel: &AtomicBool::new(false), world: None }, args)?;
        out = bufs.iter().map(|b| device.download(b)).collect::<Res<_>>()?;
    }
    Ok(out)
}
fn scalars(d: DType, b: &[u8]) -> Vec<Scalar> {
    let nan = Scalar::from_f64(d, f64::NAN);
    reference::read(d, b).into_iter().map(|s| if d.is_float() && s.to_f64().is_nan() { nan } else { s }).collect()
}
/// The same steps, with memory of its own for each slot.
fn spread(p: &Plan) -> Plan {
    let mut p = p.clone();
    p.arena = 0;
    for s in 0..p.slots.len() {
        if !matches!(p.places[s], Place::Window | Place::Tape) {
            p.places[s] = Place::Arena(p.arena);
            p.arena += p.slots[s].bytes().next_multiple_of(64);
        }
    }
    for (i, s) in p.inputs.iter().enumerate().filter(|(_, s)| p.slots[**s as usize].tape == 0) {
        p.places[*s as usize] = Place::Input(i as u32);
    }
    p.donatable.iter_mut().for_each(|d| *d = None);
    p
}

/// Limits every loop to a few iterations, whatever its predicate: no mutation makes it infinite.
fn bounded(steps: &mut [Step]) {
    for s in steps {
        match s {
            Step::Loop(l) => {
                let trip = std::mem::replace(&mut l.trip, Trip::Static(3));
                match trip {
                    Trip::While { cond, .. } => drop(l.body.splice(..0, cond)),
                    Trip::Dyn(_) => (),
                    Trip::Static(n) => l.trip = Trip::Static(n),
                }
                bounded(&mut l.body);
            }
            Step::Switch { branches, .. } => branches.iter_mut().for_each(|b| bounded(b)),
            _ => (),
        }
    }
}

/// Programs of the file tests, before and after, and plans written by hand.
fn plans() -> Vec<(String, Plan)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests");
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .expect("tests/filetests")
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.is_file())
        .collect();
    paths.sort();
    let mut out: Vec<(String, Plan)> =
        examples::all().into_iter().enumerate().map(|(i, e)| (format!("{} ({i})", e.name), e.plan)).collect();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a text file");
        let (head, golden) = text.split_once("----\n").unwrap_or((&text, ""));
        let program = head.split_once('\n').expect("a task, then a program").1;
        for (what, text) in [("before", program), ("after", golden)] {
            let Ok(p) = parse(text) else { continue };
            let Ok(mut plan) = catch(|| lower(&p)) else { continue };
            bounded(&mut plan.steps);
            let tapes = plan.inputs.iter().any(|s| plan.slots[*s as usize].tape > 0);
            if !tapes && !plan.waits() {
                out.push((format!("{} {what}", path.file_stem().unwrap().to_string_lossy()), plan));
            }
        }
    }
    assert!(out.len() >= 50, "{} plans", out.len());
    out
}

#[test]
fn a_broken_plan_is_refused_or_right() {
    let each: usize = std::env::var("MUTANTS").map_or(200, |n| n.parse().expect("a number"));
    let (mut refused, mut right) = (0, 0);
    let cpu = CpuBackend::new();
    for (n, (name, plan)) in plans().into_iter().enumerate() {
        plan.clone().verify().unwrap_or_else(|e| panic!("{name}: {e}\n{plan}"));
        let mut r = Rng(0x9E37_79B9_7F4A_7C15 ^ (n as u64 + 1) << 32);
        // A mutated while loop may never end.
        let ends = !plan.unbounded();
        for _ in 0..each {
            let mut p = plan.clone();
            for _ in 0..1 + r.below(3) {
                if ends && r.below(2) == 0 { rewrite(&mut p, &mut r) } else { misplace(&mut p, &mut r) }
            }
            let Ok(verified) = p.clone().verify() else {
                refused += 1;
                continue;
            };
            right += 1;
            let ins: Vec<Vec<u8>> = p
                .inputs
                .iter()
                .enumerate()
                .map(|(i, s)| operand(p.slots[*s as usize].dtype, p.slots[*s as usize].len, i))
                .collect();
            let plain = run(&ReferenceBackend, &verified, &ins, false).unwrap_or_else(|e| panic!("{name}: {e}\n{p}"));
            // Fused multiply-adds differ from the reference by a bit: this test is about memory.
            let fused = |s: &Step| matches!(s, Step::Routine { routine, .. } if matches!(**routine, Routine::Dot(_)));
            let want = if any(&p, fused) {
                let apart = spread(&p).verify().unwrap_or_else(|e| panic!("{name}: {e}\n{p}"));
                run(&cpu, &apart, &ins, false).unwrap_or_else(|e| panic!("{name}: {e}\n{p}"))
            } else {
                plain
            };
            for donate in [false, true] {
                let got = run(&cpu, &verified, &ins, donate).unwrap_or_else(|e| panic!("{name}: {e}\n{p}"));
                for ((g, w), s) in got.iter().zip(&want).zip(&p.outputs) {
                    let d = p.slots[*s as usize].dtype;
                    assert_eq!(scalars(d, g), scalars(d, w), "{name}, donated: {donate}\n{p}");
                }
            }
        }
    }
    // A test that passes nothing, or everything, proves little.
    assert!(right * 20 > refused && refused > right, "{right} run, {refused} refused");
    eprintln!("{refused} refused, {right} run");
}
