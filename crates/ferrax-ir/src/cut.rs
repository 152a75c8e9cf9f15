//! How types state the partitioning of a value: [`TypedCut`], the mesh whose axes types know and the [`Spec`] over them.
//!
//! ```text
//! f32[8@x,2]      the type of an array of 8 rows that the explicit axis x cuts
//! ```
//!
//! Where cuts live: a number in each type, of a table that is never emptied. A program of one device has the number 0 everywhere; there the
//! whole cost is one comparison for each operand of an equation that is typed. The rules are derived from the factors of the primitives
//! ([`typing`](crate::typing)), and the partition pass begins with what the types say.
//!
//! Inside a `shard_map`, for the axes that its body names, types state which values are terms of a sum along them, or are such a sum:
//! `f32[4]{U:x}`. They cut no dimension there.
//!
//! INVARIANT: equal cuts have one number. Axes whose type is neither Explicit nor Manual are not in it.
use crate::effects::Name;
use crate::layout::{AxisSet, CutAxes, Grid, Spec};
use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex, MutexGuard};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct TypedCut(u32);

/// A mesh as types know it.
#[derive(PartialEq, Eq, Hash, Debug)]
pub struct MeshType {
    pub grid: Grid,
    /// The axes that occur in types.
    pub explicit: Vec<bool>,
    /// The axes that a body for parts names: types state sums along them, and nothing else.
    pub manual: Vec<bool>,
    /// As the host prints it: meshes of which it says different things are not the same.
    pub label: Arc<str>,
}
/// The mesh and the spec of a [`TypedCut`].
#[derive(PartialEq, Eq, Debug)]
pub struct Parted {
    pub mesh: Arc<MeshType>,
    pub spec: Spec,
}

/// All cuts so far; that of number `n` is at `n - 1`. A program has few.
static CUTS: Mutex<Vec<Arc<Parted>>> = Mutex::new(vec![]);
fn cuts() -> MutexGuard<'static, Vec<Arc<Parted>>> {
    CUTS.lock().unwrap_or_else(|e| e.into_inner())
}
thread_local! {
    static LENIENT: Cell<bool> = const { Cell::new(false) };
    static WITHIN: RefCell<Option<Arc<MeshType>>> = const { RefCell::new(None) };
}

impl TypedCut {
    pub const NONE: TypedCut = TypedCut(0);
    /// The cut of a value, without the axes that do not occur in types.
    pub fn new(mesh: &Arc<MeshType>, spec: &Spec) -> TypedCut {
        let mut explicit = mesh.axes(|m| &m.explicit);
        if crate::settings::without_ones() {
            let ones = (0..mesh.grid.axes.len() as u8).filter(|a| mesh.grid.axis_size(*a) == 1);
            explicit = explicit.without(AxisSet::of(ones));
        }
        let known = explicit | mesh.axes(|m| &m.manual);
        let kept = |cut: &CutAxes| cut.iter().copied().filter(|a| explicit.contains(*a)).collect::<CutAxes>();
        let spec = Spec::new(spec.dims.iter().map(kept)).summed(spec.unreduced & known, spec.reduced & known);
        if !mesh.explicit.contains(&true) && spec.unreduced.is_empty() && spec.reduced.is_empty() {
            return TypedCut::NONE;
        }
        let mut cuts = cuts();
        let at = cuts.iter().position(|p| p.spec == spec && (Arc::ptr_eq(&p.mesh, mesh) || p.mesh == *mesh));
        let at = at.unwrap_or_else(|| {
            cuts.push(Arc::new(Parted { mesh: mesh.clone(), spec }));
            cuts.len() - 1
        });
        TypedCut(at as u32 + 1)
    }
    pub fn is_none(self) -> bool {
        self.0 == 0
    }
    pub fn get(self) -> Option<Arc<Parted>> {
        if self.is_none() { None } else { cuts().get(self.0 as usize - 1).cloned() }
    }
    /// The same on one more dimension, which is whole.
    pub fn insert(self, at: usize) -> TypedCut {
        self.insert_cut(at, CutAxes::new())
    }
    /// The same on one more dimension, which these axes cut.
    pub fn insert_cut(self, at: usize, axes: CutAxes) -> TypedCut {
        self.map(|s| s.dims.insert(at, axes))
    }
    /// The axes that cut a dimension.
    pub fn of_dim(self, d: usize) -> CutAxes {
        self.get().and_then(|p| p.spec.dims.get(d).cloned()).unwrap_or_default()
    }
    pub fn remove(self, at: usize) -> TypedCut {
        self.map(|s| drop(s.dims.remove(at)))
    }
    /// That of cotangents: what is one value on all devices has the sum of those that each has made, and the other way round.
    pub fn cotangent(self) -> TypedCut {
        self.map(|s| std::mem::swap(&mut s.unreduced, &mut s.reduced))
    }
    fn map(self, f: impl FnOnce(&mut Spec)) -> TypedCut {
        let Some(p) = self.get() else { return self };
        let mut spec = p.spec.clone();
        f(&mut spec);
        TypedCut::new(&p.mesh, &spec)
    }
}
/// The effect on sums along the axes that a body for parts names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recast {
    /// A value that varied is a term.
    Terms,
    /// A term is summed.
    Summed,
    /// What is one value has derivatives that are not summed.
    Reduced,
    /// These vary.
    Vary,
}
impl TypedCut {
    /// The type after this, in a body for parts; what types know of no mesh of these axes stays.
    pub fn recast(self, rank: usize, how: Recast, names: &[Name]) -> TypedCut {
        let (mesh, mut spec) = match (self.get(), BodyMesh::get()) {
            (Some(p), _) => (p.mesh.clone(), p.spec.clone()),
            (None, Some(mesh)) => (mesh, Spec::whole(rank)),
            (None, None) => return self,
        };
        let axes = AxisSet::of(names.iter().filter_map(|n| mesh.grid.find(n))) & mesh.axes(|m| &m.manual);
        match how {
            Recast::Terms => spec.unreduced = spec.unreduced | axes,
            Recast::Summed => spec.unreduced = spec.unreduced.without(axes),
            Recast::Reduced => spec.reduced = spec.reduced | axes,
            Recast::Vary => spec.reduced = spec.reduced.without(axes),
        }
        TypedCut::new(&mesh, &spec)
    }
    /// The axes that a body names along which values of this type are terms, and those along which they were summed.
    pub fn manual_sums(self) -> [Vec<Name>; 2] {
        let Some(p) = self.get() else { return [vec![], vec![]] };
        let manual = p.mesh.axes(|m| &m.manual);
        [p.spec.unreduced, p.spec.reduced].map(|s| p.mesh.grid.names(&(s & manual).axes()).into_vec())
    }
}
impl MeshType {
    pub fn axes(&self, which: impl Fn(&MeshType) -> &Vec<bool>) -> AxisSet {
        AxisSet::of(which(self).iter().enumerate().filter(|(_, is)| **is).map(|(a, _)| a as u8))
    }
}
/// While it lives, this thread types the body of a `shard_map` over this mesh.
#[must_use]
pub struct BodyMesh(Option<Arc<MeshType>>);
impl BodyMesh {
    pub fn enter(mesh: Option<Arc<MeshType>>) -> BodyMesh {
        BodyMesh(WITHIN.replace(mesh))
    }
    fn get() -> Option<Arc<MeshType>> {
        WITHIN.with_borrow(Clone::clone)
    }
}
impl Drop for BodyMesh {
    fn drop(&mut self) {
        WITHIN.replace(self.0.take());
    }
}
impl Parted {
    /// `@x`, `@(x,y)`, or nothing of a dimension that is whole.
    pub fn dim_text(&self, d: usize) -> String {
        at_text(&self.mesh.grid, &self.spec.dims[d])
    }
    /// `U:x`, `R:(x,y)`.
    pub fn sums_text(&self) -> Vec<String> {
        let sums = [("U", self.spec.unreduced), ("R", self.spec.reduced)];
        let present = sums.iter().filter(|s| !s.1.is_empty());
        present
            .map(|(mark, axes)| format!("{mark}:{}", at_text(&self.mesh.grid, &axes.axes()).trim_start_matches('@')))
            .collect()
    }
}
/// How types print the axes that cut a dimension.
pub fn at_text(grid: &Grid, cut: &[u8]) -> String {
    let names: Vec<&str> = cut.iter().map(|a| &**grid.name(*a)).collect();
    match names[..] {
        [] => String::new(),
        [one] => format!("@{one}"),
        _ => format!("@({})", names.join(",")),
    }
}

