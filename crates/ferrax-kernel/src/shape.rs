//! `Dims`: a list of sizes or axes. Up to four live inline; there is no limit on rank.
use crate::error::{Error, Res};
use smallvec::SmallVec;
use std::fmt;
use std::ops::{Deref, DerefMut};

#[derive(PartialEq, Eq, Hash, Default)]
pub struct Dims(SmallVec<[usize; 4]>);

// PERF: every value carries one; `SmallVec::clone` goes element by element through a call.
impl Clone for Dims {
    #[inline]
    fn clone(&self) -> Dims {
        Dims::new(self)
    }
}

impl Dims {
    #[inline]
    pub fn new(s: &[usize]) -> Dims {
        let mut few = [0; 4];
        if s.len() > few.len() {
            return Dims(SmallVec::from_slice(s));
        }
        few.iter_mut().zip(s).for_each(|(to, n)| *to = *n);
        Dims(SmallVec::from_buf_and_len(few, s.len()))
    }
    pub fn push(&mut self, n: usize) {
        self.0.push(n)
    }
    /// With `n` inserted at position `at`.
    pub fn insert(&self, at: usize, n: usize) -> Dims {
        let mut d = self.clone();
        d.0.insert(at, n);
        d
    }
    pub fn remove(&self, at: usize) -> Dims {
        let mut d = self.clone();
        d.0.remove(at);
        d
    }
    /// Number of elements. INVARIANT: shapes are checked by [`Dims::checked`] where they enter, so this overflows only on the way to a
    /// product that is zero.
    pub fn size(&self) -> usize {
        self.iter().fold(1, |n, d| n.wrapping_mul(*d))
    }
    /// The byte count of an array of this shape, or an error where no machine could hold it, or count along one of its axes.
    pub fn checked(&self, element_bytes: usize) -> Res<usize> {
        const MAX_SIZE: usize = isize::MAX as usize;
        let countable = self.iter().all(|d| *d <= MAX_SIZE);
        // A zero anywhere makes the product zero, whatever the order.
        if countable && self.contains(&0) {
            return Ok(0);
        }
        let bytes = self.iter().try_fold(element_bytes, |n, d| n.checked_mul(*d));
        bytes.filter(|n| countable && *n <= MAX_SIZE).ok_or_else(|| {
            Error::TooLarge(format!(
                "an array of shape {self} with {element_bytes}-byte elements is larger than any memory"
            ))
        })
    }
    /// Row-major strides, in elements.
    pub fn strides(&self) -> SmallVec<[isize; 4]> {
        let mut s: SmallVec<[isize; 4]> = SmallVec::from_elem(1, self.len());
        for k in (0..self.len().saturating_sub(1)).rev() {
            // an array without elements may have any sizes
            s[k] = s[k + 1].wrapping_mul(self[k + 1] as isize);
        }
        s
    }
    /// The index of the element at row-major position `i`.
    pub fn unravel(&self, mut i: usize) -> Dims {
        let mut out = self.clone();
        for k in (0..self.len()).rev() {
            out[k] = i % self[k];
            i /= self[k];
        }
        out
    }
    pub fn concat(&self, tail: &[usize]) -> Dims {
        let mut d = self.clone();
        d.0.extend_from_slice(tail);
        d
    }
    /// The entries at `at`, in that order.
    pub fn pick(&self, at: &[usize]) -> Dims {
        at.iter().map(|k| self[*k]).collect()
    }
    /// The entries at positions not in `at`.
    pub fn without(&self, at: &[usize]) -> Dims {
        (0..self.len()).filter(|k| !at.contains(k)).map(|k| self[k]).collect()
    }
}
impl FromIterator<usize> for Dims {
    fn from_iter<T: IntoIterator<Item = usize>>(it: T) -> Dims {
        Dims(it.into_iter().collect())
    }
}
impl From<&[usize]> for Dims {
    fn from(s: &[usize]) -> Dims {
        Dims::new(s)
    }
}
impl<const N: usize> From<[usize; N]> for Dims {
    fn from(s: [usize; N]) -> Dims {
        Dims::new(&s)
    }
}
impl Deref for Dims {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.0
    }
}
impl DerefMut for Dims {
    fn deref_mut(&mut self) -> &mut [usize] {
        &mut self.0
    }
}
/// As a Python tuple: `(3,)`.
impl fmt::Display for Dims {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let s: Vec<String> = self.iter().map(|d| d.to_string()).collect();
        write!(f, "({}{})", s.join(", "), if s.len() == 1 { "," } else { "" })
    }
}
impl fmt::Debug for Dims {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:?}", &self[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_no_machine_holds_are_errors() {
        assert!(Dims::new(&[1 << 31, 1 << 31, 4]).checked(8).is_err());
        assert!(Dims::new(&[1 << 62]).checked(4).is_err());
        assert_eq!(Dims::new(&[1 << 62, 0, 1 << 62]).checked(4).unwrap(), 0);
        assert!(Dims::new(&[1 << 63, 0]).checked(4).is_err() && Dims::new(&[0, 1 << 63]).checked(4).is_err());
        assert_eq!(Dims::new(&[2, 3]).checked(4).unwrap(), 24);
        let huge = Dims::new(&[1 << 40, 1 << 40, 0, 1 << 40, 1 << 40]);
        assert_eq!((huge.size(), huge.strides().len()), (0, 5));
    }
    #[test]
    fn strides_and_unravel_agree() {
        let d = Dims::new(&[2, 3, 4]);
        for i in 0..d.size() {
            let ix = d.unravel(i);
            let at: isize = ix.iter().zip(d.strides()).map(|(i, s)| *i as isize * s).sum();
            assert_eq!(at as usize, i);
        }
    }
}
