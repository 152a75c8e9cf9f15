//! Collectives: the partners of a device ([`Across`]), the exchange ([`Collective`]), and the
//! partition of a named axis into independent [`Groups`].
//!
//! INVARIANT: only this module defines how positions form groups and how parts combine. Batch
//! rules, devices and all backends use it.
//!
//! ```text
//! Groups[[0, 2], [1, 3]]      position 2 is number 1 of its group, whose members are 0 and 2
//! ```
pub mod tree;

use crate::error::{Error, Res};
use crate::expr::ReduceKind;
use smallvec::SmallVec;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
pub use tree::{Term, TermArithmetic, combine_terms};

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

/// The partners of a device: those along `axes` (row major), or its group among them.
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
    /// Every device gets the combination of all, in the order of [`tree`].
    AllReduce(ReduceKind),
    /// The operand is a chunk for each device, one after the other; device i gets the combination of the chunks i of all.
    ReduceScatter(ReduceKind),
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
            Collective::ReduceScatter(kind) => write!(f, "reduce-scatter {}", format!("{kind:?}").to_lowercase()),
            Collective::AllGather => f.write_str("all-gather"),
            Collective::AllToAll => f.write_str("all-to-all"),
            Collective::Permute(pairs) => write!(f, "collective-permute {pairs:?}"),
            Collective::AxisIndex => f.write_str("axis-index"),
        }
    }
}

/// The devices of a mesh, seen from one of them.
pub trait World: Send + Sync {
    /// This device's index among those it meets, and how many they are.
    fn rank(&self, across: &Across) -> Res<(usize, usize)>;
    /// Takes part in a collective: `mine` is this device's operand, `out` its result. Fails if a device that it needs failed. Of those that combine
    /// numbers, `combine` does it.
    fn meet(
        &self,
        across: &Across,
        kind: &Collective,
        mine: &[u8],
        out: &mut [u8],
        combine: Option<&dyn TermArithmetic>,
    ) -> Res<()>;
}

impl Collective {
    /// The result of the device at `at`, of the operands of all: what every implementation gives.
    pub fn result(&self, all: &[&[u8]], at: usize, out: &mut [u8], combine: Option<&dyn TermArithmetic>) -> Res<()> {
        let (size, n) = (all.len(), all[at].len());
        self.check(size, n, out.len())?;
        if all.iter().any(|a| a.len() != n) {
            return Err(unequal());
        }
        let combined = |range: Range<usize>, out: &mut [u8]| {
            let terms = all.iter().enumerate().map(|(k, a)| Term { span: k..k + 1, bytes: &a[range.clone()] });
            let terms: SmallVec<[Term; 8]> = terms.collect();
            combine_terms(combine.ok_or_else(no_combine)?, size, 0..size, &terms, out)
        };
        match self {
            Collective::AllReduce(_) => combined(0..n, out)?,
            Collective::ReduceScatter(_) => combined(at * out.len()..(at + 1) * out.len(), out)?,
            Collective::AllGather => {
                all.iter().zip(out.chunks_mut(n.max(1))).for_each(|(part, to)| to.copy_from_slice(part));
            }
            Collective::AllToAll => {
                let m = n / size;
                let parts = all.iter().map(|a| &a[at * m..(at + 1) * m]);
                parts.zip(out.chunks_mut(m.max(1))).for_each(|(part, to)| to.copy_from_slice(part));
            }
            Collective::Permute(_) => match self.source(at) {
                Some(k) => out.copy_from_slice(all[k]),
                None => out.fill(0),
            },
            Collective::AxisIndex => {}
        }
        Ok(())
    }
    /// Whether operand and result have the bytes they must.
    pub fn check(&self, size: usize, mine: usize, out: usize) -> Res<()> {
        let fits = match self {
            Collective::AllReduce(_) => mine == out,
            Collective::AllGather => mine.checked_mul(size) == Some(out),
            Collective::ReduceScatter(_) => out.checked_mul(size) == Some(mine),
            Collective::AllToAll => mine == out && size > 0 && mine.is_multiple_of(size),
            Collective::Permute(pairs) => mine == out && pairs.iter().all(|p| (p.0 as usize) < size),
            Collective::AxisIndex => false,
        };
        if fits {
            return Ok(());
        }
        Err(Error::Invalid(format!("{self:?} of {mine} bytes over {size} devices does not give {out} bytes")))
    }
    /// The device whose operand a permutation brings to the device at `rank`.
    pub fn source(&self, rank: usize) -> Option<usize> {
        let Collective::Permute(pairs) = self else { return None };
        pairs.iter().find(|p| p.1 as usize == rank).map(|p| p.0 as usize)
    }
    /// The devices to which a permutation brings the operand of the device at `rank`.
    pub fn destinations(&self, rank: usize) -> impl Iterator<Item = usize> {
        let pairs: &[(u32, u32)] = if let Collective::Permute(pairs) = self { pairs } else { &[] };
        pairs.iter().filter(move |p| p.0 as usize == rank).map(|p| p.1 as usize)
    }
    /// How it combines numbers; `None` if it does not.
    pub fn combines(&self) -> Option<ReduceKind> {
        match self {
            Collective::AllReduce(kind) | Collective::ReduceScatter(kind) => Some(*kind),
            _ => None,
        }
    }
}
/// The error of devices whose operands differ in size.
pub fn unequal() -> Error {
    Error::Invalid("the devices of a collective passed arrays of different sizes".into())
}
/// The error of a device that takes part in a combination and cannot combine.
pub fn no_combine() -> Error {
    Error::Invalid("a collective that combines numbers was given no function for that".into())
}
/// The `k`-th of `of` shares of `n` bytes: whole blocks of `block` bytes, as equal as they can be.
pub fn share(k: usize, of: usize, n: usize, block: usize) -> Range<usize> {
    let block = block.max(1);
    let end = |k: usize| (n.div_ceil(block) * k / of * block).min(n);
    end(k)..end(k + 1)
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
    fn shares_are_whole_blocks_and_cover_all() {
        for (n, block, of) in [(100, 8, 3), (0, 4, 2), (7, 8, 4), (64, 8, 8), (65, 8, 8)] {
            let shares: Vec<_> = (0..of).map(|k| share(k, of, n, block)).collect();
            assert!(shares[0].start == 0 && shares[of - 1].end == n);
            assert!(shares.windows(2).all(|w| w[0].end == w[1].start && w[0].end % block == 0 || w[1].is_empty()));
        }
    }
    #[test]
    fn sizes_that_do_not_fit_are_errors() {
        assert!(Collective::AllGather.check(2, 4, 8).is_ok());
        assert!(Collective::AllGather.check(2, 4, 12).is_err());
        assert!(Collective::AllToAll.check(3, 4, 4).is_err());
        assert!(Collective::Permute(vec![(2, 0)]).check(2, 4, 4).is_err());
        assert!(Collective::ReduceScatter(ReduceKind::Sum).check(2, 4, 4).is_err());
        assert!(Collective::AllReduce(ReduceKind::Sum).check(2, 4, 8).is_err());
        assert!(Collective::AxisIndex.check(1, 4, 4).is_err());
    }
}
