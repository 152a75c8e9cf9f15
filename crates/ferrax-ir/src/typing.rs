//! The cuts of results, for operands whose types say how they are cut: one rule for all primitives, by their factors, and the words of
//! those that refuse more.
//!
//! ```text
//! f32[8@x,2] + f32[8,2]    ->  f32[8@x,2]       the result is cut as some operand is along that factor
//! f32[2,8@x] @ f32[8@x,4]  ->  refused          a sum over devices, and nothing says where it is to lie
//! ```
//!
//! INVARIANT: under [`Lenient`] nothing is refused: of two cuts the first one stands, and a sum is on all devices.
mod sums;

pub use sums::Sums;

use crate::aval::Aval;
use crate::cut::{Lenient, MeshType, Parted, TypedCut, at_text};
use crate::error::{Error, ErrorKind, Res, value_err};
use crate::factors::{DimFactors, Factors};
use crate::layout::{AxisSet, CutAxes, Grid, Spec};
use smallvec::SmallVec;
use std::sync::Arc;

/// The cuts of each result.
pub type Specs = SmallVec<[Spec; 1]>;

/// An equation whose results are to be typed.
pub struct Typing<'a> {
    pub name: &'static str,
    pub mesh: Arc<MeshType>,
    pub x: &'a [Aval],
    pub out: &'a [Aval],
    pub specs: SmallVec<[Spec; 2]>,
    /// Whether an operand's type speaks of a mesh.
    pub typed: SmallVec<[bool; 2]>,
    strict: bool,
}

/// Types results by their operands' types; called where one of these is cut.
#[cold]
pub fn results(name: &'static str, x: &[Aval], out: &mut [Aval], rule: impl FnOnce(&Typing) -> Res<Specs>) -> Res<()> {
    let found: SmallVec<[Option<Arc<Parted>>; 2]> = x.iter().map(|a| a.cut.get()).collect();
    let Some(mesh) = found.iter().flatten().map(|p| p.mesh.clone()).next() else { return Ok(()) };
    let strict = !Lenient::is_on();
    let mut specs = SmallVec::new();
    for (p, a) in found.iter().zip(x) {
        specs.push(match p {
            Some(p) if p.mesh == mesh => p.spec.clone(),
            Some(p) if strict => {
                return refused(format!(
                    "Mesh for all inputs should be equal. Got one mesh: {} and another mesh: {}",
                    mesh.label, p.mesh.label
                ));
            }
            _ => Spec::whole(a.rank()),
        });
    }
    let typed = found.iter().map(Option::is_some).collect();
    let typing = Typing { name, mesh: mesh.clone(), x, out, specs, typed, strict };
    let made = rule(&typing)?;
    let made: Vec<TypedCut> = made.into_iter().zip(&*out).map(|(s, a)| typing.cut(s, a)).collect::<Res<_>>()?;
    out.iter_mut().zip(made).for_each(|(a, c)| a.cut = c);
    Ok(())
}
/// A loop takes one element after the other: its leading axis is not cut.
pub fn leading_is_whole(a: &Aval) -> Res<()> {
    let Some(p) = a.cut.get().filter(|p| p.spec.dims.first().is_some_and(|d| !d.is_empty())) else { return Ok(()) };
    if Lenient::is_on() {
        return Ok(());
    }
    let spec = tuple(&p.mesh.grid, &p.spec.dims);
    value_err(format!("0th dimension of all xs should be replicated. Got P{spec}"))
}
/// What `vmap` maps over is cut alike in all operands.
pub fn mapped_alike(x: impl Iterator<Item = (TypedCut, Option<usize>)>) -> Res<()> {
    let mut first: Option<String> = None;
    for (cut, d) in x {
        let (Some(p), Some(d)) = (cut.get(), d) else { continue };
        let mine = dim_text(&p.mesh.grid, &p.spec.dims[d]);
        match &first {
            None => first = Some(mine),
            Some(f) if *f == mine || Lenient::is_on() => (),
            Some(f) => {
                return value_err(format!(
                    "Mapped away dimension of inputs passed to vmap should be sharded the same. Got inconsistent axis specs: {} vs {}",
                    f.trim_matches('\''),
                    mine.trim_matches('\'')
                ));
            }
        }
    }
    Ok(())
}
fn refused<T>(words: String) -> Res<T> {
    Err(Error::new(ErrorKind::ShardingType, words))
}

