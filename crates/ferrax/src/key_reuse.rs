//! `jax_debug_key_reuse`: detects random keys that are consumed a second time, when a program is
//! called.
//!
//! ```text
//! drawing from a key and splitting it consume it; a slice consumes its part, and gives keys that are new; other operations read
//! { lambda ; a. b = random_bits[..] a; c = random_split[..] a in c }       in random_split, argument 0 is already consumed
//! ```
//! The consumed elements of keys are found from a program's text, bodies included, element by element. They are stored with the array for as
//! long as it lives.
//!
//! INVARIANT: nothing is inspected unless the flag is on; a call that fails consumes nothing.
use ferrax_ir::error::{Error, ErrorKind, Res};
use ferrax_ir::ops::cond::Cond;
use ferrax_ir::ops::loops::{Loop, Trip};
use ferrax_ir::ops::slice::Slice;
use ferrax_ir::program::Atom;
use ferrax_ir::value::{Array, Handle, Payload};
use ferrax_ir::{Aval, Op, Program, Value};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

static WANTED: OnceLock<fn() -> bool> = OnceLock::new();

/// Installs the function that says whether keys are checked. Only the first call has an effect.
pub fn install(wanted: fn() -> bool) {
    let _ = WANTED.set(wanted);
}
/// Whether keys are followed on this thread.
pub fn wanted() -> bool {
    WANTED.get().is_some_and(|f| f())
}

/// Which elements of an array of keys are consumed, in row-major order.
type Consumed = Vec<bool>;

fn overlap(a: &Consumed, b: &Consumed) -> bool {
    a.iter().zip(b).any(|(a, b)| *a && *b)
}
fn unite(a: &mut Option<Consumed>, b: &Consumed) {
    match a {
        Some(a) => a.iter_mut().zip(b).for_each(|(a, b)| *a |= *b),
        None => *a = Some(b.clone()),
    }
}

/// The use of keys by an operation or a program.
#[derive(Default)]
struct KeyUse {
    /// The consumed keys of its operands.
    consumes: Vec<(usize, Consumed)>,
    /// Results that are operands, and results of which something is consumed already.
    hands_on: Vec<(usize, usize)>,
    spent: Vec<(usize, Consumed)>,
}
fn reused(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::KeyReuse, message)
}

/// The consumed keys of each variable so far.
struct Follow<'a> {
    program: &'a Program,
    consumed: Vec<Option<Consumed>>,
}
impl Follow<'_> {
    fn var(&self, a: &Atom) -> Option<usize> {
        match a {
            Atom::Var(v) if self.program.avals()[*v as usize].dtype.is_key() => Some(*v as usize),
            _ => None,
        }
    }
    fn run(mut self) -> Res<KeyUse> {
        let p = self.program;
        let mut next = p.first_var();
        for e in p.eqns() {
            let avals: Vec<Aval> = e.args.iter().map(|a| p.atom_aval(a)).collect();
            let used = of_op(&e.op, &avals)?;
            for (i, what) in &used.consumes {
                let before = self.var(&e.args[*i]).and_then(|v| self.consumed[v].as_ref());
                if before.is_some_and(|before| overlap(before, what)) {
                    return Err(reused(format!("In {}, argument {i} is already consumed.", e.op.name())));
                }
                if let Some(v) = self.var(&e.args[*i]) {
                    unite(&mut self.consumed[v], what);
                }
            }
            for (k, i) in &used.hands_on {
                self.consumed[next + k] = self.var(&e.args[*i]).and_then(|v| self.consumed[v].clone());
            }
            for (k, what) in used.spent {
                unite(&mut self.consumed[next + k], &what);
            }
            next += e.op.results(&avals)?.len();
        }
        let (held, first) = (p.held().len(), p.first_var());
        let mut out = KeyUse::default();
        for v in held..first {
            if let Some(what) = &self.consumed[v] {
                out.consumes.push((v - held, what.clone()));
            }
        }
        for (k, a) in p.outs().iter().enumerate() {
            match self.var(a) {
                Some(v) if (held..first).contains(&v) => out.hands_on.push((k, v - held)),
                Some(v) => out.spent.extend(self.consumed[v].clone().map(|what| (k, what))),
                None => (),
            }
        }
        Ok(out)
    }
}
fn of_program(p: &Program) -> Res<KeyUse> {
    Follow { program: p, consumed: vec![None; p.avals().len()] }.run()
}

