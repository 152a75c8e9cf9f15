//! Proofs that a load stays inside its input, given all guards on it.
//!
//! ```text
//!     x[3 i + j - 3]  over 2 x 3, where 0 <= 3 i + j - 3 < 3 and 0 <= 3 i + j - 3 < 2      in 0..2
//! ```
//!
//! The position is a sum of guarded forms, each times a number, and a remainder. Each part has
//! bounds, hence the sum has. Guards first narrow the ranges of indices, repeatedly, because one
//! guard may narrow a range that another depends on.
//!
//! INVARIANT: "inside" is proved. Without a proof the load may still be inside.
use super::{Access, Affine, Guard};
use smallvec::SmallVec;

/// Rounds of narrowing: in each, the guards of one move use the ranges that those of another have narrowed.
const ROUNDS: usize = 8;
/// The number of sums to examine for one load.
const MAX_SUMS: usize = 4096;

/// `offset + sum_k strides[k] * index[k]`, in 128 bits: sizes of one domain multiply to less than 2^63, so no sum of an index and
/// 64-bit strides wraps.
#[derive(Clone, PartialEq)]
struct Form {
    offset: i128,
    strides: SmallVec<[i128; 6]>,
}
/// From the first to the second, both included.
type Interval = (i128, i128);

impl Form {
    fn of(a: &Affine, n: usize) -> Form {
        Form { offset: a.offset as i128, strides: (0..n).map(|k| a.stride(k) as i128).collect() }
    }
    /// `self - factor * other`, if that is a form of 64-bit strides.
    fn less(&self, factor: i128, other: &Form) -> Option<Form> {
        let fits = |x: &i128| i64::try_from(*x).is_ok();
        let strides =
            self.strides.iter().zip(&other.strides).map(|(a, b)| Some(a - factor.checked_mul(*b)?).filter(fits));
        Some(Form { offset: self.offset, strides: strides.collect::<Option<_>>()? })
    }
    fn range(&self, of: &[Interval]) -> Interval {
        let all = self.strides.iter().zip(of);
        all.fold((self.offset, self.offset), |sum, (s, range)| add(sum, times(*s, *range)))
    }
    /// The same form divided by the common divisor of the strides; its interval is rounded to
    /// multiples of that.
    fn reduced(mut self, (lo, hi): Interval) -> (Form, Interval) {
        let all = self.strides.iter().fold(0, |g, s| gcd(g, s.unsigned_abs() as i128));
        let first = self.strides.iter().find(|s| **s != 0).map_or(1, |s| s.signum());
        if all == 0 {
            return (self, (lo, hi));
        }
        let by = all * first; // forms that differ in sign alone are one
        self.strides.iter_mut().for_each(|s| *s /= by);
        (self, quotient(by, (lo, hi)))
    }
}
fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}
fn times(s: i128, (lo, hi): Interval) -> Interval {
    let (x, y) = (s.saturating_mul(lo), s.saturating_mul(hi));
    (x.min(y), x.max(y))
}
fn add(a: Interval, b: Interval) -> Interval {
    (a.0.saturating_add(b.0), a.1.saturating_add(b.1))
}
fn both(a: Interval, b: Interval) -> Interval {
    (a.0.max(b.0), a.1.min(b.1))
}
fn is_empty((lo, hi): Interval) -> bool {
    lo > hi
}
/// The interval of x if `s x` lies in the given one.
fn quotient(s: i128, (lo, hi): Interval) -> Interval {
    let (lo, hi, s) = if s < 0 { (-hi, -lo, -s) } else { (lo, hi, s) };
    (-(-lo).div_euclid(s), hi.div_euclid(s))
}

/// The facts that the guards establish about the indices.
struct Known {
    indices: SmallVec<[Interval; 6]>,
    /// Guarded forms, each once, with where they lie.
    forms: SmallVec<[(Form, Interval); 4]>,
}