impl Typing<'_> {
    pub fn strict(&self) -> bool {
        self.strict
    }
    /// Refuses, but where what is ambiguous is resolved.
    pub fn refuse(&self, words: impl FnOnce() -> String) -> Res<()> {
        if self.strict { refused(words()) } else { Ok(()) }
    }
    /// Refuses a first operand that is cut along `axis`; `what` begins the error.
    pub fn refuse_along(&self, axis: usize, what: &str) -> Res<()> {
        if self.specs[0].dims[axis].is_empty() {
            return Ok(());
        }
        self.refuse(|| format!("{what}. Got input type={} and axis={axis}", self.x[0].long()))
    }
    pub fn parts(&self, cut: &[u8]) -> usize {
        self.mesh.grid.parts(cut)
    }
    /// The type of a result: axes that cut two dimensions, or that do not divide one, do not form a type.
    fn cut(&self, mut spec: Spec, a: &Aval) -> Res<TypedCut> {
        if spec.dims.len() != a.rank() {
            spec = Spec::whole(a.rank()).summed(spec.unreduced, spec.reduced);
        }
        let mut seen: CutAxes = CutAxes::new();
        for d in 0..a.rank() {
            if spec.dims[d].iter().any(|a| seen.contains(a)) {
                self.refuse(|| {
                    let dims = spec.dims.iter().zip(&a.shape[..]);
                    let dims: Vec<String> = dims.map(|(c, n)| format!("{n}{}", at_text(&self.mesh.grid, c))).collect();
                    let inputs: Vec<String> = self.x.iter().map(Aval::to_string).collect();
                    format!(
                        "{} operation with inputs: {} produces an illegally sharded result: {}[{}]",
                        self.name,
                        inputs.join(", "),
                        a.dtype,
                        dims.join(",")
                    )
                })?;
                spec.dims[d].clear();
            }
            if !a.shape[d].is_multiple_of(self.parts(&spec.dims[d]).max(1)) {
                self.refuse(|| {
                    format!(
                        "Sharding spec {} implies that array axis {d} is partitioned {} times, but does not evenly divide the dimension size {}. Got \
                         shape: {} and {}",
                        self.dim_text(&spec.dims[d]).trim_matches('\''),
                        self.parts(&spec.dims[d]),
                        a.shape[d],
                        shape_text(a),
                        self.mesh.label
                    )
                })?;
                spec.dims[d].clear();
            }
            seen.extend_from_slice(&spec.dims[d]);
        }
        Ok(TypedCut::new(&self.mesh, &spec))
    }
    /// The general rule.
    pub fn by_factors(&self, f: &Factors) -> Res<Specs> {
        f.batch.map_or(Ok(()), |n| self.check_batch(n))?;
        let mut known: Vec<Option<&CutAxes>> = vec![None; f.factors.len()];
        for (spec, dims) in self.specs.iter().zip(&f.ins) {
            for (cut, ids) in spec.dims.iter().zip(dims) {
                let [id] = ids[..] else { continue };
                if cut.is_empty() || f.factors[id as usize].fold.is_some() {
                    continue;
                }
                match known[id as usize] {
                    None => known[id as usize] = Some(cut),
                    Some(k) if k == cut => (),
                    Some(_) => self.refuse(|| self.incompatible())?,
                }
            }
        }
        let of = |ids: &DimFactors| match ids[..] {
            [id] => known[id as usize].cloned().unwrap_or_default(),
            _ => CutAxes::new(),
        };
        Ok(f.outs.iter().map(|dims| Spec::new(dims.iter().map(of))).collect())
    }
    fn incompatible(&self) -> String {
        let specs = self.specs.iter().filter(|s| !s.dims.is_empty()).map(|s| self.tuple(&s.dims));
        format!("{} got incompatible shardings for broadcasting: {}.", self.name, specs.collect::<Vec<_>>().join(", "))
    }
    /// For elementwise ops: a dimension of size 1 is ignored.
    pub fn broadcasting(&self) -> Res<Specs> {
        let Some(rank) = self.out.first().map(Aval::rank) else { return Ok(Specs::new()) };
        let mut spec = Spec::whole(rank);
        for (a, s) in self.x.iter().zip(&self.specs).filter(|(a, _)| a.rank() == rank) {
            for d in 0..rank {
                match &s.dims[d] {
                    cut if cut.is_empty() || *cut == spec.dims[d] => (),
                    cut if spec.dims[d].is_empty() && a.shape[d] == self.out[0].shape[d] => spec.dims[d] = cut.clone(),
                    _ if a.shape[d] != self.out[0].shape[d] => (),
                    _ => self.refuse(|| self.incompatible())?,
                }
            }
        }
        Ok(self.out.iter().map(|_| spec.clone()).collect())
    }
    /// TypedCut as the first operand, whose dimensions have other sizes: those of the results must divide.
    pub fn varying(&self, what: &str) -> Res<Specs> {
        let mut made = Specs::new();
        for out in self.out {
            let mut spec = self.specs[0].clone();
            for (d, n) in out.shape.iter().enumerate() {
                let parts = self.parts(&spec.dims[d]).max(1);
                if *n == self.x[0].shape[d] || n.is_multiple_of(parts) {
                    continue;
                }
                self.refuse(|| {
                    format!(
                        "{what} on sharded dims where out dim ({n}) is not divisible by mesh axes ({parts}) with spec ({}) is not implemented. Got \
                         input type={} and output shape={}",
                        self.dim_text(&spec.dims[d]).trim_matches('\''),
                        self.x[0],
                        shape_text(out)
                    )
                })?;
                spec.dims[d].clear();
            }
            made.push(spec);
        }
        Ok(made)
    }
    /// All results as the first operand.
    pub fn as_first(&self) -> Specs {
        self.out.iter().map(|_| self.specs[0].clone()).collect()
    }
    /// Operands whose types have a mesh must be cut alike.
    pub fn alike(&self, from: usize, words: impl Fn(&str) -> String) -> Res<Spec> {
        let mut known = (from..self.x.len()).filter(|i| self.typed[*i]);
        let Some(first) = known.next() else { return Ok(Spec::whole(self.out[0].rank())) };
        if known.any(|i| self.specs[i] != self.specs[first]) {
            let all: Vec<String> = (from..self.x.len()).map(|i| self.sharding_text(i)).collect();
            self.refuse(|| words(&all.join(", ")))?;
            let cut = (from..self.x.len()).find(|i| !self.specs[*i].is_whole());
            return Ok(self.specs[cut.unwrap_or(first)].clone());
        }
        Ok(self.specs[first].clone())
    }
    /// Of decompositions and solves: whole but for `n` leading dimensions, along which all are cut alike.
    fn check_batch(&self, n: usize) -> Res<()> {
        let split = |s: &'_ Spec| n.min(s.dims.len());
        for (i, s) in self.specs.iter().enumerate() {
            if s.dims[split(s)..].iter().any(|d| !d.is_empty()) {
                self.refuse(|| {
                    format!(
                        "Input {i} to {} must be unsharded on non-batch dimensions, but got {}.",
                        self.name,
                        self.spec_text(s)
                    )
                })?;
            }
        }
        if self.specs.iter().any(|s| s.dims[..split(s)] != self.specs[0].dims[..split(&self.specs[0])]) {
            let all: Vec<String> = self.specs.iter().map(|s| self.tuple(&s.dims[..split(s)])).collect();
            self.refuse(|| {
                format!("All inputs to {} must have the same batch sharding, but got [{}].", self.name, all.join(", "))
            })?;
        }
        Ok(())
    }

    // ---- words ----
    fn dim_text(&self, cut: &[u8]) -> String {
        dim_text(&self.mesh.grid, cut)
    }
    /// As Python writes the tuple.
    pub fn tuple(&self, dims: &[CutAxes]) -> String {
        tuple(&self.mesh.grid, dims)
    }
    pub fn spec_text(&self, s: &Spec) -> String {
        let sums = [("unreduced", s.unreduced), ("reduced", s.reduced)];
        let known = |(name, axes): &(&str, AxisSet)| {
            let names: Vec<String> = axes.axes().iter().map(|a| format!("'{}'", self.mesh.grid.name(*a))).collect();
            format!("{name}={{{}}}", names.join(", "))
        };
        let sums: Vec<String> = sums.iter().filter(|s| !s.1.is_empty()).map(known).collect();
        if sums.is_empty() {
            return format!("P{}", self.tuple(&s.dims));
        }
        let dims = s.dims.iter().map(|d| self.dim_text(d));
        format!("P({})", dims.chain(sums).collect::<Vec<_>>().join(", "))
    }
    pub fn sharding_text(&self, i: usize) -> String {
        if !self.typed[i] {
            let none = Spec::whole(self.x[i].rank());
            return format!("NamedSharding(mesh=AbstractMesh((), axis_types=()), spec={})", self.spec_text(&none));
        }
        format!("NamedSharding(mesh={}, spec={})", self.mesh.label, self.spec_text(&self.specs[i]))
    }
    /// `({Explicit: ('x', 'y')})`, behind a type.
    pub fn axes_text(&self) -> String {
        let of = |explicit: bool| -> Vec<String> {
            let axes = self.mesh.grid.axes.iter().zip(&self.mesh.explicit);
            axes.filter(|(_, e)| **e == explicit).map(|(a, _)| format!("'{}'", a.0)).collect()
        };
        let known = |(kind, names): (&str, Vec<String>)| {
            (!names.is_empty())
                .then(|| format!("{kind}: ({}{})", names.join(", "), if names.len() == 1 { "," } else { "" }))
        };
        let kinds: Vec<String> = [("Auto", of(false)), ("Explicit", of(true))].into_iter().filter_map(known).collect();
        format!("({{{}}})", kinds.join(", "))
    }
    pub fn type_text(&self, i: usize) -> String {
        format!("ShapedArray({})", self.x[i].long())
    }
}
pub fn dim_text(grid: &Grid, cut: &[u8]) -> String {
    let names: Vec<String> = cut.iter().map(|a| format!("'{}'", grid.name(*a))).collect();
    match &names[..] {
        [] => "None".into(),
        [one] => one.clone(),
        many => format!("({})", many.join(", ")),
    }
}
fn tuple(grid: &Grid, dims: &[CutAxes]) -> String {
    let dims: Vec<String> = dims.iter().map(|d| dim_text(grid, d)).collect();
    format!("({}{})", dims.join(", "), if dims.len() == 1 { "," } else { "" })
}
fn shape_text(a: &Aval) -> String {
    shape_of(&a.shape)
}

