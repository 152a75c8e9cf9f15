//! Collectives: the partners of a device ([`Across`]), the exchange ([`Collective`]), and the
//! partition of a named axis into independent [`Groups`].
//!
//! INVARIANT: only this module defines how positions form groups and how parts combine. Batch
//! rules, devices and all backends use it.
//!
//! ```text
//! Groups[[0, 2], [1, 3]]      position 2 is number 1 of its group, whose members are 0 and 2
//! ```
use crate::error::{Error, Res};
use crate::expr::ReduceKind;
use smallvec::SmallVec;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The positions of a named axis, cut into groups; within a group the order is as given.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Groups(Arc<[Box<[u32]>]>);

impl Groups {
    pub fn new(groups: impl IntoIterator<Item = impl IntoIterator<Item = u32>>) -> Groups {
        Groups(groups.into_iter().map(|g| g.into_iter().collect()).collect())
    }
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.0.iter().map(|g| &**g)
    }
    /// How many positions they hold.
    pub fn total(&self) -> usize {
        self.0.iter().map(|g| g.len()).sum()
    }
    /// Whether each position of an axis of `n` is in exactly one group, and no group is empty.
    pub fn cover(&self, n: usize) -> bool {
        let mut seen = vec![false; n];
        let new = |p: &u32| seen.get_mut(*p as usize).is_some_and(|s| !std::mem::replace(s, true));
        self.total() == n && self.0.iter().all(|g| !g.is_empty()) && self.0.iter().flatten().all(new)
    }
    /// The size that all groups have.
    pub fn even(&self) -> Option<usize> {
        let n = self.0.first()?.len();
        self.0.iter().all(|g| g.len() == n).then_some(n)
    }
    /// The members of a position's group, and its place among them.
    pub fn of(&self, position: usize) -> Option<(&[u32], usize)> {
        self.iter().find_map(|g| g.iter().position(|p| *p as usize == position).map(|at| (g, at)))
    }
    /// The index of each position in the concatenation of the groups.
    pub fn places(&self) -> Vec<usize> {
        let mut at = vec![0; self.total()];
        for (k, p) in self.0.iter().flatten().enumerate() {
            at[*p as usize] = k;
        }
        at
    }
}
impl fmt::Debug for Groups {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Whom a device meets: those along `axes` (row major), or its group among them.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Across {
    pub axes: Vec<Arc<str>>,
    pub groups: Option<Groups>,
}
impl Across {
    pub fn axes(axes: impl Into<Vec<Arc<str>>>) -> Across {
        Across { axes: axes.into(), groups: None }
    }
    /// Of `members` along the axes, in order, those that number `at` meets, and its place among them.
    pub fn among(&self, members: Vec<usize>, at: usize) -> Res<(Vec<usize>, usize)> {
        let Some(groups) = &self.groups else { return Ok((members, at)) };
        let wrong = || Error::Invalid(format!("the groups {groups:?} do not cover an axis of {}", members.len()));
        if !groups.cover(members.len()) {
            return Err(wrong());
        }
        let (mine, place) = groups.of(at).ok_or_else(wrong)?;
        Ok((mine.iter().map(|p| members[*p as usize]).collect(), place))
    }
}
impl fmt::Debug for Across {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:?}", self.axes)?;
        self.groups.as_ref().map_or(Ok(()), |g| write!(f, " in {g:?}"))
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Collective {
    /// Every device gets the combination of all, taken in the order of device index.
    AllReduce(ReduceKind),
    /// out = the operands of all devices, one after the other.
    AllGather,
    /// Operand and result are `n` chunks; chunk j of device i becomes chunk i of device j.
    AllToAll,
    /// (source, destination) pairs; a device that is no destination gets zeros.
    Permute(Vec<(u32, u32)>),
    /// The device's index along the axes, row major, as i32. No operands.
    AxisIndex,
}

/// As XLA names them: `all-reduce sum`.
impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Collective::AllReduce(kind) => write!(f, "all-reduce {}", format!("{kind:?}").to_lowercase()),
            Collective::AllGather => f.write_str("all-gather"),
            Collective::AllToAll => f.write_str("all-to-all"),
            Collective::Permute(pairs) => write!(f, "collective-permute {pairs:?}"),
            Collective::AxisIndex => f.write_str("axis-index"),
        }
    }
}

