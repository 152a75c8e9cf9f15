//! `Program`: a first-order, typed, straight-line function; bodies of loops and branches are programs inside an `Op`.
//!
//! INVARIANT: variables are dense and in order of definition: held values, captured inputs, inputs, then the outputs of each
//! equation. So an environment is a `Vec`, equality is `==` on the fields, and `parse(print(p))` needs no renaming.
//! INVARIANT: a program in an op holds no arrays: what it captured is a leading input (`n_consts` of them), passed beside it.
//! `held` is not empty only between a transform that ran a user's rule and the `Cx::bind_body` that follows.
use crate::aval::{Aval, Lit};
use crate::effects::Effects;
use crate::error::{Error, Res, value_err};
use crate::op::Op;
use crate::value::Value;
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;
use std::any::Any;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Atom {
    Var(u32),
    Lit(Lit),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Eqn {
    pub op: Op,
    pub args: SmallVec<[Atom; 2]>,
    pub n_out: u32,
}

pub struct Program {
    held: Vec<Value>,
    n_consts: usize,
    n_ins: usize,
    avals: Vec<Aval>,
    eqns: Vec<Eqn>,
    outs: Vec<Atom>,
    /// The user's line of each equation: an index into the binding's table, 0 for unknown. Not part of equality.
    lines: Vec<u32>,
    hash: OnceLock<u64>,
    effects: OnceLock<Effects>,
    holds_functions: OnceLock<bool>,
    memo: Mutex<Memo>,
}

/// Cached results of transforms of a program, kept as long as the program.
pub type Memo = FxHashMap<MemoKey, Arc<dyn Any + Send + Sync>>;
pub type MemoKey = (&'static str, usize, Option<Arc<str>>, SmallVec<[Vec<bool>; 3]>, Vec<usize>);

impl PartialEq for Program {
    fn eq(&self, o: &Program) -> bool {
        std::ptr::eq(self, o)
            || (self.key() == o.key()
                && (self.n_consts, self.n_ins) == (o.n_consts, o.n_ins)
                && self.held.len() == o.held.len()
                && self.held.iter().zip(&o.held).all(|(a, b)| a.id() == b.id())
                && self.avals == o.avals
                && self.eqns == o.eqns
                && self.outs == o.outs)
    }
}
impl Eq for Program {}
impl Hash for Program {
    fn hash<H: Hasher>(&self, h: &mut H) {
        h.write_u64(self.key());
    }
}
impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Program")
            .field("ins", &self.in_avals())
            .field("eqns", &self.eqns)
            .field("outs", &self.outs)
            .finish()
    }
}

/// How a rewired program's input arises.
#[derive(Clone)]
pub enum In {
    Old(usize),
    New(Aval),
}

