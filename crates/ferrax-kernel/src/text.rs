//! Kernels and plans as text, for people and for golden tests.
//!
//! ```text
//! kernel (4,) reduce (3,)
//!   n0:f32 = load 0[3 i0 + i1]
//!   n1:f32 = sin n0
//!   n2:f32 = reduce sum n1
//!   out n2
//! ```
//!
//! INVARIANT: everything that decides what is computed is in the text.
use crate::kernel::{Affine, Kernel, Node};
use crate::plan::{Place, Plan, Step, Trip};
use crate::routine::Routine;
use std::fmt::{self, Display, Formatter, Write};

impl Display for Affine {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let mut first = true;
        let mut term = |f: &mut Formatter, s: i64, i: Option<usize>| {
            match (first, s < 0) {
                (true, true) => f.write_char('-')?,
                (false, true) => f.write_str(" - ")?,
                (false, false) => f.write_str(" + ")?,
                (true, false) => (),
            }
            first = false;
            match i {
                Some(i) if s.abs() == 1 => write!(f, "i{i}"),
                Some(i) => write!(f, "{} i{i}", s.unsigned_abs()),
                None => write!(f, "{}", s.unsigned_abs()),
            }
        };
        let mut any = false;
        for (i, s) in self.strides.iter().enumerate().filter(|(_, s)| **s != 0) {
            term(f, *s, Some(i))?;
            any = true;
        }
        if self.offset != 0 || !any {
            term(f, self.offset, None)?;
        }
        Ok(())
    }
}

impl Display for Kernel {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(f, "kernel {}", self.grid)?;
        if !self.rdims.is_empty() {
            write!(f, " reduce {}", self.rdims)?;
        }
        for (i, (d, n)) in self.nodes.iter().enumerate() {
            write!(f, "\n  n{i}:{d} = ")?;
            match n {
                Node::Const(s) => write!(f, "{s}")?,
                Node::Index(a) => write!(f, "index {a}")?,
                Node::Load(a) => {
                    write!(f, "load {}[{}]", a.input, a.at)?;
                    for g in &a.guards {
                        write!(f, " if {} <= {} < {}", g.lo, g.at, g.hi)?;
                    }
                    if !a.guards.is_empty() {
                        write!(f, " else {}", a.fill)?;
                    }
                }
                Node::Un(u, x) => write!(f, "{} n{x}", u.name())?,
                Node::Bin(b, x, y) => write!(f, "{} n{x} n{y}", b.name())?,
                Node::Select { p, t, f: e } => write!(f, "select n{p} n{t} n{e}")?,
                Node::Convert(x) => write!(f, "convert n{x}")?,
                Node::Bitcast(x) => write!(f, "bitcast n{x}")?,
                Node::Round { of, exponent, mantissa } => write!(f, "round[{exponent}, {mantissa}] n{of}")?,
                Node::Reduce { kind, of } => write!(f, "reduce {} n{of}", kind.name())?,
            }
        }
        for o in &self.outputs {
            write!(f, "\n  out n{o}")?;
        }
        Ok(())
    }
}

impl Display for Routine {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        // Debug of the parameters without the enum's own wrapping
        match self {
            Routine::Dot(d) => write!(
                f,
                "dot {}[b={} m={} n={} k={} lhs={:?} rhs={:?} out={}]",
                d.dtype, d.b, d.m, d.n, d.k, d.lhs, d.rhs, d.out
            ),
            r => write!(f, "{} {:?}", r.name(), r),
        }
    }
}