/// The devices of a pmap, seen from one of them.
pub trait World: Send + Sync {
    /// This device's index among those it meets, and how many they are.
    fn rank(&self, across: &Across) -> Res<(usize, usize)>;
    /// Hands in `mine`, of which each device that this one meets reads its part; waits for them, and gets the part that each has for this
    /// one, by index. Fails if one of them failed.
    fn exchange(&self, across: &Across, mine: &[u8], parts: Parts) -> Res<Vec<Part>>;
}

/// The bytes of a device's operand that the others read.
#[derive(Clone, Copy, Debug)]
pub enum Parts<'a> {
    /// All read all.
    Whole,
    /// One range for each device, by index.
    Each(&'a [Range<usize>]),
}
impl Parts<'_> {
    /// The range that the device of this index reads of `n` bytes.
    pub fn of(&self, index: usize, n: usize) -> Range<usize> {
        match self {
            Parts::Whole => 0..n,
            Parts::Each(ranges) => ranges[index].clone(),
        }
    }
}
/// The data that one device has for another: a range of the bytes of its operand.
#[derive(Clone, Debug)]
pub struct Part {
    bytes: Arc<Vec<u8>>,
    range: Range<usize>,
}
impl Part {
    /// `None` where the range leaves the bytes.
    pub fn new(bytes: Arc<Vec<u8>>, range: Range<usize>) -> Option<Part> {
        (range.start <= range.end && range.end <= bytes.len()).then_some(Part { bytes, range })
    }
}
impl From<Vec<u8>> for Part {
    fn from(bytes: Vec<u8>) -> Part {
        Part { range: 0..bytes.len(), bytes: Arc::new(bytes) }
    }
}
impl std::ops::Deref for Part {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[self.range.clone()]
    }
}

/// Combines a block: gets the same block of each device's operand, in the order of device index,
/// and writes the result to `out`.
pub type CombineBlocks<'a> = dyn FnMut(&[&[u8]], &mut [u8]) -> Res<()> + 'a;

impl Collective {
    /// Takes part in it: `mine` is this device's operand, `out` its result. Numbers are combined in blocks of `block` bytes, shared
    /// among the devices where there are enough: each combines some and hands the results round, so that of n bytes over p devices
    /// each reads 2n(p-1)/p of the others'.
    pub fn run(
        &self,
        world: &dyn World,
        across: &Across,
        mine: &[u8],
        out: &mut [u8],
        block: usize,
        combine: &mut CombineBlocks,
    ) -> Res<()> {
        let (rank, size) = world.rank(across)?;
        self.check(size, mine.len(), out.len())?;
        let ranges = self.ranges(rank, size, mine.len());
        match self {
            Collective::AllReduce(_) => {
                return all_reduce(world, across, (rank, size), mine, out, block.max(1), combine);
            }
            Collective::AllGather => {
                let all = met(world, across, mine, Parts::Whole, |_| mine.len())?;
                all.iter().zip(out.chunks_mut(mine.len().max(1))).for_each(|(part, to)| to.copy_from_slice(part));
            }
            Collective::AllToAll => {
                let n = mine.len() / size;
                let all = met(world, across, mine, Parts::Each(&ranges), |_| n)?;
                all.iter().zip(out.chunks_mut(n.max(1))).for_each(|(part, to)| to.copy_from_slice(part));
            }
            Collective::Permute(_) => {
                let source = self.source(rank);
                let all =
                    met(world, across, mine, Parts::Each(&ranges), |k| if Some(k) == source { mine.len() } else { 0 })?;
                match source {
                    Some(k) => out.copy_from_slice(&all[k]),
                    None => out.fill(0),
                }
            }
            Collective::AxisIndex => {}
        }
        Ok(())
    }
    /// Whether operand and result have the bytes they must.
    pub fn check(&self, size: usize, mine: usize, out: usize) -> Res<()> {
        let fits = match self {
            Collective::AllReduce(_) => mine == out,
            Collective::AllGather => mine.checked_mul(size) == Some(out),
            Collective::AllToAll => mine == out && size > 0 && mine.is_multiple_of(size),
            Collective::Permute(pairs) => mine == out && pairs.iter().all(|p| (p.0 as usize) < size),
            Collective::AxisIndex => false,
        };
        if fits {
            return Ok(());
        }
        Err(Error::Invalid(format!("{self:?} of {mine} bytes over {size} devices does not give {out} bytes")))
    }
    /// The range of the operand that each device reads of the one at `rank`, where not all read all.
    fn ranges(&self, rank: usize, size: usize, n: usize) -> Vec<Range<usize>> {
        match self {
            Collective::AllToAll => (0..size).map(|k| k * (n / size)..(k + 1) * (n / size)).collect(),
            Collective::Permute(_) => {
                (0..size).map(|to| if self.source(to) == Some(rank) { 0..n } else { 0..0 }).collect()
            }
            _ => vec![],
        }
    }
    /// The device whose operand a permutation brings to the device at `rank`.
    fn source(&self, rank: usize) -> Option<usize> {
        let Collective::Permute(pairs) = self else { return None };
        pairs.iter().find(|p| p.1 as usize == rank).map(|p| p.0 as usize)
    }
}