fn of_op(op: &Op, args: &[Aval]) -> Res<KeyUse> {
    let all = |i: usize| (i, vec![true; args[i].shape.size()]);
    let consuming = |what| Ok(KeyUse { consumes: vec![what], ..KeyUse::default() });
    match op {
        Op::RandomBits(_) | Op::RandomSplit(_) if args[0].dtype.is_key() => consuming(all(0)),
        Op::Slice(s) if args[0].dtype.is_key() => consuming((0, region(s, &args[0]))),
        Op::Cond(c) => of_branches(c),
        Op::Loop(l) => of_loop(l, args),
        // reverse mode repeats the draws of the forward pass, from the same keys
        Op::Remat(r) if r.differentiated => Ok(KeyUse::default()),
        op => match op.bodies()[..] {
            // an op that calls its body on its operands
            [body, ..] if body.n_ins() == args.len() => of_program(body),
            _ => Ok(KeyUse::default()),
        },
    }
}
/// The elements that a slice takes.
fn region(s: &Slice, a: &Aval) -> Consumed {
    let inside = |mut at: usize| {
        (0..a.rank()).rev().all(|k| {
            let i = at % a.shape[k];
            at /= a.shape[k];
            (s.start_indices[k]..s.limit_indices[k]).contains(&i)
                && (i - s.start_indices[k]).is_multiple_of(s.stride(k))
        })
    };
    (0..a.shape.size()).map(inside).collect()
}
/// The keys that any branch consumes.
fn of_branches(c: &Cond) -> Res<KeyUse> {
    let mut out = KeyUse::default();
    for (k, branch) in c.branches.iter().enumerate() {
        let used = of_program(branch)?;
        for (i, what) in used.consumes {
            match out.consumes.iter_mut().find(|(j, _)| *j == i + 1) {
                Some((_, before)) => before.iter_mut().zip(&what).for_each(|(a, b)| *a |= *b),
                None => out.consumes.push((i + 1, what)),
            }
        }
        out.spent.extend(used.spent);
        let handed = used.hands_on.into_iter().map(|(k, i)| (k, i + 1));
        match k {
            0 => out.hands_on.extend(handed),
            // one or the other: no one operand
            _ => {
                let handed: Vec<_> = handed.collect();
                out.hands_on.retain(|h| handed.contains(h));
            }
        }
    }
    Ok(out)
}

/// Analyses the loop until a fixed point: in each iteration the consumed keys of one carry may
/// become another's.
fn of_loop(l: &Loop, args: &[Aval]) -> Res<KeyUse> {
    let (head, cond) = match &l.trip {
        Trip::While { cond, n_cond, .. } => (*n_cond, Some(of_program(cond)?)),
        Trip::Static(_) => (0, None),
        Trip::Dyn => (1, None),
    };
    let body = of_program(&l.body)?;
    let (first, xs) = (head + l.n_consts, head + l.n_consts + l.n_carry);
    let most = if let Trip::Static(n) = l.trip { n.min(l.n_carry + 2) } else { l.n_carry + 2 };
    let mut consumed: Vec<Option<Consumed>> = vec![None; args.len()];
    let mut out = KeyUse::default();
    for turn in 0..most {
        // an operand of the predicate, or of the body, as one of the loop
        let of_cond = |i: usize| if i < head { i } else { i - head + first };
        if let Some(cond) = &cond {
            let what = "while_loop cond function leads to key reuse when repeatedly executed.";
            take(&mut consumed, &cond.consumes, &of_cond, what)?;
        }
        let what = match (&l.trip, body.consumes.iter().any(|(i, _)| *i < l.n_consts)) {
            (Trip::While { .. }, _) => "while_loop body function leads to key reuse when repeatedly executed.",
            (_, true) => {
                "scan body function leads to key reuse when repeatedly executed, because key constants are repeatedly consumed."
            }
            _ => {
                "scan body function leads to key reuse when repeatedly executed, because consumed inputs don't match sourced outputs."
            }
        };
        // of each sequence an element at a time
        let repeated: Vec<_> = body.consumes.iter().filter(|(i, _)| i + head < xs).cloned().collect();
        take(&mut consumed, &repeated, &|i| i + head, what)?;
        if turn == 0 {
            // an operand is consumed in the first iteration, or never
            out.consumes = (0..args.len()).filter_map(|i| consumed[i].clone().map(|what| (i, what))).collect();
        }
        let mut carry: Vec<Option<Consumed>> = vec![None; l.n_carry];
        for (k, i) in body.hands_on.iter().filter(|(k, i)| *k < l.n_carry && i + head < xs) {
            carry[*k] = consumed[i + head].clone();
        }
        for (k, what) in body.spent.iter().filter(|(k, _)| *k < l.n_carry) {
            unite(&mut carry[*k], what);
        }
        consumed.splice(first..xs, carry);
    }
    let sequences = body.consumes.iter().filter(|(i, _)| i + head >= xs && most > 0);
    out.consumes.extend(sequences.map(|(i, _)| (i + head, vec![true; args[i + head].shape.size()])));
    out.spent = (0..l.n_carry).filter_map(|k| consumed[first + k].clone().map(|what| (k, what))).collect();
    Ok(out)
}
fn take(
    consumed: &mut [Option<Consumed>],
    consumes: &[(usize, Consumed)],
    place: &dyn Fn(usize) -> usize,
    message: &str,
) -> Res<()> {
    for (i, what) in consumes {
        let before = &mut consumed[place(*i)];
        if before.as_ref().is_some_and(|before| overlap(before, what)) {
            return Err(reused(message));
        }
        unite(before, what);
    }
    Ok(())
}

