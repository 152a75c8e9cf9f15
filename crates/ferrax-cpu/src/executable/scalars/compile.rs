//! Selects the loops that become scalar code.
//!
//! INVARIANT: a loop becomes scalar code completely or not at all. Cells that an iteration reads before it writes them are its carries.
use super::build::{ScalarBuilder, as_code, replaced, tiled};
use super::repeat::{LazyLoop, ScalarTrips, ScalarWindow};
use super::{CellScalar, Code, Reg, ScalarIns, ScalarLoop};
use crate::executable::{Cell, Compiler};
use crate::native::{LoopText, WindowElement};
use ferrax_kernel::DType;
use ferrax_kernel::plan::{Carry, Loop, SlotId, Trip, Window};

/// Whether all carries and windows are few elements of fixed shapes.
fn is_small(c: &Compiler, l: &Loop) -> bool {
    let most = c.target.tuning.scalars.max_slot_elements;
    let slot = |s: SlotId| &c.plan.slots[s as usize];
    let few = |s: SlotId| (1..=most).contains(&slot(s).len) && slot(s).tape == 0;
    let same = |s: SlotId, t: SlotId| slot(s).len == slot(t).len && slot(s).dtype == slot(t).dtype;
    let carries =
        l.carries.iter().all(|k| [k.init, k.slot, k.next, k.out].into_iter().all(|s| few(s) && same(s, k.slot)));
    let is_plain = |w: &Window| {
        let inside = |n: usize| n.saturating_mul(slot(w.each).len) <= slot(w.all).len;
        few(w.each) && slot(w.all).tape == 0 && matches!(l.trip, Trip::Static(n) if inside(n))
    };
    carries && l.xs.iter().chain(&l.ys).all(is_plain)
}
/// Bytes at which the elements of a slot begin.
fn offsets(c: &Compiler, s: SlotId) -> impl Iterator<Item = usize> + use<> {
    let slot = &c.plan.slots[s as usize];
    let size = slot.dtype.size();
    (0..slot.len).map(move |e| e * size)
}
/// Registers of carries and windows: those read before the loop, those of the carries' slots, and
/// those of windows that are read.
struct LoopRegisters {
    reads: Vec<CellScalar>,
    slots: Vec<Reg>,
    xs: Vec<ScalarWindow>,
}
fn registers(c: &Compiler, l: &Loop, b: &mut ScalarBuilder) -> Option<LoopRegisters> {
    let dtype = |s: SlotId| c.plan.slots[s as usize].dtype;
    let mut r = LoopRegisters { reads: vec![], slots: vec![], xs: vec![] };
    for k in &l.carries {
        let (dtype, init, cell) = (dtype(k.slot), c.cell(k.init), c.cell(k.slot));
        if b.known.contains_key(&(cell, 0)) {
            return None;
        }
        for offset in offsets(c, k.slot) {
            let reg = b.fresh(0)?;
            r.reads.push(CellScalar { cell: init, offset, dtype, reg });
            b.known.insert((cell, offset), (dtype, reg));
            r.slots.push(reg);
        }
    }
    for w in &l.xs {
        let dtype = dtype(w.each);
        for offset in offsets(c, w.each) {
            let reg = b.fresh(0)?;
            b.known.insert((c.cell(w.each), offset), (dtype, reg));
            let place = CellScalar { cell: c.cell(w.all), offset, dtype, reg };
            r.xs.push(ScalarWindow { place, stride: c.bytes(w.each) });
        }
    }
    Some(r)
}
/// The registers with the next values of the carries, and the windows that are written.
fn results(c: &Compiler, l: &Loop, b: &mut ScalarBuilder) -> Option<(Vec<Reg>, Vec<ScalarWindow>)> {
    let dtype = |s: SlotId| c.plan.slots[s as usize].dtype;
    let (mut next, mut ys) = (vec![], vec![]);
    for k in &l.carries {
        for offset in offsets(c, k.next) {
            next.push(b.element(c.cell(k.next), offset, dtype(k.next))?);
        }
    }
    for w in &l.ys {
        for offset in offsets(c, w.each) {
            let reg = b.element(c.cell(w.each), offset, dtype(w.each))?;
            let place = CellScalar { cell: c.cell(w.all), offset, dtype: dtype(w.each), reg };
            ys.push(ScalarWindow { place, stride: c.bytes(w.each) });
        }
    }
    Some((next, ys))
}
/// Moves in parallel, and the instructions before them: a `next` that is another carry's slot is kept aside first.
fn moves(b: &mut ScalarBuilder, mut next: Vec<Reg>, slots: &[Reg]) -> Option<(Vec<ScalarIns>, Vec<(Reg, Reg)>)> {
    let (mut aside, mut moves) = (vec![], vec![]);
    for (n, s) in next.iter_mut().zip(slots) {
        if *n != *s && slots.contains(n) {
            let d = b.fresh(0)?;
            aside.push(ScalarIns { code: Code::Move, d, a: *n, b: *n, c: *n });
            *n = d;
        }
        if *n != *s {
            moves.push((*n, *s));
        }
    }
    Some((aside, moves))
}