/// The parts that all devices have for this one, each of the size that `want` gives.
fn met(world: &dyn World, across: &Across, mine: &[u8], parts: Parts, want: impl Fn(usize) -> usize) -> Res<Vec<Part>> {
    let all = world.exchange(across, mine, parts)?;
    match all.iter().enumerate().all(|(k, part)| part.len() == want(k)) {
        true => Ok(all),
        false => Err(Error::Invalid("devices handed in arrays of different sizes".into())),
    }
}

fn all_reduce(
    world: &dyn World,
    across: &Across,
    (rank, size): (usize, usize),
    mine: &[u8],
    out: &mut [u8],
    block: usize,
    combine: &mut CombineBlocks,
) -> Res<()> {
    let (n, blocks) = (mine.len(), mine.len().div_ceil(block));
    let mut combined = |all: &[Part], out: &mut [u8]| {
        out.chunks_mut(block).enumerate().try_for_each(|(k, to)| {
            let parts: SmallVec<[&[u8]; 8]> = all.iter().map(|p| &p[k * block..k * block + to.len()]).collect();
            combine(&parts, to)
        })
    };
    if blocks < size || size == 1 {
        return combined(&met(world, across, mine, Parts::Whole, |_| n)?, out);
    }
    let end = |k: usize| (blocks * k / size * block).min(n);
    let ranges: Vec<Range<usize>> = (0..size).map(|k| end(k)..end(k + 1)).collect();
    let own = ranges[rank].clone();
    combined(&met(world, across, mine, Parts::Each(&ranges), |_| own.len())?, &mut out[own.clone()])?;
    let results = met(world, across, &out[own], Parts::Whole, |k| ranges[k].len())?;
    ranges.iter().zip(&results).for_each(|(r, part)| out[r.clone()].copy_from_slice(part));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(g: &[&[u32]]) -> Groups {
        Groups::new(g.iter().map(|g| g.iter().copied()))
    }
    #[test]
    fn groups_are_partitions() {
        let g = groups(&[&[2, 0], &[1, 3, 4]]);
        assert!(g.cover(5) && !g.cover(4) && !g.cover(6));
        assert!(!groups(&[&[0, 0], &[1]]).cover(3) && !groups(&[&[0, 3]]).cover(2) && !groups(&[&[0], &[]]).cover(1));
        assert_eq!((g.even(), groups(&[&[0], &[1]]).even(), groups(&[]).even()), (None, Some(1), None));
        assert_eq!((g.of(0), g.of(4), g.of(5)), (Some((&[2, 0][..], 1)), Some((&[1, 3, 4][..], 2)), None));
        assert_eq!(g.places(), [1, 2, 0, 3, 4]);
    }
    #[test]
    fn a_device_meets_its_group() {
        let across = Across { groups: Some(groups(&[&[2, 0], &[1]])), ..Across::axes(["i".into()]) };
        assert_eq!(across.among(vec![10, 11, 12], 0).unwrap(), (vec![12, 10], 1));
        assert_eq!(across.among(vec![10, 11, 12], 1).unwrap(), (vec![11], 0));
        assert!(across.among(vec![10, 11], 0).is_err());
        assert_eq!(format!("{across:?}"), r#"["i"] in [[2, 0], [1]]"#);
    }
    #[test]
    fn sizes_that_do_not_fit_are_errors() {
        assert!(Collective::AllGather.check(2, 4, 8).is_ok());
        assert!(Collective::AllGather.check(2, 4, 12).is_err());
        assert!(Collective::AllToAll.check(3, 4, 4).is_err());
        assert!(Collective::Permute(vec![(2, 0)]).check(2, 4, 4).is_err());
        assert!(Collective::AllReduce(ReduceKind::Sum).check(2, 4, 8).is_err());
        assert!(Collective::AxisIndex.check(1, 4, 4).is_err());
    }
}