impl Program {
    /// A program from its parts; `lines` may be empty. Fails if a variable is used before it is defined.
    pub fn new(
        n_consts: usize,
        n_ins: usize,
        avals: Vec<Aval>,
        eqns: Vec<Eqn>,
        outs: Vec<Atom>,
        lines: Vec<u32>,
    ) -> Res<Program> {
        let p = Program::raw(vec![], n_consts, n_ins, avals, eqns, outs, lines);
        let mut n = p.n_ins;
        let ok = |a: &Atom, n: usize| !matches!(a, Atom::Var(v) if *v as usize >= n);
        for e in &p.eqns {
            if !e.args.iter().all(|a| ok(a, n)) {
                return value_err(format!("an operand of {} is used before it is defined", e.op.name()));
            }
            n += e.n_out as usize;
        }
        if n != p.avals.len() || p.n_consts > p.n_ins || !p.outs.iter().all(|a| ok(a, n)) {
            return value_err("a program's variables are not dense");
        }
        Ok(p)
    }
    fn raw(
        held: Vec<Value>,
        n_consts: usize,
        n_ins: usize,
        avals: Vec<Aval>,
        eqns: Vec<Eqn>,
        outs: Vec<Atom>,
        mut lines: Vec<u32>,
    ) -> Program {
        #[cfg(test)]
        tests::MADE.with(|n| n.set(n.get() + eqns.len() + 1));
        lines.resize(eqns.len(), 0);
        Program {
            held,
            n_consts,
            n_ins,
            avals,
            eqns,
            outs,
            lines,
            hash: OnceLock::new(),
            effects: OnceLock::new(),
            holds_functions: OnceLock::new(),
            memo: Mutex::default(),
        }
    }
    fn key(&self) -> u64 {
        *self.hash.get_or_init(|| {
            let mut h = FxHasher::default();
            (self.n_consts, self.n_ins, &self.avals, &self.eqns, &self.outs).hash(&mut h);
            self.held.iter().for_each(|v| v.id().hash(&mut h));
            h.finish()
        })
    }
    /// Values bound to the first variables; empty in every program that an op contains.
    pub fn held(&self) -> &[Value] {
        &self.held
    }
    /// How many of the inputs, the first ones, are captured values.
    pub fn n_consts(&self) -> usize {
        self.n_consts
    }
    pub fn n_ins(&self) -> usize {
        self.n_ins
    }
    /// The type of every variable.
    pub fn avals(&self) -> &[Aval] {
        &self.avals
    }
    pub fn eqns(&self) -> &[Eqn] {
        &self.eqns
    }
    pub fn outs(&self) -> &[Atom] {
        &self.outs
    }
    pub fn n_outs(&self) -> usize {
        self.outs.len()
    }
    pub fn lines(&self) -> &[u32] {
        &self.lines
    }
    pub fn memo(&self) -> &Mutex<Memo> {
        &self.memo
    }
    /// The captured inputs become ordinary ones: the form a body has.
    pub fn open(self) -> Program {
        Program::raw(self.held, 0, self.n_ins, self.avals, self.eqns, self.outs, self.lines)
    }
    /// The same program with its first `n` inputs counted as captured.
    pub fn with_consts(&self, n: usize) -> Program {
        Program::raw(
            self.held.clone(),
            n.min(self.n_ins),
            self.n_ins,
            self.avals.clone(),
            self.eqns.clone(),
            self.outs.clone(),
            self.lines.clone(),
        )
    }
    /// The same program with other equations of the same operands and results, in the same order.
    pub fn with_eqns(&self, eqns: Vec<Eqn>) -> Program {
        let (held, avals, outs) = (self.held.clone(), self.avals.clone(), self.outs.clone());
        Program::raw(held, self.n_consts, self.n_ins, avals, eqns, outs, self.lines.clone())
    }
    /// With `held` bound to the captured inputs.
    pub fn hold(self, held: Vec<Value>) -> Program {
        let n_ins = self.n_ins - held.len();
        Program::raw(held, 0, n_ins, self.avals, self.eqns, self.outs, self.lines)
    }
    /// The held values become leading inputs.
    pub fn release(&self) -> (Arc<Program>, Vec<Value>) {
        let n = self.held.len();
        let p = Program::raw(
            vec![],
            0,
            n + self.n_ins,
            self.avals.clone(),
            self.eqns.clone(),
            self.outs.clone(),
            self.lines.clone(),
        );
        (Arc::new(p), self.held.clone())
    }
    /// The number of the first variable that is not an input.
    pub fn first_var(&self) -> usize {
        self.held.len() + self.n_ins
    }
    pub fn in_avals(&self) -> &[Aval] {
        &self.avals[self.held.len()..self.first_var()]
    }
    pub fn atom_aval(&self, a: &Atom) -> Aval {
        match a {
            Atom::Var(v) => self.avals[*v as usize].clone(),
            Atom::Lit(l) => l.aval(),
        }
    }
    pub fn out_avals(&self) -> Vec<Aval> {
        self.outs.iter().map(|a| self.atom_aval(a)).collect()
    }
    pub fn effects(&self) -> &Effects {
        self.effects.get_or_init(|| {
            let mut all = Effects::default();
            for e in &self.eqns {
                let fx = e.op.effects();
                if fx != Effects::default() {
                    all.join(&fx);
                }
            }
            all
        })
    }
    /// Each equation's first variable and line, and the equations.
    fn numbered(&self) -> (Vec<u32>, Vec<u32>, Vec<Eqn>) {
        let mut v = self.first_var() as u32;
        let number = |e: &Eqn| {
            v += e.n_out;
            v - e.n_out
        };
        (self.eqns.iter().map(number).collect(), self.lines.clone(), self.eqns.clone())
    }
    /// The same function with its inputs reordered, dropped (they must be unused) or padded, and its outputs chosen by position.
    pub fn rewire(&self, ins: &[In], outs: Option<&[usize]>) -> Arc<Program> {
        let mut avals = self.avals.clone();
        let h = self.held.len() as u32;
        let mut ids: Vec<u32> = (0..h).collect();
        for i in ins {
            ids.push(match i {
                In::Old(i) => h + *i as u32,
                In::New(a) => {
                    avals.push(a.clone());
                    avals.len() as u32 - 1
                }
            });
        }
        let outs = outs.map_or(self.outs.clone(), |o| o.iter().map(|&i| self.outs[i]).collect());
        Arc::new(finish(self.held.clone(), &ids, 0, false, false, &avals, self.numbered(), outs).0)
    }
    /// Keeps the outputs in `used`; returns which inputs that needs, and the program of those inputs only.
    ///
    /// Loops and branches request one mask several times, and so do those around them: the result is kept for a program that contains some.
    pub fn dce(&self, used: &[bool]) -> (Arc<Program>, Vec<bool>) {
        if self.eqns.iter().all(|e| e.op.body().is_none()) || self.holds_functions() {
            return self.without_dead_code(used);
        }
        let key: MemoKey = ("dce", 0, None, SmallVec::from_iter([used.to_vec()]), vec![]);
        let known = self.memo.lock().unwrap_or_else(|e| e.into_inner()).get(&key).cloned();
        if let Some(Ok(known)) = known.map(|k| k.downcast::<(Arc<Program>, Vec<bool>)>()) {
            return (*known).clone();
        }
        let new = self.without_dead_code(used);
        self.memo.lock().unwrap_or_else(|e| e.into_inner()).insert(key, Arc::new(new.clone()));
        new
    }
    /// Whether an op holds a function of the host: a kept result would be a second owner of it, and cycles through it would never be
    /// collected.
    fn holds_functions(&self) -> bool {
        let holds = |op: &Op| op.functions().into_iter().any(|f| !matches!(f, crate::cx::Fun::Prog(_)));
        *self
            .holds_functions
            .get_or_init(|| self.eqns.iter().any(|e| holds(&e.op) || e.op.bodies().iter().any(|b| b.holds_functions())))
    }
    fn without_dead_code(&self, used: &[bool]) -> (Arc<Program>, Vec<bool>) {
        let outs = self.outs.iter().zip(used).filter(|(_, u)| **u).map(|(a, _)| *a).collect();
        let ids: Vec<u32> = (0..self.first_var() as u32).collect();
        let (p, kept) = finish(self.held.clone(), &ids, self.n_ins, false, false, &self.avals, self.numbered(), outs);
        (Arc::new(p), kept)
    }
    pub fn used_ins(&self) -> Vec<bool> {
        self.dce(&vec![true; self.outs.len()]).1
    }
}