/// While it lives, what is ambiguous is resolved and not refused: rules and programs that were typed once are run again.
pub struct Lenient(bool);
impl Lenient {
    pub fn enter() -> Lenient {
        Lenient(LENIENT.replace(true))
    }
    /// Only where one of these is a cut: otherwise nothing can be refused.
    pub fn of(mut cuts: impl Iterator<Item = TypedCut>) -> Option<Lenient> {
        cuts.any(|c| !c.is_none()).then(Lenient::enter)
    }
    pub fn is_on() -> bool {
        LENIENT.get()
    }
}
impl Drop for Lenient {
    fn drop(&mut self) {
        LENIENT.set(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    #[test]
    fn equal_cuts_have_one_number() {
        let grid = Grid::new([("x".into(), 2), ("y".into(), 3)]);
        let mesh = |explicit: Vec<bool>| {
            let manual = explicit.iter().map(|e| !e).collect();
            Arc::new(MeshType { grid: grid.clone(), explicit, manual, label: "mesh".into() })
        };
        let spec = Spec::new([smallvec![1, 0], smallvec![]]);
        let a = TypedCut::new(&mesh(vec![true, true]), &spec);
        assert_eq!(a, TypedCut::new(&mesh(vec![true, true]), &spec));
        assert_eq!(a.get().expect("a cut").dim_text(0), "@(y,x)");
        assert_eq!(a.insert(0).remove(0), a);
        let auto = TypedCut::new(&mesh(vec![true, false]), &spec);
        assert_eq!(auto.get().expect("a cut").spec, Spec::new([smallvec![0], smallvec![]]));
    }
    #[test]
    fn bodies_for_parts_say_of_sums_alone() {
        let grid = Grid::new([("x".into(), 2)]);
        let mesh = Arc::new(MeshType { grid, explicit: vec![false], manual: vec![true], label: "mesh".into() });
        assert_eq!(TypedCut::new(&mesh, &Spec::new([smallvec![0]])), TypedCut::NONE);
        assert_eq!(TypedCut::NONE.recast(1, Recast::Terms, &["x".into()]), TypedCut::NONE);
        let _within = BodyMesh::enter(Some(mesh));
        let terms = TypedCut::NONE.recast(1, Recast::Terms, &["x".into()]);
        assert_eq!(terms.manual_sums(), [vec!["x".into()], vec![]]);
        assert_eq!(terms.cotangent().recast(1, Recast::Vary, &["x".into()]), TypedCut::NONE);
        assert_eq!(terms.recast(1, Recast::Summed, &["x".into()]), TypedCut::NONE);
    }
}
