//! How an array is cut among the devices of a mesh: [`Grid`], a mesh without its devices, and [`Spec`], for each dimension the axes
//! that cut it, the coarsest first.
//!
//! ```text
//! grid x:2 y:3, f32[8,6] cut as P('x', 'y'): each device has f32[4,2]; the device at (i, j) has rows 4i.. and columns 2j..
//! ```
//!
//! INVARIANT: an axis cuts one dimension of an array at most; along an axis that cuts none, all devices have the same values.
use crate::effects::Name;
use crate::error::{Res, value_err};
use ferrax_kernel::Dims;
use smallvec::SmallVec;

/// The axes that cut a dimension: indices into a grid's axes, the coarsest first.
pub type CutAxes = SmallVec<[u8; 2]>;

/// Some of a grid's axes; of more than 64 the first 64 can be in one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct AxisSet(u64);
impl AxisSet {
    pub const NONE: AxisSet = AxisSet(0);
    pub fn of(axes: impl IntoIterator<Item = u8>) -> AxisSet {
        AxisSet(axes.into_iter().fold(0, |set, a| set | 1u64.checked_shl(a.into()).unwrap_or(0)))
    }
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
    pub fn contains(self, axis: u8) -> bool {
        !(self & AxisSet::of([axis])).is_empty()
    }
    pub fn without(self, o: AxisSet) -> AxisSet {
        AxisSet(self.0 & !o.0)
    }
    pub fn axes(self) -> CutAxes {
        (0..64).filter(|a| self.contains(*a)).collect()
    }
}
impl std::ops::BitOr for AxisSet {
    type Output = AxisSet;
    fn bitor(self, o: AxisSet) -> AxisSet {
        AxisSet(self.0 | o.0)
    }
}
impl std::ops::BitAnd for AxisSet {
    type Output = AxisSet;
    fn bitand(self, o: AxisSet) -> AxisSet {
        AxisSet(self.0 & o.0)
    }
}

/// The named axes of a mesh, row major.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Grid {
    pub axes: Vec<(Name, usize)>,
}
impl Grid {
    pub fn new(axes: impl IntoIterator<Item = (Name, usize)>) -> Grid {
        Grid { axes: axes.into_iter().collect() }
    }
    /// How many devices there are.
    pub fn size(&self) -> usize {
        self.axes.iter().map(|a| a.1).product()
    }
    pub fn axis_size(&self, axis: u8) -> usize {
        self.axes.get(axis as usize).map_or(1, |a| a.1)
    }
    /// Into how many parts these axes cut.
    pub fn parts(&self, cut: &[u8]) -> usize {
        cut.iter().map(|a| self.axis_size(*a)).product()
    }
    pub fn name(&self, axis: u8) -> &Name {
        &self.axes[axis as usize].0
    }
    pub fn names(&self, cut: &[u8]) -> SmallVec<[Name; 1]> {
        cut.iter().map(|a| self.name(*a).clone()).collect()
    }
    /// The axes that are not among these.
    pub fn without(&self, names: &[Name]) -> Grid {
        Grid { axes: self.axes.iter().filter(|a| !names.contains(&a.0)).cloned().collect() }
    }
    pub fn find(&self, name: &str) -> Option<u8> {
        self.axes.iter().position(|a| *a.0 == *name).map(|i| i as u8)
    }
    /// Every order of some of the axes, none included; of more than six axes those of up to two.
    pub fn orders(&self) -> Vec<CutAxes> {
        let n = self.axes.len() as u8;
        let mut all = vec![CutAxes::new()];
        let mut last = all.clone();
        for _ in 0..if n > 6 { 2 } else { n } {
            let longer = |c: &CutAxes| -> Vec<CutAxes> {
                let free = (0..n).filter(|a| !c.contains(a));
                free.map(|a| c.iter().copied().chain([a]).collect()).collect()
            };
            last = last.iter().flat_map(longer).collect();
            all.extend(last.iter().cloned());
        }
        all
    }
    /// The position along each axis of the device of number `rank`.
    pub fn position(&self, mut rank: usize) -> Vec<usize> {
        let mut at = vec![0; self.axes.len()];
        for (k, (_, n)) in self.axes.iter().enumerate().rev() {
            at[k] = rank % n;
            rank /= n;
        }
        at
    }
}

