//! Loops and branches in one dispatch: a persistent kernel, whose one workgroup runs the steps of the blocks and decides itself what comes next.
//!
//! ```text
//!     state = init;  loop { cond;  if (!pred) { break; }  body;  state = next; }  out = state
//! ```
//! Only blocks of small kernels are such: what a workgroup takes for their elements is less than what dispatches and the host's decisions take.
//!
//! INVARIANT: every slot that is written has memory of its own, in the state or as an output; a barrier follows each step. Control flow depends on
//! immediates, and on values that `workgroupUniformLoad` reads, alone.
use super::{Compiling, Run, Unit, Value};
use crate::device::pipeline::{Pipeline, Source, pipeline};
use crate::routines;
use crate::run::host::is_for_host;
use crate::task::Limits;
use crate::wgsl::rows::{Each, RowKernel};
use crate::wgsl::work::of_element;
use crate::wgsl::{self, Place, per_word};
use ferrax_kernel::kernel::{Kernel, Node};
use ferrax_kernel::plan::{Loop, SlotId, Step, Trip, Window};
use ferrax_kernel::{DType, Error, Res};
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::sync::Arc;

/// Elements of a kernel, and steps of all blocks, at most.
const MAX_ELEMENTS: usize = 4096;
const MAX_STEPS: usize = 64;
/// Iterations of one dispatch, at most.
const MAX_ITERATIONS: u64 = 4096;
/// The work of one invocation in one dispatch, which takes some 50 ms: a word of memory counts as eight. A software adapter takes them in turn.
const BUDGET: u64 = 1 << 24;
const SOFTWARE_BUDGET: u64 = BUDGET / 16;
/// What a loop of unknown length is taken to need of the time of its dispatch.
const UNKNOWN_PART: f64 = 0.5;
/// The work of a barrier.
const BARRIER: u64 = 400;
const BARRIERS: &str = "storageBarrier();\nworkgroupBarrier();\n";

/// How often its dispatch is repeated, each for so many iterations.
#[derive(Clone, Copy, Debug)]
enum Repeats {
    Once,
    /// Until there were so many iterations.
    Times(usize, u32),
    /// Until the first word of its state says so.
    Until(u32),
}

pub struct Persistent {
    pub pipeline: Arc<Pipeline>,
    pub ins: Vec<SlotId>,
    pub outs: Vec<SlotId>,
    /// Bytes of the state, from one dispatch to the next: whether the loop has ended, how many iterations there were, values of slots.
    state: usize,
    repeats: Repeats,
    /// What an iteration is of the longest time of a dispatch.
    part: f64,
}

impl Compiling<'_> {
    /// A loop or a switch as a persistent kernel, if it can be one.
    pub fn persistent(&self, step: &Step) -> Res<Option<Persistent>> {
        let limits = Limits::of(&self.device.limits);
        let mut w = Writer::new(self, limits, results(step));
        let Some(repeats) = w.all(step) else { return Ok(None) };
        let Some(source) = w.source() else { return Ok(None) };
        match pipeline(self.device, source) {
            // Direct3D's older compiler refuses barriers in loops whose end depends on memory
            Err(Error::Device(_)) if self.device.info.backend == wgpu::Backend::Dx12 => Ok(None),
            made => {
                let (pipeline, part) = (made?, w.cost as f64 / w.budget() as f64);
                Ok(Some(Persistent { pipeline, ins: w.ins, outs: w.outs, state: 4 * w.words, repeats, part }))
            }
        }
    }
}

/// The slots that a step leaves to later ones.
fn results(step: &Step) -> Vec<SlotId> {
    match step {
        Step::Loop(l) => {
            l.carries.iter().map(|c| c.out).chain(l.ys.iter().map(|w| w.all)).chain(l.count.iter().copied()).collect()
        }
        Step::Switch { outs, .. } => outs.clone(),
        _ => vec![],
    }
}

struct Writer<'a> {
    compiling: &'a Compiling<'a>,
    limits: Limits,
    places: HashMap<SlotId, Place>,
    ins: Vec<SlotId>,
    outs: Vec<SlotId>,
    /// Of the state.
    words: usize,
    /// Declarations of the memory that the workgroup shares.
    head: BTreeSet<String>,
    body: String,
    /// Of an iteration.
    cost: u64,
    steps: usize,
    loops: usize,
}