// ---- arrays ----

type WeakArray = Weak<Handle<dyn Payload>>;
/// Keyed by an array's address, which is unique while its entry is kept.
#[derive(Default)]
struct KeyRegistry {
    entries: FxHashMap<usize, (WeakArray, Consumed)>,
    /// How many there were after the last time that those of dead arrays were dropped.
    kept: usize,
}
static REGISTRY: Mutex<Option<KeyRegistry>> = Mutex::new(None);

fn registry() -> MutexGuard<'static, Option<KeyRegistry>> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}
fn place(a: &Array) -> usize {
    Arc::as_ptr(&a.0).cast::<()>() as usize
}
fn consumed_of(v: &Value) -> Option<Consumed> {
    let Value::Array(a) = v else { return None };
    registry().as_ref()?.entries.get(&place(a)).map(|e| e.1.clone())
}
fn consume(v: &Value, what: Consumed) {
    let Value::Array(a) = v else { return };
    let mut all = registry();
    let all = all.get_or_insert_default();
    if all.entries.len() > 2 * all.kept + 64 {
        all.entries.retain(|_, e| e.0.strong_count() > 0);
        all.kept = all.entries.len();
    }
    let mut before = all.entries.remove(&place(a)).map(|e| e.1);
    unite(&mut before, &what);
    all.entries.insert(place(a), (Arc::downgrade(&a.0), before.unwrap_or(what)));
}

/// Looks at a program that was traced, before anyone calls it.
///
/// # Errors
/// `KeyReuseError`: it consumes a key twice, whatever its arguments are.
pub fn check(p: &Program) -> Res<()> {
    of_program(p).map(drop)
}

/// A call that is under way.
pub struct KeyCall<'a> {
    used: KeyUse,
    args: Vec<&'a Value>,
}
impl<'a> KeyCall<'a> {
    /// Of a program; None where it has nothing to do with keys.
    ///
    /// # Errors
    /// `KeyReuseError`: it consumes a key twice, or one that is consumed already.
    pub fn of_program(p: &Program, args: &[&'a Value]) -> Res<KeyCall<'a>> {
        KeyCall::begin(of_program(p)?, "jit-compiled function", args)
    }
    /// Of a single operation.
    ///
    /// # Errors
    /// As `of_program`.
    pub fn of_op(op: &Op, args: &[&'a Value]) -> Res<KeyCall<'a>> {
        let avals: Vec<Aval> = args.iter().map(|v| v.aval()).collect();
        let name = if op.name() == "jit" { "jit-compiled function" } else { op.name() };
        KeyCall::begin(of_op(op, &avals)?, name, args)
    }
    fn begin(used: KeyUse, name: &str, args: &[&'a Value]) -> Res<KeyCall<'a>> {
        let same = |a: &Value, b: &Value| matches!((a, b), (Value::Array(a), Value::Array(b)) if place(a) == place(b));
        for (k, (i, what)) in used.consumes.iter().enumerate() {
            let twice = used.consumes[..k].iter().any(|(j, other)| same(args[*i], args[*j]) && overlap(other, what));
            if twice || consumed_of(args[*i]).is_some_and(|before| overlap(&before, what)) {
                return Err(reused(format!("Previously-consumed key passed to {name} at index {i}")));
            }
        }
        Ok(KeyCall { used, args: args.to_vec() })
    }
    /// It has given these.
    pub fn end(self, results: &[Value]) {
        for (i, what) in self.used.consumes {
            consume(self.args[i], what);
        }
        for (k, i) in self.used.hands_on {
            if let Some(what) = consumed_of(self.args[i]) {
                consume(&results[k], what);
            }
        }
        for (k, what) in self.used.spent {
            consume(&results[k], what);
        }
    }
}