/// For each dimension of an array, the axes that cut it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Spec {
    pub dims: SmallVec<[CutAxes; 4]>,
    /// The array is the sum of what the devices along these axes have.
    pub unreduced: AxisSet,
    /// In types: along these axes all have the same, and the sum of the derivatives is not taken.
    pub reduced: AxisSet,
}
impl Spec {
    pub fn new(dims: impl IntoIterator<Item = CutAxes>) -> Spec {
        Spec { dims: dims.into_iter().collect(), ..Spec::default() }
    }
    /// Every device has all of it.
    pub fn whole(rank: usize) -> Spec {
        Spec { dims: SmallVec::from_elem(CutAxes::new(), rank), ..Spec::default() }
    }
    pub fn summed(self, unreduced: AxisSet, reduced: AxisSet) -> Spec {
        Spec { unreduced, reduced, ..self }
    }
    pub fn is_whole(&self) -> bool {
        self.unreduced.is_empty() && self.dims.iter().all(|d| d.is_empty())
    }
    /// The axes that cut a dimension.
    pub fn cutting(&self) -> AxisSet {
        AxisSet::of(self.dims.iter().flatten().copied())
    }
    /// Whether the devices along an axis have different parts, or terms.
    pub fn uses(&self, axis: u8) -> bool {
        self.unreduced.contains(axis) || self.dims.iter().any(|d| d.contains(&axis))
    }
    /// The shape of each part of an array; of one that is not cut evenly the last ones end with rows of no meaning.
    pub fn shard_shape(&self, grid: &Grid, shape: &[usize]) -> Dims {
        shape.iter().zip(&self.dims).map(|(n, d)| n.div_ceil(grid.parts(d).max(1))).collect()
    }
    /// The same parts in terms of another grid of as many devices, if its axes can say so.
    pub fn renamed(&self, grid: &Grid, to: &Grid, shape: &[usize]) -> Option<Spec> {
        if grid.size() != to.size() || !self.unreduced.is_empty() {
            return None;
        }
        let mut found = vec![Spec::default()];
        for cut in &self.dims {
            let pieces = grid.parts(cut);
            let mut further = vec![];
            for s in found {
                let fits = |c: &CutAxes| to.parts(c) == pieces && c.iter().all(|a| !s.uses(*a));
                for cut in to.orders().into_iter().filter(fits) {
                    further.push(Spec::new(s.dims.iter().cloned().chain([cut])));
                }
            }
            found = further;
        }
        let starts = |s: &Spec, g: &Grid| (0..g.size()).map(|r| s.start(g, shape, &g.position(r))).collect::<Vec<_>>();
        let wanted = starts(self, grid);
        found.into_iter().find(|s| starts(s, to) == wanted)
    }
    /// Where the part of the device at `position` begins.
    pub fn start(&self, grid: &Grid, shape: &[usize], position: &[usize]) -> Dims {
        let start = |(n, cut): (&usize, &CutAxes)| {
            let at = cut.iter().fold(0, |at, a| at * grid.axis_size(*a) + position[*a as usize]);
            at * (n / grid.parts(cut).max(1))
        };
        shape.iter().zip(&self.dims).map(start).collect()
    }
    /// Whether this can be how an array of `shape` is cut: in as many dimensions, by axes there are, each once, into equal parts.
    pub fn check(&self, grid: &Grid, shape: &[usize]) -> Res<()> {
        if self.dims.len() != shape.len() {
            return value_err(format!("a spec of {} dimensions for an array of {}", self.dims.len(), shape.len()));
        }
        if !(self.cutting() & (self.unreduced | self.reduced)).is_empty() {
            return value_err("a mesh axis cuts a dimension of an array that is to be summed along it".to_string());
        }
        let mut seen = vec![false; grid.axes.len()];
        for (d, cut) in self.dims.iter().enumerate() {
            for a in cut {
                match seen.get_mut(*a as usize) {
                    None => return value_err(format!("a mesh of {} axes has no axis {a}", grid.axes.len())),
                    Some(true) => {
                        return value_err(format!("the mesh axis {} cuts two dimensions of one array", grid.name(*a)));
                    }
                    Some(s) => *s = true,
                }
            }
            let n = grid.parts(cut);
            if n == 0 || !shape[d].is_multiple_of(n) {
                return value_err(format!("dimension {d} of size {} does not divide into {n} equal parts", shape[d]));
            }
        }
        Ok(())
    }
    /// As JAX prints it: `PartitionSpec('x', None, ('y', 'z'))`.
    pub fn text(&self, grid: &Grid) -> String {
        let dim = |cut: &CutAxes| match &cut[..] {
            [] => "None".to_string(),
            [a] => format!("'{}'", grid.name(*a)),
            many => format!("({})", many.iter().map(|a| format!("'{}'", grid.name(*a))).collect::<Vec<_>>().join(", ")),
        };
        let dims: Vec<String> = self.dims.iter().map(dim).collect();
        format!("PartitionSpec({}{})", dims.join(", "), if dims.len() == 1 { "," } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    fn grid() -> Grid {
        Grid::new([("x".into(), 2), ("y".into(), 3)])
    }
    #[test]
    fn parts_lie_where_their_devices_are() {
        let (g, shape) = (grid(), [12, 6]);
        let s = Spec::new([smallvec![1, 0], smallvec![]]);
        assert_eq!((g.size(), &s.shard_shape(&g, &shape)[..]), (6, &[2, 6][..]));
        assert_eq!(g.position(5), [1, 2]);
        // the device at x = 1, y = 2 has the last sixth, for y is coarser
        assert_eq!(&s.start(&g, &shape, &g.position(5))[..], &[10, 0]);
        assert_eq!(&s.start(&g, &shape, &g.position(3))[..], &[2, 0]);
        assert_eq!(s.text(&g), "PartitionSpec(('y', 'x'), None)");
        assert_eq!(Spec::new([smallvec![0]]).text(&g), "PartitionSpec('x',)");
    }
    #[test]
    fn what_does_not_fit_is_refused() {
        let g = grid();
        let refused = |dims: Vec<CutAxes>, shape: &[usize]| Spec::new(dims).check(&g, shape).is_err();
        assert!(refused(vec![smallvec![0]], &[3]) && refused(vec![smallvec![2]], &[4]));
        assert!(refused(vec![smallvec![0], smallvec![0]], &[4, 4]) && refused(vec![smallvec![]], &[4, 4]));
        assert!(!refused(vec![smallvec![0, 1]], &[6]) && !refused(vec![smallvec![0]], &[0]));
    }
}