impl<'a> Writer<'a> {
    fn new(compiling: &'a Compiling<'a>, limits: Limits, outs: Vec<SlotId>) -> Writer<'a> {
        let place = |(i, s): (usize, &SlotId)| (*s, Place::of(format!("out{i}")));
        let places = outs.iter().enumerate().map(place).collect();
        let (head, body) = Default::default();
        Writer { compiling, limits, places, ins: vec![], outs, words: 2, head, body, cost: 0, steps: 0, loops: 0 }
    }

    /// All of it; none where a part is not suited.
    fn all(&mut self, step: &Step) -> Option<Repeats> {
        match step {
            Step::Loop(l) => self.outer(l),
            Step::Switch { index, branches, .. } => {
                self.switch(*index, branches)?;
                (self.cost <= self.budget()).then_some(Repeats::Once)
            }
            _ => None,
        }
    }
    fn budget(&self) -> u64 {
        if self.compiling.device.info.device_type == wgpu::DeviceType::Cpu { SOFTWARE_BUDGET } else { BUDGET }
    }
    fn source(&self) -> Option<Source> {
        let (reads, writes) = (self.ins.len(), self.outs.len() + 1);
        let shared: u64 = self.head.iter().map(|line| 4 * elements(line)).sum();
        let limit = self.compiling.device.limits.max_compute_workgroup_storage_size as u64;
        if reads + writes > self.limits.buffers || shared + 4 > limit || self.words > MAX_ELEMENTS * MAX_STEPS {
            return None;
        }
        let head: String = self.head.iter().map(|line| format!("{line}\n")).collect();
        let head = wgsl::bindings(reads, writes) + "var<workgroup> decision: i32;\n" + &head;
        let wgsl = wgsl::wrapped(head, self.limits.workgroup, &self.body);
        Some(Source { reads: reads as u32, writes: writes as u32, wgsl })
    }

    fn slot(&self, s: SlotId) -> Option<(DType, usize)> {
        let slot = &self.compiling.plan.slots[s as usize];
        (slot.tape == 0 && slot.dtype.size() <= 4).then_some((slot.dtype, slot.len))
    }
    fn state(&self) -> String {
        format!("out{}", self.outs.len())
    }
    fn memory(&mut self, s: SlotId) -> Option<Place> {
        let (d, len) = self.slot(s)?;
        let place = Place { base: self.words, ..Place::of(self.state()) };
        self.words += (len * d.size()).div_ceil(4);
        Some(place)
    }
    /// Where a slot is read: what nothing here has written comes from outside.
    fn read(&mut self, s: SlotId) -> Option<Place> {
        self.slot(s)?;
        if !self.places.contains_key(&s) {
            self.places.insert(s, Place::of(format!("in{}", self.ins.len())));
            self.ins.push(s);
        }
        self.places.get(&s).cloned()
    }
    /// Where a slot is written.
    fn written(&mut self, s: SlotId) -> Option<Place> {
        if !self.places.contains_key(&s) {
            let place = self.memory(s)?;
            self.places.insert(s, place);
        }
        self.slot(s)?;
        self.places.get(&s).cloned()
    }

    /// Statements of all invocations, each of which does so much.
    fn phase(&mut self, text: &str, cost: u64) -> Option<()> {
        let _ = write!(self.body, "{{\n{text}}}\n{BARRIERS}");
        self.cost = self.cost.saturating_add(cost + BARRIER);
        self.steps += 1;
        (self.steps <= MAX_STEPS).then_some(())
    }
    fn rounds(&self, elements: usize) -> u64 {
        (elements as u64).div_ceil(self.limits.workgroup as u64)
    }
    /// Copies that do not depend on each other.
    fn copies(&mut self, all: &[(Place, Place, SlotId)]) -> Option<()> {
        let (mut text, mut cost) = (String::new(), 0);
        for (from, to, s) in all {
            let (d, len) = self.slot(*s)?;
            text += &copied(from, to, d, len, self.limits.workgroup);
            cost += 20 * self.rounds(len);
        }
        if text.is_empty() { Some(()) } else { self.phase(&text, cost) }
    }

    fn steps(&mut self, steps: &[Step]) -> Option<()> {
        self.compiling.units(steps).iter().try_for_each(|unit| match unit {
            Unit::Rows(program, _) if !program.is_small(self.limits) => None,
            Unit::Rows(program, _) => self.rows(&program.rows, &program.ins, &program.outs),
            Unit::Updates(..) | Unit::Computed(..) | Unit::Together(..) => None,
            Unit::Step(step) => self.step(step),
        })
    }
    fn step(&mut self, step: &Step) -> Option<()> {
        match step {
            _ if is_for_host(step) => None,
            Step::Kernel { kernel, ins, outs } => self.kernel(kernel, ins, outs),
            Step::Routine { routine, ins, outs } if routines::is_small(routine, self.limits) => {
                self.kernel(&routines::as_kernel(routine)?, ins, outs)
            }
            Step::Copy { from, to } if from == to => Some(()),
            Step::Copy { from, to } => {
                let copy = (self.read(*from)?, self.written(*to)?, *to);
                self.copies(&[copy])
            }
            Step::Loop(l) => self.inner(l),
            Step::Switch { index, branches, .. } => self.switch(*index, branches),
            _ => None,
        }
    }
    fn kernel(&mut self, k: &Kernel, ins: &[SlotId], outs: &[SlotId]) -> Option<()> {
        if k.grid.size() == 0 {
            return outs.iter().try_for_each(|s| self.written(*s).map(drop));
        }
        if k.nodes.iter().any(|(_, n)| matches!(n, Node::Reduce { .. })) {
            let outputs = vec![Each::Row; k.outputs.len()];
            return self.rows(&RowKernel { kernel: k.clone(), outputs }, ins, outs);
        }
        let elements = k.domain().size();
        let limits = self.limits;
        let cost = self.rounds(elements) * of_element(k);
        self.write(ins, outs, elements, cost, |_, from, to| wgsl::in_workgroup(k, from, to, limits).ok())
    }
    fn rows(&mut self, rows: &RowKernel, ins: &[SlotId], outs: &[SlotId]) -> Option<()> {
        let (elements, limits) = (rows.kernel.domain().size(), self.limits);
        // narrow values of rows end no word where a workgroup has one row
        let narrow = rows.kernel.output_dtypes().any(|d| per_word(d) > 1);
        if elements == 0 || !rows.is_short() && (narrow || rows.kernel.rdims.size() > RowKernel::longest(limits)) {
            return None;
        }
        let cost = self.rounds(elements) * rows.work() + 8 * BARRIER;
        self.write(ins, outs, elements, cost, |head, from, to| {
            let mut lines = String::new();
            let text = rows.in_workgroup(from, to, limits, &mut lines).ok()?;
            head.extend(lines.lines().map(String::from));
            Some(text)
        })
    }
    /// A step from `ins` to `outs`. What it reads and writes goes through other memory.
    fn write(
        &mut self,
        ins: &[SlotId],
        outs: &[SlotId],
        elements: usize,
        cost: u64,
        text: impl Fn(&mut BTreeSet<String>, Vec<Place>, Vec<Place>) -> Option<String>,
    ) -> Option<()> {
        if elements > MAX_ELEMENTS {
            return None;
        }
        let from = ins.iter().map(|s| self.read(*s)).collect::<Option<Vec<_>>>()?;
        let (mut to, mut copies) = (vec![], vec![]);
        for s in outs {
            let place = self.written(*s)?;
            if ins.contains(s) {
                let other = self.memory(*s)?;
                copies.push((other.clone(), place, *s));
                to.push(other);
            } else {
                to.push(place);
            }
        }
        let text = text(&mut self.head, from, to)?;
        self.phase(&text, cost)?;
        self.copies(&copies)
    }

    /// A statement that makes `decision` the same value for all invocations, by the name `name`.
    fn decide(&mut self, name: &str, value: &str) {
        let _ = writeln!(
            self.body,
            "if (local == 0u) {{ decision = {value}; }}\nlet {name} = workgroupUniformLoad(&decision);"
        );
    }
    fn switch(&mut self, index: SlotId, branches: &[Vec<Step>]) -> Option<()> {
        let (d, _) = self.slot(index)?;
        let last = branches.len().checked_sub(1).filter(|_| d == DType::I32)?;
        let index = self.read(index)?.load(d, "0");
        self.loops += 1;
        let name = format!("branch{}", self.loops);
        self.decide(&name, &format!("clamp({index}, 0, {last})"));
        let (before, mut most) = (self.cost, 0);
        for (i, steps) in branches.iter().enumerate() {
            let _ = writeln!(self.body, "if ({name} == {i}) {{");
            self.cost = 0;
            self.steps(steps)?;
            most = most.max(self.cost);
            self.body.push_str("}\n");
        }
        self.cost = before + most + BARRIER;
        Some(())
    }

    /// A loop within the outermost block, whose iterations are few enough for one dispatch.
    fn inner(&mut self, l: &Loop) -> Option<()> {
        let Trip::Static(n) = l.trip else { return None };
        self.begin(l)?;
        self.loops += 1;
        let number = self.loops;
        let before = std::mem::take(&mut self.cost);
        let _ = writeln!(self.body, "for (var i{number} = 0; i{number} < {n}; i{number}++) {{");
        self.iteration(l, number, Some(n))?;
        self.body.push_str("}\n");
        self.cost = before.saturating_add(self.cost.saturating_mul(n as u64));
        self.end(l, &n.to_string())
    }
    /// The outermost loop, which one dispatch or several run.
    fn outer(&mut self, l: &Loop) -> Option<Repeats> {
        let state = self.state();
        let (iterations, again) = (wgsl::word(0), wgsl::word(1));
        let n = match l.trip {
            Trip::Static(n) => i32::try_from(n).ok()?.to_string(),
            Trip::Dyn(s) => {
                let (d, _) = self.slot(s).filter(|(d, _)| *d == DType::I32)?;
                let n = self.read(s)?.load(d, "0");
                self.decide("n", &format!("max({n}, 0)"));
                "n".into()
            }
            Trip::While { .. } => String::new(),
        };
        let _ = writeln!(self.body, "if (local == 0u) {{\ndecision = 0;");
        let _ = writeln!(self.body, "if ({again} != 0u) {{ decision = bitcast<i32>({state}[1]); }}\n}}");
        let _ = writeln!(self.body, "var i0 = workgroupUniformLoad(&decision);\nlet end = i0 + i32({iterations});");
        let _ = writeln!(self.body, "var ended = false;\nif ({again} == 0u) {{");
        self.begin(l)?;
        let _ = writeln!(self.body, "}}\nloop {{");
        self.cost = 0;
        let is_over = |w: &mut Self| w.body.push_str("if (i0 >= end) { break; }\n");
        if let Trip::While { cond, pred } = &l.trip {
            is_over(self);
            self.steps(cond)?;
            let pred = self.read(*pred)?.load(self.slot(*pred).filter(|(d, _)| *d == DType::Bool)?.0, "0");
            self.decide("goes_on", &format!("select(0, 1, {pred})"));
            self.body.push_str("if (goes_on == 0) { ended = true; break; }\n");
        } else {
            let _ = writeln!(self.body, "if (i0 >= {n}) {{ ended = true; break; }}");
            is_over(self);
        }
        let known = if let Trip::Static(n) = l.trip { Some(n) } else { None };
        self.iteration(l, 0, known)?;
        self.body.push_str("i0++;\n}\nif (ended) {\n");
        let cost = self.cost.max(1);
        self.end(l, "i0")?;
        self.cost = cost;
        let _ = writeln!(self.body, "}}\nif (local == 0u) {{");
        let _ = writeln!(self.body, "{state}[0] = select(0u, 1u, ended);\n{state}[1] = bitcast<u32>(i0);\n}}");
        let each = (self.budget() / cost).min(MAX_ITERATIONS) as u32;
        Some(match l.trip {
            _ if each == 0 => return None,
            Trip::Static(n) => Repeats::Times(n, each),
            _ => Repeats::Until(each),
        })
    }
    /// From the initial values to the carries.
    fn begin(&mut self, l: &Loop) -> Option<()> {
        let copies = l.carries.iter().map(|c| Some((self.read(c.init)?, self.written(c.slot)?, c.slot)));
        let copies = copies.collect::<Option<Vec<_>>>()?;
        self.copies(&copies)
    }
    /// From the carries to the results, after `n` iterations.
    fn end(&mut self, l: &Loop, n: &str) -> Option<()> {
        let copies = l.carries.iter().map(|c| Some((self.read(c.slot)?, self.written(c.out)?, c.slot)));
        let copies = copies.collect::<Option<Vec<_>>>()?;
        self.copies(&copies)?;
        let Some(count) = l.count else { return Some(()) };
        self.slot(count).filter(|(d, _)| *d == DType::I32)?;
        let to = self.written(count)?.word("0");
        self.phase(&format!("if (local == 0u) {{ {to} = bitcast<u32>({n}); }}\n"), 4)
    }
    /// The body, and what the next iteration starts from; of `n` iterations where windows move.
    fn iteration(&mut self, l: &Loop, number: usize, n: Option<usize>) -> Option<()> {
        if !(l.xs.is_empty() && l.ys.is_empty()) {
            let at = if l.reverse { format!("{} - 1 - i{number}", n?) } else { format!("i{number}") };
            let _ = writeln!(self.body, "let k{number} = {at};");
        }
        for w in &l.xs {
            let all = self.read(w.all)?;
            let window = self.window(w, all, number, n?)?;
            self.places.insert(w.each, window);
        }
        self.steps(&l.body)?;
        let mut copies = vec![];
        for w in &l.ys {
            let all = self.written(w.all)?;
            copies.push((self.read(w.each)?, self.window(w, all, number, n?)?, w.each));
        }
        for c in l.carries.iter().filter(|c| c.next != c.slot) {
            if l.carries.iter().any(|other| other.slot == c.next) {
                return None; // carries in each other's memory
            }
            copies.push((self.read(c.next)?, self.written(c.slot)?, c.slot));
        }
        self.copies(&copies)
    }
    /// Element `k` of an array of at least `n`.
    fn window(&self, w: &Window, all: Place, number: usize, n: usize) -> Option<Place> {
        let ((_, len), (_, each)) = (self.slot(w.all)?, self.slot(w.each)?);
        let first = all.at(&format!("k{number} * {each}"));
        (n.checked_mul(each)? <= len).then_some(Place { first, ..all })
    }
}

