//! Sums over devices that are not taken, in types: [`Sums`], what a primitive makes of operands that are terms of one on each device
//! (`unreduced`), or that were made whole of them (`reduced`).
//!
//! ```text
//! f32[8]{U:x} + f32[8]{U:x}  ->  f32[8]{U:x}       each device adds its terms
//! f32[8]{U:x} * f32[8]{R:x}  ->  f32[8]{U:x}
//! sin(f32[8]{U:x})           ->  refused           not linear: the sum must be taken before, by `reshard`
//! ```
//!
//! INVARIANT: where a type says `unreduced`, the op is linear in the operands that [`Sums::term`] names, all of them together. So the pass
//! that partitions programs runs it on each device's terms.
use super::{Specs, Typing};
use crate::aval::Aval;
use crate::error::{Error, Res};
use crate::layout::AxisSet;

/// The rule of a primitive for operands that are terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sums {
    /// Nothing.
    Refused,
    /// Element by element, and not linear.
    Pointwise,
    /// A sum of its operands that JAX has no rule for: only rules emit it of terms.
    Linear,
    Add,
    Mul,
    /// The first operand's elements, in other places.
    Moved,
    /// The first operand's elements and the second's.
    Padded,
    /// The elements of all operands.
    Alike,
    /// Those of one of the operands behind the first.
    Chosen,
    /// As moved, but not of terms.
    Sliced,
    Dot,
}
impl Sums {
    /// The axes along which operand `i` must be a term, where the result is one along `out`.
    pub fn term(self, i: usize, operand: AxisSet, out: AxisSet) -> AxisSet {
        match self {
            Sums::Add | Sums::Linear | Sums::Alike => out,
            Sums::Mul => operand & out,
            Sums::Moved if i == 0 => out,
            Sums::Padded if i < 2 => out,
            Sums::Chosen if i > 0 => out,
            _ => AxisSet::NONE,
        }
    }
}

fn not_there<T>(what: &str, name: &str) -> Res<T> {
    Err(Error::not_implemented(format!("{what} rule for {name} is not implemented: take the sum before, by `reshard`")))
}