/// Whether no index of the domain that passes the guards reaches outside `0..len`.
pub(super) fn inside(a: &Access, len: usize, domain: &[usize]) -> bool {
    let at = Form::of(&a.at, domain.len());
    let Some(known) = Known::of(&a.guards, domain) else { return true };
    let best = at.range(&known.indices);
    let used = SmallVec::from_elem(false, known.forms.len());
    let mut search = Search { known: &known, len: len as i128, used, best, left: MAX_SUMS };
    search.found() || search.sums(&at, (0, 0))
}

impl Known {
    /// None if no index passes.
    fn of(guards: &[Guard], domain: &[usize]) -> Option<Known> {
        let indices: SmallVec<[Interval; 6]> = domain.iter().map(|n| (0, *n as i128 - 1)).collect();
        let mut known = Known { indices, forms: SmallVec::new() };
        if domain.contains(&0) {
            return None;
        }
        for g in guards {
            let mut form = Form::of(&g.at, domain.len());
            // an index of a dimension of size 1 is always 0
            form.strides.iter_mut().zip(domain).filter(|(_, n)| **n == 1).for_each(|(s, _)| *s = 0);
            let offset = std::mem::take(&mut form.offset);
            let (form, range) = form.reduced((g.lo as i128 - offset, g.hi as i128 - 1 - offset));
            match known.forms.iter_mut().find(|(f, _)| *f == form) {
                Some((_, r)) => *r = both(*r, range),
                None => known.forms.push((form, range)),
            }
        }
        for _ in 0..ROUNDS {
            if !known.narrow()? {
                break;
            }
        }
        Some(known)
    }
    /// Narrows every form by the indices, and every index by the forms. Whether anything changed; None if nothing passes.
    fn narrow(&mut self) -> Option<bool> {
        let mut changed = false;
        for (form, range) in &mut self.forms {
            let mut to = |x: &mut Interval, by: Interval| {
                let narrowed = both(*x, by);
                changed |= narrowed != *x;
                *x = narrowed;
                (!is_empty(narrowed)).then_some(())
            };
            to(range, form.range(&self.indices))?;
            for (k, s) in form.strides.iter().enumerate().filter(|(_, s)| **s != 0) {
                let (all, mine) = (form.range(&self.indices), times(*s, self.indices[k]));
                let others = (all.0 - mine.0, all.1 - mine.1);
                to(&mut self.indices[k], quotient(*s, (range.0 - others.1, range.1 - others.0)))?;
            }
        }
        Some(changed)
    }
}

/// Examines sums of guarded forms; the bounds that they prove are combined.
struct Search<'a> {
    known: &'a Known,
    len: i128,
    used: SmallVec<[bool; 4]>,
    best: Interval,
    left: usize,
}
impl Search<'_> {
    fn found(&self) -> bool {
        (self.best.0 >= 0 && self.best.1 < self.len) || is_empty(self.best)
    }
    /// With `rest` still to be bounded, beside parts that lie in `parts`.
    fn sums(&mut self, rest: &Form, parts: Interval) -> bool {
        let known = self.known;
        for (n, (form, range)) in known.forms.iter().enumerate() {
            if self.used[n] {
                continue;
            }
            let mut tried: SmallVec<[i128; 4]> = SmallVec::new();
            for (a, b) in rest.strides.iter().zip(&form.strides) {
                // it takes one index at least out of the rest
                if *a == 0 || *b == 0 || a % b != 0 || tried.contains(&(a / b)) {
                    continue;
                }
                tried.push(a / b);
                let Some(less) = rest.less(a / b, form) else { continue };
                if self.left == 0 {
                    return false;
                }
                self.left -= 1;
                let parts = add(parts, times(a / b, *range));
                self.best = both(self.best, add(less.range(&known.indices), parts));
                if self.found() {
                    return true;
                }
                self.used[n] = true;
                let found = self.sums(&less, parts);
                self.used[n] = false;
                if found {
                    return true;
                }
            }
        }
        false
    }
}