/// The loop as scalar code, if it can be, and if that is no more work than its tiles.
pub fn compile_loop(c: &Compiler, l: &Loop) -> Option<ScalarLoop> {
    if !is_small(c, l) {
        return None;
    }
    let t = &c.target.tuning.scalars;
    let is_scalar = l.carries.iter().all(|k| c.plan.slots[k.slot as usize].len == 1);
    let tiled = if is_scalar { f64::INFINITY } else { tiled(&l.body) };
    let longest = t.max_loop_operations.min((tiled / t.nanos[1]) as usize);
    let mut b = ScalarBuilder::of(t.max_slot_elements, Some(longest), &c.target.tuning);
    let LoopRegisters { mut reads, slots, xs } = registers(c, l, &mut b)?;
    let mut condition = Some(vec![]);
    let trips = match &l.trip {
        Trip::Static(n) => ScalarTrips::Static(*n),
        Trip::Dyn(s) => {
            let (cell, dtype) = (c.cell(*s), c.plan.slots[*s as usize].dtype);
            ScalarTrips::Dyn(CellScalar { cell, offset: 0, dtype, reg: 0 })
        }
        Trip::While { cond, pred } => {
            if !cond.iter().all(|s| b.step(c, s)) {
                return None;
            }
            let reg = b.element(c.cell(*pred), 0, DType::Bool)?;
            let code = std::mem::take(&mut b.block.code);
            condition = replaced(&code, std::mem::take(&mut b.what));
            // The body starts from the carries, not from values that the condition computed.
            ScalarTrips::While(code, reg)
        }
    };
    if !l.body.iter().all(|s| b.step(c, s)) {
        return None;
    }
    let body_text = replaced(&b.block.code, std::mem::take(&mut b.what));
    let (next, ys) = results(c, l, &mut b)?;
    // A cell that an iteration reads before it writes would carry a value over: only carries may.
    if b.block.reads.iter().any(|p| b.written.contains_key(&p.cell)) {
        return None;
    }
    let windows = Windows::of(&xs, &ys, l.reverse);
    let text = body_text.zip(condition).and_then(|(body, condition)| {
        let text = LoopText {
            state: reads.iter().chain(&b.block.reads).map(|p| (p.reg, p.dtype)).collect(),
            next: slots.iter().copied().zip(next.iter().copied()).filter(|(s, n)| s != n).collect(),
            condition,
            goes_on: if let ScalarTrips::While(_, reg) = trips { Some(reg) } else { None },
            body,
            xs: windows.elements(&xs),
            ys: windows.elements(&ys),
            steps: windows.steps.clone(),
        };
        as_code(c, text)
    });
    if b.block.code.len() as f64 * t.nanos[text.is_some() as usize] > tiled {
        return None;
    }
    let mut body = std::mem::take(&mut b.block.code);
    let (aside, moves) = moves(&mut b, next, &slots)?;
    body.extend(aside);
    reads.extend(b.block.reads.iter().copied());
    let elements = l.carries.iter().flat_map(|k| offsets(c, k.slot).map(move |offset| (k, offset)));
    let place = |((k, offset), reg): ((&Carry, usize), &Reg)| {
        let dtype = c.plan.slots[k.slot as usize].dtype;
        CellScalar { cell: c.cell(k.out), offset, dtype, reg: *reg }
    };
    Some(ScalarLoop {
        file: b.block.file,
        trips,
        reverse: l.reverse,
        reads,
        xs,
        body,
        ys,
        moves,
        outs: elements.zip(&slots).map(place).collect(),
        count: l.count.map(|s| (c.cell(s), c.bytes(s))),
        kernels: b.block.kernels,
        lazy: text.map(|text| LazyLoop::new(text, windows.at)),
    })
}
/// The windows of a loop, as native code accesses them.
struct Windows {
    /// Base cells, and bytes from one element to the next.
    at: Vec<(Cell, usize)>,
    steps: Vec<i32>,
}
impl Windows {
    fn of(xs: &[ScalarWindow], ys: &[ScalarWindow], reverse: bool) -> Windows {
        let mut at: Vec<(Cell, usize)> = vec![];
        for w in xs.iter().chain(ys) {
            let window = (w.place.cell, w.stride);
            if !at.contains(&window) {
                at.push(window);
            }
        }
        let steps = at.iter().map(|w| if reverse { -(w.1 as i32) } else { w.1 as i32 }).collect();
        Windows { at, steps }
    }
    fn elements(&self, all: &[ScalarWindow]) -> Vec<WindowElement> {
        let window = |w: &ScalarWindow| self.at.iter().position(|at| *at == (w.place.cell, w.stride)).unwrap_or(0);
        let element = |w: &ScalarWindow| WindowElement {
            reg: w.place.reg,
            window: window(w) as u32,
            at: w.place.offset as u32,
            dtype: w.place.dtype,
        };
        all.iter().map(element).collect()
    }
}
