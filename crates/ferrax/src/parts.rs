//! Sharded arrays: a mesh of devices, and the mesh axes that partition each dimension.
//!
//! ```text
//! mesh {x: 2, y: 2} on devices a b / c d,  dims [[x], []]  -->  rows 0..n/2 on a and b, rows n/2..n on c and d
//! ```
//!
//! INVARIANT: every device of a mesh holds one part, all parts of an array have one shape, and
//! parts along axes that partition nothing are equal.
use crate::device::Device;
use ferrax_ir::error::{Error, Res};
use ferrax_kernel::error::room;
use smallvec::SmallVec;
use std::any::Any;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

/// Something of the program that this library is loaded into, which is kept and given back.
pub type HostObject = Arc<dyn Any + Send + Sync>;
/// Which mesh axes cut a dimension, coarsest first.
pub type Cut = SmallVec<[u8; 2]>;
/// Start and length along each dimension.
pub type Extents = SmallVec<[(usize, usize); 4]>;

/// Devices in a grid with named axes, row major.
#[derive(Debug, PartialEq, Eq)]
pub struct DeviceMesh {
    pub axes: Vec<(Arc<str>, usize)>,
    pub devices: Vec<&'static Device>,
}
impl DeviceMesh {
    pub fn new(axes: Vec<(Arc<str>, usize)>, devices: Vec<&'static Device>) -> Res<DeviceMesh> {
        let n: usize = axes.iter().map(|a| a.1).product();
        if n != devices.len() || n == 0 {
            return Err(Error::value(format!("a mesh of {n} places needs as many devices, got {}", devices.len())));
        }
        Ok(DeviceMesh { axes, devices })
    }
    /// Where a device stands along an axis.
    fn coordinate(&self, position: usize, axis: usize) -> usize {
        let stride: usize = self.axes[axis + 1..].iter().map(|a| a.1).product();
        position / stride % self.axes[axis].1
    }
}
impl Hash for DeviceMesh {
    fn hash<H: Hasher>(&self, h: &mut H) {
        self.axes.hash(h);
        self.devices.iter().for_each(|d| d.id.hash(h));
    }
}

/// Where the parts of an array lie.
pub struct Layout {
    pub mesh: Arc<DeviceMesh>,
    /// One for each dimension of the array.
    pub dims: Vec<Cut>,
    /// The host's object for the mesh, where it gave one.
    pub host_mesh: Option<HostObject>,
    /// The host's object for the layout: the one that the user gave, or one made when first asked for.
    pub host: OnceLock<HostObject>,
}
impl PartialEq for Layout {
    fn eq(&self, o: &Layout) -> bool {
        (Arc::ptr_eq(&self.mesh, &o.mesh) || self.mesh == o.mesh) && self.dims == o.dims
    }
}
impl Layout {
    pub fn new(mesh: Arc<DeviceMesh>, dims: Vec<Cut>, host_mesh: Option<HostObject>) -> Layout {
        Layout { mesh, dims, host_mesh, host: OnceLock::new() }
    }
    /// The same mesh, cut otherwise.
    pub fn with(&self, dims: Vec<Cut>) -> Layout {
        Layout::new(self.mesh.clone(), dims, self.host_mesh.clone())
    }
    pub fn devices(&self) -> &[&'static Device] {
        &self.mesh.devices
    }
    /// Into how many pieces a dimension is cut.
    pub fn pieces(&self, dim: usize) -> usize {
        self.dims.get(dim).map_or(1, |c| c.iter().map(|a| self.mesh.axes[*a as usize].1).product())
    }
    pub fn is_replicated(&self) -> bool {
        (0..self.dims.len()).all(|d| self.pieces(d) == 1)
    }
    /// The shape of one device's part.
    pub fn part_shape(&self, shape: &[usize]) -> Res<SmallVec<[usize; 4]>> {
        if self.dims.len() > shape.len() {
            return Err(Error::value(format!(
                "a layout of {} dimensions for an array of rank {}",
                self.dims.len(),
                shape.len()
            )));
        }
        let each = shape.iter().enumerate().map(|(d, n)| match self.pieces(d) {
            k if n % k == 0 => Ok(n / k),
            k => Err(Error::value(format!("dimension {d} of size {n} cannot be cut into {k} equal parts"))),
        });
        each.collect()
    }
    /// What the device at a position of the mesh holds.
    pub fn region(&self, position: usize, shape: &[usize]) -> Extents {
        let along = |(d, n): (usize, &usize)| {
            let (mut at, mut k) = (0, 1);
            for a in self.dims.get(d).into_iter().flatten() {
                at = at * self.mesh.axes[*a as usize].1 + self.mesh.coordinate(position, *a as usize);
                k *= self.mesh.axes[*a as usize].1;
            }
            (at * (n / k), n / k)
        };
        shape.iter().enumerate().map(along).collect()
    }
    /// What each device holds, in order.
    pub fn regions(&self, shape: &[usize]) -> Vec<Extents> {
        (0..self.devices().len()).map(|p| self.region(p, shape)).collect()
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
        let axes = axes.iter().map(|(name, n)| (Arc::from(*name), *n)).collect();
        let mesh = DeviceMesh::new(axes, vec![&device::cpus()[0]; n]).expect("as many devices");
        Layout::new(Arc::new(mesh), dims.iter().map(|d| Cut::from_slice(d)).collect(), None)
    }
    #[test]
    fn regions_follow_the_mesh() {
        let l = layout(&[("x", 2), ("y", 3)], &[&[1], &[], &[0]]);
        assert_eq!(l.part_shape(&[6, 5, 4]).expect("it divides")[..], [2, 5, 2]);
        assert_eq!(l.region(4, &[6, 5, 4])[..], [(2, 2), (0, 5), (2, 2)]);
        assert!(l.part_shape(&[5, 5, 4]).is_err());
        let both = layout(&[("x", 2), ("y", 3)], &[&[1, 0]]);
        assert_eq!(both.regions(&[6]).iter().map(|r| r[0].0).collect::<Vec<_>>(), [0, 2, 4, 1, 3, 5]);
        assert!(layout(&[("x", 2)], &[&[], &[]]).is_replicated());
    }
    /// Every layout's parts, made of every other layout's, are what the whole array has there.
    #[test]
    fn parts_of_parts() {
        let shape = [4, 6, 2];
        let bytes: Vec<u8> = (0..48u8).flat_map(|i| [i, 100 + i]).collect();
        let cuts: [&[&[u8]]; 7] =
            [&[], &[&[0]], &[&[], &[1]], &[&[0], &[1]], &[&[], &[1, 0]], &[&[], &[0, 1]], &[&[], &[1], &[0]]];
        let all: Vec<Layout> = cuts.iter().map(|c| layout(&[("x", 2), ("y", 3)], c)).collect();
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