impl Display for Plan {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let slot = |s: u32| {
            let x = &self.slots[s as usize];
            format!("s{s}:{}{}[{}]", "tape ".repeat(x.tape as usize), x.dtype, x.len)
        };
        let list = |v: &[u32]| v.iter().map(|s| slot(*s)).collect::<Vec<_>>().join(" ");
        writeln!(f, "plan ({}) -> ({}) arena={}", list(&self.inputs), list(&self.outputs), self.arena)?;
        for (s, p) in self.places.iter().enumerate() {
            match p {
                Place::Same(of) => writeln!(f, "  s{s} is s{of}")?,
                Place::Arena(at) if self.slots[s].bytes() > 0 => writeln!(f, "  s{s} at {at}")?,
                _ => (),
            }
        }
        for (i, d) in self.donatable.iter().enumerate() {
            if let Some(j) = d {
                writeln!(f, "  output {i} may take over input {j}")?;
            }
        }
        let mut out = String::new();
        steps(&mut out, &self.steps, 1, &list)?;
        f.write_str(&out)
    }
}

fn steps(f: &mut String, s: &[Step], depth: usize, list: &dyn Fn(&[u32]) -> String) -> fmt::Result {
    let pad = "  ".repeat(depth);
    for s in s {
        match s {
            Step::Kernel { kernel, ins, outs } => writeln!(
                f,
                "{pad}{} = {} of {}",
                list(outs),
                kernel.to_string().replace('\n', &format!("\n{pad}")),
                list(ins)
            )?,
            Step::Routine { routine, ins, outs } => writeln!(f, "{pad}{} = {routine} of {}", list(outs), list(ins))?,
            Step::Copy { from, to } => writeln!(f, "{pad}{} = {}", list(&[*to]), list(&[*from]))?,
            Step::Switch { index, branches, outs } => {
                writeln!(f, "{pad}{} = switch {}", list(outs), list(&[*index]))?;
                for (i, b) in branches.iter().enumerate() {
                    writeln!(f, "{pad}  case {i}:")?;
                    steps(f, b, depth + 2, list)?;
                }
            }
            Step::Loop(l) => {
                let trip = match &l.trip {
                    Trip::Static(n) => format!("{n} times"),
                    Trip::Dyn(n) => format!("{} times", list(&[*n])),
                    Trip::While { pred, .. } => format!("while {}", list(&[*pred])),
                };
                writeln!(f, "{pad}loop {trip}{}", if l.reverse { " in reverse" } else { "" })?;
                for c in &l.carries {
                    writeln!(
                        f,
                        "{pad}  carry {} from {} to {}, then {}",
                        list(&[c.slot]),
                        list(&[c.init]),
                        list(&[c.next]),
                        list(&[c.out])
                    )?;
                }
                for w in &l.xs {
                    writeln!(f, "{pad}  each {} of {}", list(&[w.each]), list(&[w.all]))?;
                }
                for w in &l.ys {
                    writeln!(f, "{pad}  push {} to {}", list(&[w.each]), list(&[w.all]))?;
                }
                if let Trip::While { cond, .. } = &l.trip {
                    writeln!(f, "{pad}  cond:")?;
                    steps(f, cond, depth + 2, list)?;
                }
                writeln!(f, "{pad}  body:")?;
                steps(f, &l.body, depth + 2, list)?;
            }
            Step::Callback { call, ins, outs } => writeln!(f, "{pad}{} = {call:?} of {}", list(outs), list(ins))?,
            Step::Collective { kind, across, ins, outs } => {
                writeln!(f, "{pad}{} = {kind:?} over {across:?} of {}", list(outs), list(ins))?
            }
            Step::TapeLen { tape, out } => writeln!(f, "{pad}{} = length of {}", list(&[*out]), list(&[*tape]))?,
            Step::EmptyTape { out } => writeln!(f, "{pad}{} = empty", list(&[*out]))?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn affine_forms_read_as_sums() {
        let s = |o, v: &[i64]| Affine::new(o, v.iter().copied()).to_string();
        assert_eq!(
            [s(0, &[]), s(2, &[1]), s(-1, &[-1, 0, 3]), s(0, &[-2])],
            ["0", "i0 + 2", "-i0 + 3 i2 - 1", "-2 i0"]
        );
    }
}
