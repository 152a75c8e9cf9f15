//! Sharded arrays: a mesh of devices, and the mesh axes that partition each dimension.
//!
//! ```text
//! mesh {x: 2, y: 2} on devices a b / c d,  dims [[x], []]  -->  rows 0..n/2 on a and b, rows n/2..n on c and d
//! ```
//!
//! INVARIANT: every device of a mesh holds one part, all parts of an array have one shape, and
//! parts along axes that partition nothing are equal.
use crate::device::{Device, numbered};
use ferrax_ir::cut::{MeshType, TypedCut};
use ferrax_ir::error::{Error, Res};
use ferrax_ir::layout::{CutAxes, Grid, Spec};
use ferrax_ir::ops::collective::Names;
use ferrax_ir::ops::pmap::Places;
use ferrax_ir::ops::shard_map::ShardMap;
use ferrax_ir::ops::sharding_constraint::ShardingConstraint;
use ferrax_kernel::Dims;
use ferrax_kernel::error::room;
use smallvec::SmallVec;
use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock};

/// Something of the program that this library is loaded into, which is kept and given back.
pub type HostObject = Arc<dyn Any + Send + Sync>;
/// Start and length along each dimension.
pub type Extents = SmallVec<[(usize, usize); 4]>;

/// Devices in a grid with named axes, row major.
#[derive(Debug, PartialEq, Eq)]
pub struct DeviceMesh {
    pub grid: Grid,
    pub devices: Vec<&'static Device>,
    /// What else the host says of the mesh: meshes of which it says different things are not the same.
    pub label: Arc<str>,
    /// What types know of it, where there is an axis of which they speak.
    pub typed: Option<Arc<MeshType>>,
}
impl DeviceMesh {
    pub fn new(grid: Grid, devices: Vec<&'static Device>, label: &str) -> Res<DeviceMesh> {
        let n = grid.size();
        if n != devices.len() || n == 0 {
            return Err(Error::value(format!("a mesh of {n} places needs as many devices, got {}", devices.len())));
        }
        let mut made = DeviceMesh { grid, devices, label: label.into(), typed: None };
        if !label.is_empty() {
            let all = TYPED.lock().unwrap_or_else(|e| e.into_inner());
            let same = |m: &&Arc<DeviceMesh>| m.grid == made.grid && m.devices == made.devices && m.label == made.label;
            made.typed = all.iter().find(same).and_then(|m| m.typed.clone());
        }
        Ok(made)
    }
}

/// The meshes of whose axes types speak, by what they know of them: a program names one by its type.
static TYPED: Mutex<Vec<Arc<DeviceMesh>>> = Mutex::new(vec![]);
impl DeviceMesh {
    /// The mesh, of which types know this from now on.
    pub fn known_as(mut self, typed: MeshType) -> Arc<DeviceMesh> {
        let mut all = TYPED.lock().unwrap_or_else(|e| e.into_inner());
        let known = all.iter().find_map(|m| m.typed.as_ref().filter(|t| ***t == typed).cloned());
        self.typed = Some(known.unwrap_or_else(|| Arc::new(typed)));
        if let Some(known) = all.iter().find(|m| ***m == self) {
            return known.clone();
        }
        let made = Arc::new(self);
        all.push(made.clone());
        made
    }
}