/// The number of elements in a declaration of an array.
fn elements(declaration: &str) -> u64 {
    let number = declaration.rsplit(", ").next().and_then(|rest| rest.strip_suffix(">;"));
    number.and_then(|n| n.parse().ok()).unwrap_or(u64::MAX / 64)
}

/// Statements that copy `len` elements: words, or where elements begin within a word the parts of words.
fn copied(from: &Place, to: &Place, d: DType, len: usize, size: u32) -> String {
    let in_word = per_word(d);
    let (words, bits) = (len.div_ceil(in_word), 32 / in_word);
    if len == 0 {
        return String::new();
    }
    if in_word == 1 || from.first.is_empty() && to.first.is_empty() {
        let (from, to) = (from.word(&from.at("w")), to.word(&to.at("w")));
        return format!("for (var w = i32(local); w < {words}; w += {size}) {{ {to} = {from}; }}\n");
    }
    let (name, mask) = if in_word == 2 { ("half_of", 0xffff) } else { ("byte_of", 0xff) };
    format!(
        "{{
let first = {first};
let word0 = first / {in_word};
for (var w = word0 + i32(local); w <= (first + {last}) / {in_word}; w += {size}) {{
  var x = {word};
  for (var e = 0; e < {in_word}; e++) {{
    let n = w * {in_word} + e - first;
    if (n >= 0 && n < {len}) {{
      let at = {at};
      let shift = u32(e * {bits});
      x = (x & ~({mask}u << shift)) | ({name}({element}, at) << shift);
    }}
  }}
  {word} = x;
}}
}}
",
        first = to.at("0"),
        last = len - 1,
        word = to.word("w"),
        at = from.at("n"),
        element = from.word(&format!("at / {in_word}")),
    )
}

