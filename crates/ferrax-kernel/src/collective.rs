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
use std::fmt;
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
    /// Where each position stands when the groups are laid one after the other.
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

impl Collective {
    /// Whether operand, result and what the `size` devices handed in have the bytes they must.
    pub fn check(&self, size: usize, mine: usize, out: usize, all: &[Arc<Vec<u8>>]) -> Res<()> {
        let fits = match self {
            Collective::AllReduce(_) => mine == out && !all.is_empty(),
            Collective::AllGather => mine.checked_mul(size) == Some(out),
            Collective::AllToAll => mine == out && size > 0 && mine.is_multiple_of(size),
            Collective::Permute(pairs) => mine == out && pairs.iter().all(|p| (p.0 as usize) < size),
            Collective::AxisIndex => false,
        };
        if all.len() != size || all.iter().any(|p| p.len() != mine) {
            return Err(Error::Invalid("devices handed in arrays of different sizes".into()));
        }
        if !fits {
            return Err(Error::Invalid(format!(
                "{self:?} of {mine} bytes over {size} devices does not give {out} bytes"
            )));
        }
        Ok(())
    }
    /// The result on the device at `rank`, for those that only move bytes; they were checked. False where numbers are combined.
    pub fn arrange(&self, rank: usize, all: &[Arc<Vec<u8>>], out: &mut [u8]) -> bool {
        match self {
            Collective::AllGather => {
                let n = out.len() / all.len().max(1);
                all.iter().enumerate().for_each(|(k, part)| out[k * n..(k + 1) * n].copy_from_slice(part));
            }
            Collective::AllToAll => {
                let n = out.len() / all.len().max(1);
                for (k, part) in all.iter().enumerate() {
                    out[k * n..(k + 1) * n].copy_from_slice(&part[rank * n..(rank + 1) * n]);
                }
            }
            Collective::Permute(pairs) => match pairs.iter().find(|p| p.1 as usize == rank) {
                Some((source, _)) => out.copy_from_slice(&all[*source as usize]),
                None => out.fill(0),
            },
            Collective::AllReduce(_) | Collective::AxisIndex => return false,
        }
        true
    }
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
        let all = |n: usize, bytes: usize| -> Vec<Arc<Vec<u8>>> { (0..n).map(|_| Arc::new(vec![0; bytes])).collect() };
        assert!(Collective::AllGather.check(2, 4, 8, &all(2, 4)).is_ok());
        assert!(Collective::AllGather.check(2, 4, 12, &all(2, 4)).is_err());
        assert!(Collective::AllGather.check(2, 4, 8, &all(3, 4)).is_err());
        assert!(Collective::AllToAll.check(3, 4, 4, &all(3, 4)).is_err());
        assert!(Collective::Permute(vec![(2, 0)]).check(2, 4, 4, &all(2, 4)).is_err());
        assert!(Collective::AllReduce(ReduceKind::Sum).check(2, 4, 8, &all(2, 4)).is_err());
        assert!(Collective::AxisIndex.check(1, 4, 4, &all(1, 4)).is_err());
    }
}