impl Typing<'_> {
    /// Writes into the specs of the results what they are of sums.
    pub fn sums(&self, kind: Sums, made: &mut Specs) -> Res<()> {
        if self.specs.iter().all(|s| s.unreduced.is_empty() && s.reduced.is_empty()) {
            return Ok(());
        }
        let reduced = self.reduced(kind)?;
        let unreduced = self.unreduced(kind)?;
        for spec in made {
            let cut = spec.cutting();
            spec.unreduced = unreduced.without(cut);
            spec.reduced = reduced.without(cut | unreduced);
        }
        Ok(())
    }
    /// The axes along which the devices have different parts of an operand.
    fn apart(&self, i: usize) -> AxisSet {
        let Some(s) = self.specs.get(i) else { return AxisSet::NONE };
        let varies = self.x[i].vary.names();
        s.cutting() | AxisSet::of(varies.iter().filter_map(|n| self.mesh.grid.find(n)))
    }
    fn of(&self, i: usize) -> (AxisSet, AxisSet) {
        self.specs.get(i).map_or((AxisSet::NONE, AxisSet::NONE), |s| (s.unreduced, s.reduced))
    }
    /// The one set in the types of operands, if any; refused where two have different ones.
    fn common(&self, which: impl Fn(usize) -> AxisSet, words: impl Fn(&str) -> String) -> Res<AxisSet> {
        let mut distinct: Vec<AxisSet> = vec![];
        for set in (0..self.x.len()).map(which).filter(|s| !s.is_empty()) {
            if !distinct.contains(&set) {
                distinct.push(set);
            }
        }
        if distinct.len() > 1 {
            let sets: Vec<String> = distinct.iter().map(|s| self.set_text(*s)).collect();
            self.refuse(|| words(&format!("{{{}}}", sets.join(", "))))?;
        }
        Ok(distinct.first().copied().unwrap_or_default())
    }
    fn reduced(&self, kind: Sums) -> Res<AxisSet> {
        let of = |i: usize| self.of(i).1;
        match kind {
            Sums::Refused if self.strict() => not_there("unreduced/reduced", self.name),
            Sums::Refused | Sums::Dot => Ok(AxisSet::NONE),
            Sums::Moved | Sums::Padded | Sums::Sliced => Ok(of(0)),
            Sums::Chosen => Ok((1..self.x.len()).map(of).find(|s| !s.is_empty()).unwrap_or_default()),
            Sums::Alike => self.common(of, |sets| {
                format!("All operands should be reduced along the same mesh axes. Got reduced specs: {sets}")
            }),
            Sums::Pointwise | Sums::Linear | Sums::Add | Sums::Mul => {
                let all = self.common(of, |sets| {
                    format!("All inputs should be reduced across the same mesh axes. Got specs: {sets}")
                })?;
                self.check_reduced(all)?;
                Ok(all)
            }
        }
    }
    /// Along the axes that an operand is reduced on, all are reduced or terms. A scalar is what it has to be, but in a body for parts.
    fn check_reduced(&self, all: AxisSet) -> Res<()> {
        let in_body = !(all & self.mesh.axes(|m| &m.manual)).is_empty();
        let arrays = self.x.iter().zip(&self.specs).enumerate().filter(|(_, (a, _))| a.rank() > 0 || in_body);
        for (i, (a, s)) in arrays.filter(|_| !all.is_empty()) {
            let cut = self.apart(i);
            let message =
                |words: &str| format!("{words}. Got input type: {} and reduced spec: {}", a.long(), self.set_text(all));
            if !(all & cut).is_empty() {
                self.refuse(|| {
                    message(
                        "Inputs cannot be sharded/varying on the same axes that another input is reduced on. Reshard the input which is \
                         reduced to be sharded on the mesh axes it is reduced on via `jax.sharding.reshard(inp, jax.P(...))`",
                    )
                })?;
            } else if !all.without(cut | s.unreduced | s.reduced).is_empty() {
                self.refuse(|| {
                    message("Inputs cannot be replicated on the same axes that another input is reduced on")
                })?;
            }
        }
        Ok(())
    }
    fn unreduced(&self, kind: Sums) -> Res<AxisSet> {
        let of = |i: usize| self.of(i).0;
        let all = (0..self.x.len()).fold(AxisSet::NONE, |all, i| all | of(i));
        match kind {
            _ if all.is_empty() => Ok(AxisSet::NONE),
            Sums::Pointwise | Sums::Linear | Sums::Sliced if self.strict() => not_there("unreduced", self.name),
            Sums::Refused | Sums::Pointwise | Sums::Sliced => Ok(AxisSet::NONE),
            Sums::Linear => Ok(all),
            Sums::Add => self.added(all),
            Sums::Mul => self.multiplied(),
            Sums::Moved | Sums::Padded => Ok(of(0)),
            Sums::Chosen => Ok((1..self.x.len()).map(of).find(|s| !s.is_empty()).unwrap_or_default()),
            Sums::Alike => self.common(of, |sets| {
                format!("All operands should be unreduced along the same mesh axes. Got unreduced specs: {sets}")
            }),
            Sums::Dot => {
                self.refuse(|| {
                    let (l, r) = (self.type_text(0), self.type_text(1));
                    format!("lhs or rhs passed to dot_general cannot be unreduced. Got lhs={l} and rhs={r}")
                })?;
                Ok(AxisSet::NONE)
            }
        }
    }
    fn added(&self, all: AxisSet) -> Res<AxisSet> {
        let (l, r) = (self.of(0).0, self.of(1).0);
        if !l.is_empty() && !r.is_empty() && l != r {
            let (l, r) = (self.set_text(l), self.set_text(r));
            self.refuse(|| {
                format!("lhs and rhs to `add` must be unreduced along the same mesh axes. Got lhs={l}, rhs={r}")
            })?;
        } else if l != r {
            let (this, other) = if r.is_empty() { ("lhs", "rhs") } else { ("rhs", "lhs") };
            self.refuse(|| {
                format!(
                    "{this} is unreduced while {other} is not. `add` operation does not allow this because there will be implicit \
                     communication. Please reduce {this} via `reshard` before calling `add`."
                )
            })?;
        }
        Ok(all)
    }
    fn multiplied(&self) -> Res<AxisSet> {
        let ((l, l_reduced), (r, r_reduced)) = (self.of(0), self.of(1));
        if !l.is_empty() && !r.is_empty() {
            let (l, r) = (self.set_text(l), self.set_text(r));
            self.refuse(|| {
                format!("lhs and rhs to `mul` cannot be unreduced since mul is bilinear. Got lhs={l}, rhs={r}")
            })?;
            return Ok(AxisSet::NONE);
        }
        let (terms, other, i) = if r.is_empty() { (l, r_reduced, 1) } else { (r, l_reduced, 0) };
        if terms != other {
            let (this, that) = if i == 1 { ("RHS", "LHS") } else { ("LHS", "RHS") };
            let types = [&self.x[0], &self.x[1]].map(Aval::long);
            self.refuse(|| {
                let got = format!("Got lhs={} and rhs={}", types[0], types[1]);
                format!("{this} should be reduced along the same axes {that} is unreduced on. {got}")
            })?;
        }
        Ok(terms.without(self.apart(i)))
    }
    fn set_text(&self, axes: AxisSet) -> String {
        let names: Vec<String> = axes.axes().iter().map(|a| format!("'{}'", self.mesh.grid.name(*a))).collect();
        if names.is_empty() { "frozenset()".into() } else { format!("frozenset({{{}}})", names.join(", ")) }
    }
}