impl Run<'_> {
    pub fn persistent(&mut self, p: &Persistent) -> Res<()> {
        let mut arrays = p.ins.iter().map(|s| self.array(*s)).collect::<Res<Vec<_>>>()?;
        let outs = p.outs.iter().map(|s| self.fresh(*s)).collect::<Res<Vec<_>>>()?;
        let state = self.recorder.slab(p.state)?;
        arrays.extend(outs.iter().chain([&state]).cloned());
        match p.repeats {
            Repeats::Once => self.recorder.persistent(&p.pipeline, &arrays, [1, 0], p.part)?,
            Repeats::Times(n, each) => {
                for first in (0..n.max(1)).step_by(each as usize) {
                    self.cancelled()?;
                    let part = (n - first).min(each as usize) as f64 * p.part;
                    self.recorder.persistent(&p.pipeline, &arrays, [each, u32::from(first > 0)], part)?;
                }
            }
            Repeats::Until(each) => {
                let mut again = 0;
                loop {
                    self.recorder.persistent(&p.pipeline, &arrays, [each, again], UNKNOWN_PART)?;
                    self.cancelled()?;
                    if self.download(&state, 4)? != [0; 4] {
                        break;
                    }
                    again = 1;
                }
            }
        }
        p.outs.iter().zip(outs).for_each(|(s, out)| self.set(*s, Value::Array(out)));
        Ok(())
    }
}