/// Where the parts of an array lie.
pub struct Layout {
    pub mesh: Arc<DeviceMesh>,
    /// Of as many dimensions as the array has.
    pub spec: Spec,
    /// The host's object for the mesh, where it gave one.
    pub host_mesh: Option<HostObject>,
    cut: OnceLock<TypedCut>,
    /// The host's object for the layout: the one that the user gave, or one made when first asked for.
    pub host: OnceLock<HostObject>,
}
impl PartialEq for Layout {
    fn eq(&self, o: &Layout) -> bool {
        self.on_same_mesh(o) && self.spec == o.spec
    }
}
impl Layout {
    pub fn new(mesh: Arc<DeviceMesh>, spec: Spec, host_mesh: Option<HostObject>) -> Layout {
        Layout { mesh, spec, host_mesh, cut: OnceLock::new(), host: OnceLock::new() }
    }
    /// What types of arrays that lie so say.
    pub fn cut(&self) -> TypedCut {
        let Some(typed) = &self.mesh.typed else { return TypedCut::NONE };
        *self.cut.get_or_init(|| TypedCut::new(typed, &self.spec))
    }
    /// As a type says, on the mesh that was made last of those it may mean.
    pub fn of_cut(cut: TypedCut) -> Option<Layout> {
        let parted = cut.get()?;
        let all = TYPED.lock().unwrap_or_else(|e| e.into_inner());
        let mesh = all.iter().rev().find(|m| m.typed.as_ref() == Some(&parted.mesh))?;
        Some(Layout::new(mesh.clone(), parted.spec.clone(), None))
    }
    /// The same mesh, cut otherwise.
    pub fn with(&self, spec: Spec) -> Layout {
        Layout::new(self.mesh.clone(), spec, self.host_mesh.clone())
    }
    pub fn devices(&self) -> &[&'static Device] {
        &self.mesh.devices
    }
    /// The positions of the mesh whose devices belong to this process.
    pub fn local(&self) -> Vec<usize> {
        (0..self.devices().len()).filter(|i| self.devices()[*i].is_local()).collect()
    }
    /// Whether this process has all devices.
    pub fn is_addressable(&self) -> bool {
        self.devices().iter().all(|d| d.is_local())
    }
    /// What each device of this process holds, in order.
    pub fn local_regions(&self, shape: &[usize]) -> Vec<Extents> {
        let all = self.regions(shape);
        self.local().into_iter().map(|i| all[i].clone()).collect()
    }
    pub fn on_same_mesh(&self, o: &Layout) -> bool {
        Arc::ptr_eq(&self.mesh, &o.mesh) || self.mesh == o.mesh
    }
    pub fn is_replicated(&self) -> bool {
        self.spec.unreduced.is_empty() && self.spec.dims.iter().all(|d| self.mesh.grid.parts(d) == 1)
    }
    /// The shape of one device's part.
    pub fn part_shape(&self, shape: &[usize]) -> Res<Dims> {
        self.spec.check(&self.mesh.grid, shape)?;
        Ok(self.spec.shard_shape(&self.mesh.grid, shape))
    }
    /// What each device holds, in order.
    pub fn regions(&self, shape: &[usize]) -> Vec<Extents> {
        let (grid, part) = (&self.mesh.grid, self.spec.shard_shape(&self.mesh.grid, shape));
        let held = |rank| {
            let start = self.spec.start(grid, shape, &grid.position(rank));
            start.iter().copied().zip(part.iter().copied()).collect()
        };
        (0..self.devices().len()).map(held).collect()
    }
    /// Whether the same devices hold the same parts, in one order.
    pub fn lies_as(&self, o: &Layout, shape: &[usize]) -> bool {
        let same = std::ptr::eq(self, o) || self == o;
        let terms = !self.spec.unreduced.is_empty() || !o.spec.unreduced.is_empty();
        let alike = !terms || self.on_same_mesh(o) && self.spec.unreduced == o.spec.unreduced;
        same || alike && self.devices() == o.devices() && self.regions(shape) == o.regions(shape)
    }
    /// The same parts in terms of another mesh of the same devices, if its axes can say so.
    pub fn named_by(&self, o: &Layout, shape: &[usize]) -> Option<Layout> {
        Some(o.with(self.spec.renamed(&self.mesh.grid, &o.mesh.grid, shape)?))
    }
    /// What a constraint asks for; `None` where it names no devices.
    pub fn of_constraint(c: &ShardingConstraint) -> Option<Layout> {
        let devices: Vec<&'static Device> = c.devices.0.iter().map(|id| numbered(*id)).collect::<Option<_>>()?;
        let mesh = DeviceMesh::new(c.mesh.clone(), devices, "").ok()?;
        let cut = |names: &Names| names.0.iter().filter_map(|n| c.mesh.find(n)).collect::<CutAxes>();
        Some(Layout::new(Arc::new(mesh), Spec::new(c.spec.iter().map(cut)), None))
    }
    /// The mesh of a body for parts; `None` where it names no devices.
    pub fn of_shard_map(s: &ShardMap) -> Option<Layout> {
        let devices: Vec<&'static Device> = s.devices.0.iter().map(|id| numbered(*id)).collect::<Option<_>>()?;
        let mesh = DeviceMesh::new(s.mesh.clone(), devices, s.label.as_deref().unwrap_or_default()).ok()?;
        Some(Layout::new(Arc::new(mesh), Spec::default(), None))
    }
    /// The constraint that asks for it.
    pub fn to_constraint(&self) -> ShardingConstraint {
        ShardingConstraint {
            mesh: self.mesh.grid.clone(),
            spec: self.spec.dims.iter().map(|cut| Names(self.mesh.grid.names(cut).into_iter().collect())).collect(),
            unconstrained_dims: Dims::default(),
            devices: Places(self.devices().iter().map(|d| d.id).collect()),
        }
    }
}
/// All of an array.
pub fn whole(shape: &[usize]) -> Extents {
    shape.iter().map(|n| (0, *n)).collect()
}
/// How many elements a region has.
pub fn size(r: &Extents) -> usize {
    r.iter().map(|r| r.1).product()
}
/// The elements of a region, of `width` bytes each, from those of regions that cover it together.
pub fn assembled<'a>(
    parts: impl Iterator<Item = (&'a Extents, &'a [u8])>,
    wanted: &Extents,
    width: usize,
) -> Res<Vec<u8>> {
    let mut out = room(size(wanted) * width)?;
    out.resize(size(wanted) * width, 0);
    let mut seen: Vec<&Extents> = vec![];
    for (r, bytes) in parts {
        if !seen.contains(&r) {
            seen.push(r);
            copy_common(r, bytes, wanted, &mut out, width);
        }
    }
    Ok(out)
}
/// Copies what two regions have in common.
fn copy_common(from: &Extents, src: &[u8], to: &Extents, dst: &mut [u8], width: usize) {
    let mut common = Extents::new();
    for (a, b) in from.iter().zip(to) {
        let (start, end) = (a.0.max(b.0), (a.0 + a.1).min(b.0 + b.1));
        if start >= end {
            return;
        }
        common.push((start, end - start));
    }
    // dimensions that are whole in both lie together, and the innermost of the others is one run of elements with them
    let mut inner = common.len();
    let mut run = width;
    while inner > 0 {
        inner -= 1;
        run *= common[inner].1;
        if common[inner] != from[inner] || common[inner] != to[inner] {
            break;
        }
    }
    let offset = |of: &Extents, at: &[usize]| {
        let place = |(d, r): (usize, &(usize, usize))| at.get(d).copied().unwrap_or(common[d].0) - r.0;
        of.iter().enumerate().fold(0, |o, (d, r)| o * r.1 + place((d, r))) * width
    };
    let mut at: SmallVec<[usize; 4]> = common[..inner].iter().map(|c| c.0).collect();
    loop {
        let (s, d) = (offset(from, &at), offset(to, &at));
        dst[d..d + run].copy_from_slice(&src[s..s + run]);
        let Some(k) = (0..inner).rev().find(|k| at[*k] + 1 < common[*k].0 + common[*k].1) else { return };
        at[k] += 1;
        at[k + 1..].iter_mut().zip(&common[k + 1..]).for_each(|(a, c)| *a = c.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device;

    fn layout(axes: &[(&str, usize)], dims: &[&[u8]]) -> Layout {
        let n = axes.iter().map(|a| a.1).product();
        let grid = Grid::new(axes.iter().map(|(name, n)| (Arc::from(*name), *n)));
        let mesh = DeviceMesh::new(grid, vec![&device::cpus()[0]; n], "").expect("as many devices");
        Layout::new(Arc::new(mesh), Spec::new(dims.iter().map(|d| CutAxes::from_slice(d))), None)
    }
    #[test]
    fn regions_follow_the_mesh() {
        let l = layout(&[("x", 2), ("y", 3)], &[&[1], &[], &[0]]);
        assert_eq!(l.part_shape(&[6, 5, 4]).expect("it divides")[..], [2, 5, 2]);
        assert_eq!(l.regions(&[6, 5, 4])[4][..], [(2, 2), (0, 5), (2, 2)]);
        assert!(l.part_shape(&[5, 5, 4]).is_err());
        let both = layout(&[("x", 2), ("y", 3)], &[&[1, 0]]);
        assert_eq!(both.regions(&[6]).iter().map(|r| r[0].0).collect::<Vec<_>>(), [0, 2, 4, 1, 3, 5]);
        assert!(layout(&[("x", 2)], &[&[], &[]]).is_replicated());
    }
    #[test]
    fn another_mesh_names_the_same_parts() {
        let one = layout(&[("a", 6)], &[&[], &[0]]);
        let other = layout(&[("x", 2), ("y", 3)], &[]);
        assert_eq!(
            one.named_by(&other, &[2, 6]).expect("x, then y").spec,
            Spec::new([CutAxes::new(), CutAxes::from_slice(&[0, 1])])
        );
        assert!(layout(&[("a", 3), ("b", 2)], &[&[0]]).named_by(&other, &[6]).is_none());
    }
    /// Every layout's parts, made of every other layout's, are what the whole array has there.
    #[test]
    fn parts_of_parts() {
        let shape = [4, 6, 2];
        let bytes: Vec<u8> = (0..48u8).flat_map(|i| [i, 100 + i]).collect();
        let cuts: [&[&[u8]]; 7] =
            [&[], &[&[0]], &[&[], &[1]], &[&[0], &[1]], &[&[], &[1, 0]], &[&[], &[0, 1]], &[&[], &[1], &[0]]];
        fn padded<'a>(c: &[&'a [u8]]) -> Vec<&'a [u8]> {
            (0..3).map(|d| c.get(d).copied().unwrap_or(&[])).collect()
        }
        let all: Vec<Layout> = cuts.iter().map(|c| layout(&[("x", 2), ("y", 3)], &padded(c))).collect();
        let everything = whole(&shape);
        let cut = |l: &Layout| -> Vec<(Extents, Vec<u8>)> {
            let part = |r: Extents| {
                let b = assembled(std::iter::once((&everything, &bytes[..])), &r, 2).expect("room");
                (r, b)
            };
            l.regions(&shape).into_iter().map(part).collect()
        };
        for a in &all {
            let parts = cut(a);
            let again = assembled(parts.iter().map(|(r, b)| (r, &b[..])), &everything, 2).expect("room");
            assert_eq!(again, bytes);
            for b in &all {
                for (r, want) in cut(b) {
                    assert_eq!(assembled(parts.iter().map(|(r, b)| (r, &b[..])), &r, 2).expect("room"), want);
                }
            }
        }
    }
}