impl Typing<'_> {
    /// The cut of a reshape: sizes of 1 come and go, one dimension is split into several, or several are merged to one.
    pub fn reshaped(&self, to: &[usize]) -> Res<Spec> {
        let (from, spec) = (&self.x[0].shape, &self.specs[0]);
        if spec.cutting().is_empty() {
            return Ok(Spec::whole(to.len()));
        }
        let not_one = |s: &[usize]| s.iter().copied().filter(|n| *n != 1).collect::<Vec<_>>();
        if not_one(from) == not_one(to) {
            let mut cuts = spec.dims.iter().zip(from.iter()).filter(|(_, n)| **n != 1).map(|(c, _)| c.clone());
            return Ok(Spec::new(to.iter().map(|n| if *n == 1 { None } else { cuts.next() }.unwrap_or_default())));
        }
        let found = if to.len() > from.len() {
            split(from, to).and_then(|groups| self.split_into(&groups, to))
        } else if to.len() < from.len() {
            split(to, from).and_then(|groups| self.merged(&groups, to))
        } else {
            None
        };
        match found {
            Some(spec) => Ok(spec),
            None => {
                let of = (self.x[0].long(), shape_of(to));
                self.refuse(|| {
                    format!(
                        "This reshape is not supported. Please specify the sharding of the output via the `out_sharding` argument of \
                         jax.lax.reshape. Got operand type: {}, new sizes: {}",
                        of.0, of.1
                    )
                })?;
                Ok(self.by_reshape(to))
            }
        }
    }
    /// What the dimensions that begin alike say, where nothing is refused.
    fn by_reshape(&self, to: &[usize]) -> Spec {
        let (mut spec, from) = (Spec::whole(to.len()), &self.x[0].shape);
        for d in 0..to.len().min(from.len()) {
            if from[d] != to[d] {
                break;
            }
            spec.dims[d] = self.specs[0].dims[d].clone();
        }
        spec
    }
    fn split_into(&self, groups: &[usize], to: &[usize]) -> Option<Spec> {
        let (mut dims, mut at) = (vec![], 0);
        for (cut, n) in self.specs[0].dims.iter().zip(groups) {
            let sizes = &to[at..at + n];
            at += n;
            if *n == 1 || cut.is_empty() {
                dims.push(cut.clone());
                dims.extend((1..*n).map(|_| CutAxes::new()));
            } else {
                dims.extend(self.among(cut, sizes)?);
            }
        }
        Some(Spec::new(dims))
    }
    fn merged(&self, groups: &[usize], to: &[usize]) -> Option<Spec> {
        let (mut dims, mut at) = (vec![], 0);
        for (n, size) in groups.iter().zip(to) {
            let cuts = &self.specs[0].dims[at..at + n];
            at += n;
            let last = cuts.iter().rposition(|c| !c.is_empty()).map_or(0, |k| k + 1);
            if *n > 1 && cuts[..last].iter().any(|c| c.is_empty()) {
                return None;
            }
            let all: CutAxes = cuts.iter().flatten().copied().collect();
            dims.extend(if *n == 1 || all.is_empty() { vec![all] } else { self.among(&all, &[*size])? });
        }
        Some(Spec::new(dims))
    }
    /// The axes of a dimension, dealt to those that it is split into.
    fn among(&self, cut: &[u8], sizes: &[usize]) -> Option<Vec<CutAxes>> {
        let (mut rest, mut made) = (cut.iter(), vec![]);
        for n in sizes {
            let (mut n, mut mine) = (*n, CutAxes::new());
            while n > 1
                && let Some(a) = rest.next()
            {
                let parts = self.mesh.grid.axis_size(*a);
                if !n.is_multiple_of(parts) {
                    return None;
                }
                n /= parts;
                mine.push(*a);
            }
            made.push(mine);
        }
        rest.next().is_none().then_some(made)
    }
}
fn shape_of(s: &[usize]) -> String {
    let dims: Vec<String> = s.iter().map(usize::to_string).collect();
    format!("({}{})", dims.join(", "), if dims.len() == 1 { "," } else { "" })
}
/// How many of the sizes `to` each of `from` is the product of, where one of them at most is of several.
fn split(from: &[usize], to: &[usize]) -> Option<Vec<usize>> {
    let extra = to.len() - from.len();
    (0..from.len()).find_map(|at| {
        let same = from[..at] == to[..at] && from[at + 1..] == to[at + extra + 1..];
        let product: usize = to[at..=at + extra].iter().product();
        (same && product == from[at]).then(|| (0..from.len()).map(|d| if d == at { extra + 1 } else { 1 }).collect())
    })
}