/// Removes dead code and renumbers variables. `ins` are the variables of held values, then of
/// inputs, of which the first `droppable` are removed too if unused; `consts`: the remaining ones
/// that are captured values.
fn finish(
    held: Vec<Value>,
    ins: &[u32],
    droppable: usize,
    consts: bool,
    keep_dead: bool,
    avals: &[Aval],
    (firsts, mut lines, mut eqns): (Vec<u32>, Vec<u32>, Vec<Eqn>),
    outs: Vec<Atom>,
) -> (Program, Vec<bool>) {
    let n_held = held.len();
    let mut live = vec![false; avals.len()];
    let mark = |live: &mut Vec<bool>, a: &Atom| {
        if let Atom::Var(v) = a {
            live[*v as usize] = true;
        }
    };
    outs.iter().for_each(|a| mark(&mut live, a));
    // backwards: marks live equations; an op with bodies drops unread outputs
    let mut alive = vec![true; eqns.len()];
    let mut shed: FxHashMap<usize, Vec<bool>> = FxHashMap::default();
    for (i, (first, e)) in firsts.iter().zip(&mut eqns).enumerate().rev() {
        let outs = &live[*first as usize..(first + e.n_out) as usize];
        if !keep_dead && outs.contains(&false) {
            if !outs.contains(&true) && !e.op.has_io() {
                alive[i] = false;
                continue;
            }
            if let Some((op, keep, outs)) = e.op.body().and_then(|b| b.dce(outs)) {
                let args = e.args.iter().zip(keep).filter(|(_, k)| *k).map(|(a, _)| *a).collect();
                *e = Eqn { op, args, n_out: outs.iter().filter(|u| **u).count() as u32 };
                shed.insert(i, outs);
            }
        } else if !keep_dead && outs.is_empty() && !e.op.has_io() {
            alive[i] = false;
            continue;
        }
        e.args.iter().for_each(|a| mark(&mut live, a));
    }
    let keep: Vec<bool> =
        ins.iter().enumerate().map(|(i, v)| i < n_held || i - n_held >= droppable || live[*v as usize]).collect();
    let mut new_id = vec![u32::MAX; avals.len()];
    let mut new_avals = Vec::with_capacity(avals.len());
    let mut define = |new_id: &mut Vec<u32>, v: u32| {
        new_id[v as usize] = new_avals.len() as u32;
        new_avals.push(avals[v as usize].clone());
    };
    ins.iter().zip(&keep).filter(|(_, k)| **k).for_each(|(v, _)| define(&mut new_id, *v));
    let keep = keep[n_held..].to_vec();
    let n_ins = keep.iter().filter(|k| **k).count();
    let n_consts = if consts { keep[..droppable].iter().filter(|k| **k).count() } else { 0 };
    let renumber = |new_id: &[u32], a: &mut Atom| {
        if let Atom::Var(v) = a {
            *v = new_id[*v as usize];
            debug_assert!(*v != u32::MAX, "a variable is used before it is defined");
        }
    };
    // forwards: new numbers
    let mut i = 0;
    eqns.retain_mut(|e| {
        i += 1;
        let first = firsts[i - 1];
        if !alive[i - 1] {
            return false;
        }
        e.args.iter_mut().for_each(|a| renumber(&new_id, a));
        match shed.get(&(i - 1)) {
            None => (first..first + e.n_out).for_each(|v| define(&mut new_id, v)),
            Some(m) => (first..).zip(m).filter(|(_, k)| **k).for_each(|(v, _)| define(&mut new_id, v)),
        }
        true
    });
    let mut alive = alive.into_iter();
    lines.retain(|_| alive.next() == Some(true));
    let mut outs = outs;
    outs.iter_mut().for_each(|a| renumber(&new_id, a));
    (Program::raw(held, n_consts, n_ins, new_avals, eqns, outs, lines), keep)
}

