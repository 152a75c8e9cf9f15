//! Which loops are scalar code throughout.
//!
//! INVARIANT: a loop is taken whole or not at all; what an iteration reads before it writes are its carries.
use super::build::{EACH, LONGEST, MOST, ScalarBuilder, as_code, replaced, tiled};
use super::repeat::{LazyLoop, ScalarTrips, ScalarWindow};
use super::{CellScalar, Code, ScalarIns, ScalarLoop};
use crate::executable::{Cell, Compiler};
use crate::native::{LoopText, WindowElement};
use ferrax_kernel::DType;
use ferrax_kernel::plan::{Loop, SlotId, Trip};

/// The loop as scalar code, if it can be, and if that is no more work than its tiles.
pub fn compile_loop(c: &Compiler, l: &Loop) -> Option<ScalarLoop> {
    let few = |s: SlotId| (1..=MOST).contains(&c.plan.slots[s as usize].len) && c.plan.slots[s as usize].tape == 0;
    let len = |s: SlotId| c.plan.slots[s as usize].len;
    if !l.carries.iter().all(|k| [k.init, k.slot, k.next, k.out].into_iter().all(|s| few(s) && len(s) == len(k.slot))) {
        return None;
    }
    let plain = |w: &ferrax_kernel::plan::Window| {
        few(w.each)
            && c.plan.slots[w.all as usize].tape == 0
            && matches!(l.trip, Trip::Static(n) if n.saturating_mul(len(w.each)) <= len(w.all))
    };
    if !l.xs.iter().chain(&l.ys).all(plain) {
        return None;
    }
    let dtype = |s: SlotId| c.plan.slots[s as usize].dtype;
    let is_scalar = l.carries.iter().all(|k| len(k.slot) == 1);
    let tiled = if is_scalar { f64::INFINITY } else { tiled(&l.body) };
    let mut b = ScalarBuilder::of(MOST, Some(LONGEST.min((tiled / EACH[1]) as usize)));
    // Carries and windows are registers from the start.
    let mut reads = vec![];
    let mut slots = vec![];
    for k in &l.carries {
        let d = dtype(k.slot);
        if [k.init, k.next, k.out].into_iter().any(|s| dtype(s) != d) {
            return None;
        }
        let (init, cell) = (c.cell(k.init), c.cell(k.slot));
        if b.known.contains_key(&(cell, 0)) {
            return None;
        }
        for offset in (0..len(k.slot)).map(|e| e * d.size()) {
            let reg = b.fresh(0)?;
            reads.push(CellScalar { cell: init, offset, dtype: d, reg });
            b.known.insert((cell, offset), (d, reg));
            slots.push(reg);
        }
    }
    let mut xs = vec![];
    for w in &l.xs {
        let d = dtype(w.each);
        for offset in (0..len(w.each)).map(|e| e * d.size()) {
            let reg = b.fresh(0)?;
            b.known.insert((c.cell(w.each), offset), (d, reg));
            let place = CellScalar { cell: c.cell(w.all), offset, dtype: d, reg };
            xs.push(ScalarWindow { place, stride: len(w.each) * d.size() });
        }
    }
    let mut condition = Some(vec![]);
    let trips = match &l.trip {
        Trip::Static(n) => ScalarTrips::Static(*n),
        Trip::Dyn(s) => {
            let cell = c.cell(*s);
            ScalarTrips::Dyn(CellScalar { cell, offset: 0, dtype: dtype(*s), reg: 0 })
        }
        Trip::While { cond, pred } => {
            if !cond.iter().all(|s| b.step(c, s)) {
                return None;
            }
            let reg = b.element(c.cell(*pred), 0, DType::Bool)?;
            let code = std::mem::take(&mut b.block.code);
            condition = replaced(&code, std::mem::take(&mut b.what));
            // The body starts from the carries, not from what the condition made.
            ScalarTrips::While(code, reg)
        }
    };
    if !l.body.iter().all(|s| b.step(c, s)) {
        return None;
    }
    let body_text = replaced(&b.block.code, std::mem::take(&mut b.what));
    let mut next = vec![];
    for k in &l.carries {
        for e in 0..len(k.slot) {
            next.push(b.element(c.cell(k.next), e * dtype(k.next).size(), dtype(k.next))?);
        }
    }
    let mut ys = vec![];
    for w in &l.ys {
        let d = dtype(w.each);
        for offset in (0..len(w.each)).map(|e| e * d.size()) {
            let reg = b.element(c.cell(w.each), offset, d)?;
            let place = CellScalar { cell: c.cell(w.all), offset, dtype: d, reg };
            ys.push(ScalarWindow { place, stride: len(w.each) * d.size() });
        }
    }
    // A cell that an iteration reads before it writes would carry a value over: only carries may.
    let early = |p: &CellScalar| b.written.contains_key(&p.cell);
    if b.block.reads.iter().any(early) {
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
    if b.block.code.len() as f64 * EACH[text.is_some() as usize] > tiled {
        return None;
    }
    // Moves in parallel: a next that is another carry's slot is kept aside first.
    let mut body = std::mem::take(&mut b.block.code);
    let mut moves = vec![];
    for (n, s) in next.iter_mut().zip(&slots) {
        if *n != *s && slots.contains(n) {
            let d = b.fresh(0)?;
            body.push(ScalarIns { code: Code::Move, d, a: *n, b: *n, c: *n });
            *n = d;
        }
        if *n != *s {
            moves.push((*n, *s));
        }
    }
    reads.extend(b.block.reads.iter().copied());
    let elements = l.carries.iter().flat_map(|k| (0..len(k.slot)).map(move |e| (k, e)));
    let outs = elements
        .zip(&slots)
        .map(|((k, e), reg)| {
            let d = dtype(k.slot);
            CellScalar { cell: c.cell(k.out), offset: e * d.size(), dtype: d, reg: *reg }
        })
        .collect();
    let count = l.count.map(|s| (c.cell(s), c.bytes(s)));
    Some(ScalarLoop {
        file: b.block.file,
        trips,
        reverse: l.reverse,
        reads,
        xs,
        body,
        ys,
        moves,
        outs,
        count,
        kernels: b.block.kernels,
        lazy: text.map(|text| LazyLoop::new(text, windows.at)),
    })
}
/// The windows of a loop as code sees them.
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