/// A program under construction. Foreign values become captured inputs, one per identity.
#[derive(Default)]
pub struct Builder {
    avals: Vec<Aval>,
    ins: Vec<u32>,
    consts: Vec<(u32, Value)>,
    seen: FxHashMap<usize, u32>,
    firsts: Vec<u32>,
    lines: Vec<u32>,
    eqns: Vec<Eqn>,
    keep_dead: bool,
    all_inputs: bool,
}

impl Builder {
    /// A builder that captures every array as an input, even one that is just a number, so that
    /// captures of a linear map can be replaced.
    pub fn keeping_arrays() -> Builder {
        Builder { all_inputs: true, ..Builder::default() }
    }
    /// A builder whose program keeps unused equations.
    pub fn keeping_dead() -> Builder {
        Builder { keep_dead: true, ..Builder::default() }
    }
    fn var(&mut self, a: Aval) -> u32 {
        self.avals.push(a);
        self.avals.len() as u32 - 1
    }
    pub fn new_in(&mut self, a: Aval) -> u32 {
        let v = self.var(a);
        self.ins.push(v);
        v
    }
    pub fn capture(&mut self, x: &Value) -> Atom {
        let id = match x {
            Value::Lit(l) => return Atom::Lit(*l),
            Value::Array(_) if self.all_inputs => x.id(),
            Value::Array(a) => match crate::cx::to_lit(a) {
                Some(l) => return Atom::Lit(l),
                None => x.id(),
            },
            Value::Tracer(_) => x.id(),
        };
        if let Some(v) = id.and_then(|id| self.seen.get(&id)) {
            return Atom::Var(*v);
        }
        let v = self.var(x.aval());
        self.seen.extend(id.map(|id| (id, v)));
        self.consts.push((v, x.clone())); // keeps `x` alive, so its address stays its identity
        Atom::Var(v)
    }
    /// Adds an equation that comes from `line`; returns its first output's variable.
    pub fn push(&mut self, op: &Op, args: SmallVec<[Atom; 2]>, outs: &[Aval], line: u32) -> u32 {
        let first = self.avals.len() as u32;
        self.avals.extend_from_slice(outs);
        self.firsts.push(first);
        self.lines.push(line);
        self.eqns.push(Eqn { op: op.clone(), args, n_out: outs.len() as u32 });
        first
    }
    /// The inputs that variable `v` depends on, by position.
    pub fn origins(&self, v: u32) -> Vec<usize> {
        let mut reads = vec![false; self.avals.len()];
        reads[v as usize] = true;
        for (first, e) in self.firsts.iter().zip(&self.eqns).rev() {
            if reads[*first as usize..(first + e.n_out) as usize].contains(&true) {
                for a in &e.args {
                    if let Atom::Var(v) = a {
                        reads[*v as usize] = true;
                    }
                }
            }
        }
        (0..self.ins.len()).filter(|i| reads[self.ins[*i] as usize]).collect()
    }
    /// The equation whose one output is variable `v`.
    pub fn maker(&self, v: u32) -> Option<&Eqn> {
        let at = self.firsts.binary_search(&v).ok()?;
        Some(&self.eqns[at]).filter(|e| e.n_out == 1)
    }
    /// The captured value of an atom of the program under construction, if it is captured, and its
    /// type.
    pub fn captured(&self, v: u32) -> (Option<&Value>, &Aval) {
        (self.consts.iter().find(|c| c.0 == v).map(|c| &c.1), &self.avals[v as usize])
    }
    pub fn n_eqns(&self) -> usize {
        self.eqns.len()
    }
    /// The program of `outs`, and the captured values, its leading inputs.
    pub fn close(self, outs: Vec<Atom>) -> (Program, Vec<Value>) {
        let ins: Vec<u32> = self.consts.iter().map(|c| c.0).chain(self.ins).collect();
        let (p, kept) = finish(
            vec![],
            &ins,
            self.consts.len(),
            true,
            self.keep_dead,
            &self.avals,
            (self.firsts, self.lines, self.eqns),
            outs,
        );
        let consts = self.consts.into_iter().zip(kept).filter(|(_, k)| *k).map(|((_, v), _)| v).collect();
        (p, consts)
    }
}

/// The first difference between two lists of types, for an error message.
pub fn mismatch(what: &str, got: &[Aval], want: &[Aval]) -> Error {
    if got.len() != want.len() {
        return Error::type_error(format!("{what}: {} operands where {} are expected", got.len(), want.len()));
    }
    let i = got.iter().zip(want).position(|(a, b)| !a.same(b)).unwrap_or(0);
    Error::type_error(format!("{what}: operand {i} is {} where {} is expected", got[i].long(), want[i].long()))
}

#[cfg(test)]
mod tests {
    use crate::text::parse;
    use std::cell::Cell;

    thread_local! {
        /// Equations of programs that were made.
        pub static MADE: Cell<usize> = const { Cell::new(0) }
    }
    fn made<T>(f: impl FnOnce() -> T) -> usize {
        MADE.with(|n| n.set(0));
        f();
        MADE.with(Cell::get)
    }
    /// Blocks within each other, of which the outer ones read one result of two.
    fn nested(depth: usize, block: &dyn Fn(&str) -> String) -> String {
        match depth {
            0 => "{ lambda ; a:f64[] b:f64[]. let c:f64[] = sin a; d:f64[] = cos b in (c, d) }".to_string(),
            n => {
                let inner = nested(n - 1, block);
                format!("{{ lambda ; a:f64[] b:f64[]. let {} in (p, a) }}", block(&inner))
            }
        }
    }
    #[test]
    fn passes_are_no_more_than_quadratic_in_depth() {
        let scan = |inner: &str| {
            format!(
                "p:f64[] q:f64[] = scan[jaxpr={inner} num_carry=2 num_consts=0 length=2 reverse=False unroll=1] a b"
            )
        };
        let cond = |inner: &str| {
            let index = "i:i32[] = convert_element_type[new_dtype=i32 weak_type=False sharding=None] a";
            format!("{index}; p:f64[] q:f64[] = cond[branches=({inner} {inner})] i a b")
        };
        let remat = |inner: &str| {
            format!("p:f64[] q:f64[] = remat2[jaxpr={inner} prevent_cse=True differentiated=False policy=None] a b")
        };
        let blocks: [(&str, &dyn Fn(&str) -> String, usize); 3] =
            [("scan", &scan, 24), ("remat", &remat, 24), ("cond", &cond, 6)];
        for (name, block, depth) in blocks {
            let all = |depth: usize| {
                let p = parse(&nested(depth, block)).unwrap_or_else(|e| panic!("{name}: {e}"));
                let used = made(|| p.dce(&[true, false]));
                let lowered = made(|| crate::lower::verified(&p).unwrap_or_else(|e| panic!("{name}: {e}")));
                [used, lowered]
            };
            // the text of branches doubles with each level
            let most = if name == "cond" { 3 << depth } else { 5 };
            for (once, twice) in all(depth / 2).into_iter().zip(all(depth)) {
                assert!(twice <= most * once.max(depth), "{name}: {once} equations, then {twice}");
            }
        }
    }
}
