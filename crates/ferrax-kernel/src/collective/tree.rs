//! The order in which the operands of devices are combined: one binary tree over their positions, whose left half is the largest power of two.
//!
//! ```text
//! 6 positions:  ((0 + 1) + (2 + 3)) + (4 + 5)        devices that hold 0 and 1 together send 0 + 1, one number instead of two
//! ```
//!
//! INVARIANT: the order depends on the number of positions alone, not on which of them lie together. Accumulators have the lane dtype and are rounded
//! once, at the root; what is sent in between is not rounded.
use crate::dtype::DType;
use crate::error::{Error, Res, room};
use std::ops::Range;

/// Arithmetic on blocks of elements, for one reduction of one dtype.
pub trait TermArithmetic {
    /// Bytes of an element, bytes of its accumulator (as many where both are the same), and the elements that are combined at a time.
    fn sizes(&self) -> [usize; 3];
    fn element(&self) -> usize {
        self.sizes()[0]
    }
    fn accumulator(&self) -> usize {
        self.sizes()[1]
    }
    fn block(&self) -> usize {
        self.sizes()[2]
    }
    /// Elements to accumulators, where these differ.
    fn widen(&self, from: &[u8], to: &mut [u8]) -> Res<()>;
    /// Accumulators to elements, where these differ.
    fn round(&self, from: &[u8], to: &mut [u8]) -> Res<()>;
    /// Of two accumulators each.
    fn pair(&self, a: &[u8], b: &[u8], to: &mut [u8]) -> Res<()>;
}
/// The bytes of an element of the combination of the positions of `span`, of `size` in all: the result and the operand of a single position
/// are elements, all others accumulators.
pub fn width(c: &dyn TermArithmetic, size: usize, span: &Range<usize>) -> usize {
    if span.len() <= 1 || span.len() == size { c.element() } else { c.accumulator() }
}
/// The combination of the positions of a node of the tree.
#[derive(Clone, Debug)]
pub struct Term<'a> {
    pub span: Range<usize>,
    pub bytes: &'a [u8],
}

/// The dtype that elements are combined in: integers wrap, so their own dtype suffices.
pub fn accumulator(d: DType) -> DType {
    if d.is_float() && d.size() < 4 { d.lane() } else { d }
}
fn halves(span: &Range<usize>) -> [Range<usize>; 2] {
    let middle = span.start + span.len().next_power_of_two() / 2;
    [span.start..middle, middle..span.end]
}
/// The root of a tree, from its leaves and a function of two values.
pub fn fold<T>(span: Range<usize>, leaf: &mut dyn FnMut(usize) -> T, pair: &mut dyn FnMut(T, T) -> T) -> T {
    if span.len() <= 1 {
        return leaf(span.start);
    }
    let [l, r] = halves(&span);
    let a = fold(l, leaf, pair);
    let b = fold(r, leaf, pair);
    pair(a, b)
}
/// The largest nodes of the tree over `size` positions all of whose positions are held.
pub fn nodes(size: usize, held: &dyn Fn(usize) -> bool) -> Vec<Range<usize>> {
    fn walk(span: Range<usize>, held: &dyn Fn(usize) -> bool, found: &mut Vec<Range<usize>>) {
        if span.clone().all(held) {
            found.push(span);
        } else if span.len() > 1 {
            halves(&span).into_iter().for_each(|half| walk(half, held, found));
        }
    }
    let mut found = vec![];
    walk(0..size, held, &mut found);
    found
}

/// Combines terms to the node of the tree over `size` positions that is `span`, into `to`, as elements or accumulators by its [`width`].
pub fn combine_terms(
    c: &dyn TermArithmetic,
    size: usize,
    span: Range<usize>,
    terms: &[Term],
    to: &mut [u8],
) -> Res<()> {
    if let Some(t) = terms.iter().find(|t| t.span == span) {
        to.copy_from_slice(t.bytes);
        return Ok(());
    }
    let w = width(c, size, &span);
    let count = to.len() / w.max(1);
    let block = c.block().clamp(1, count.max(1));
    // two for each level, and the root's own
    let bytes = (2 * size.next_power_of_two().ilog2() as usize + 1) * block * c.accumulator();
    let mut scratch = room(bytes)?;
    scratch.resize(bytes, 0);
    for (k, to) in to.chunks_mut(block * w).enumerate() {
        let f = Fold { c, size, terms, at: k * block, count: to.len() / w };
        if w == c.accumulator() {
            f.node(&span, to, &mut scratch)?;
        } else {
            let (sum, rest) = scratch.split_at_mut(f.count * c.accumulator());
            f.node(&span, sum, rest)?;
            c.round(sum, to)?;
        }
    }
    Ok(())
}
/// One block of terms.
struct Fold<'a> {
    c: &'a dyn TermArithmetic,
    size: usize,
    terms: &'a [Term<'a>],
    at: usize,
    count: usize,
}
impl<'a> Fold<'a> {
    /// The block of a term, where the node is one.
    fn term(&self, span: &Range<usize>) -> Option<&'a [u8]> {
        let w = width(self.c, self.size, span);
        let t = self.terms.iter().find(|t| t.span == *span)?;
        t.bytes.get(self.at * w..(self.at + self.count) * w)
    }
    /// The accumulators of a node.
    fn node(&self, span: &Range<usize>, to: &mut [u8], scratch: &mut [u8]) -> Res<()> {
        if let Some(t) = self.term(span) {
            return self.c.widen(t, to);
        }
        if span.len() <= 1 {
            return Err(Error::Invalid(format!("position {} has no term", span.start)));
        }
        let [l, r] = halves(span);
        let (a, scratch) = self.operand(&l, scratch)?;
        let (b, _) = self.operand(&r, scratch)?;
        self.c.pair(a, b, to)
    }
    /// As `node`; a term of accumulators is read where it is.
    fn operand<'s>(&self, span: &Range<usize>, scratch: &'s mut [u8]) -> Res<(&'s [u8], &'s mut [u8])>
    where
        'a: 's,
    {
        let w = self.c.accumulator();
        let term = self.term(span).filter(|_| width(self.c, self.size, span) == w);
        if let Some(t) = term.filter(|t| t.as_ptr().align_offset(w.next_power_of_two()) == 0) {
            return Ok((t, scratch));
        }
        let (mine, rest) = scratch.split_at_mut(self.count * w);
        match term {
            // it begins in the middle of a message
            Some(t) => mine.copy_from_slice(t),
            None => self.node(span, mine, rest)?,
        }
        Ok((mine, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records what it combines: elements are names of two letters, accumulators of 64.
    struct Names;
    impl TermArithmetic for Names {
        fn sizes(&self) -> [usize; 3] {
            [2, 64, 1]
        }
        fn widen(&self, from: &[u8], to: &mut [u8]) -> Res<()> {
            to.fill(b' ');
            to[..2].copy_from_slice(from);
            Ok(())
        }
        fn round(&self, from: &[u8], to: &mut [u8]) -> Res<()> {
            let hash = from.iter().fold(7_u32, |h, b| h.wrapping_mul(31).wrapping_add(*b as u32));
            to.copy_from_slice(&(hash as u16).to_le_bytes());
            Ok(())
        }
        fn pair(&self, a: &[u8], b: &[u8], to: &mut [u8]) -> Res<()> {
            let name = |x: &[u8]| String::from_utf8_lossy(x).trim().to_string();
            let sum = format!("{:64}", format!("({}{})", name(a), name(b)));
            to.copy_from_slice(&sum.as_bytes()[..64]);
            Ok(())
        }
    }
    fn leaves(n: usize) -> Vec<Vec<u8>> {
        (0..n).map(|k| format!("{k:>2}{k:<2}").into_bytes()).collect()
    }
    #[test]
    fn the_tree_is_what_it_says() {
        let all = leaves(7);
        let terms: Vec<Term> = all.iter().enumerate().map(|(k, b)| Term { span: k..k + 1, bytes: b }).collect();
        let mut to = vec![0; 128];
        combine_terms(&Names, 7, 0..4, &terms, &mut to).expect("four of seven");
        assert_eq!(String::from_utf8_lossy(&to[64..]).trim(), "((01)(23))");
        assert!(combine_terms(&Names, 7, 0..4, &terms[1..], &mut to).is_err());
    }
    /// However positions lie together, the result has the same bits.
    #[test]
    fn what_is_combined_before_changes_nothing() {
        for size in 1..=8 {
            let all = leaves(size);
            let leaf = |k: usize| Term { span: k..k + 1, bytes: &all[k] };
            let terms: Vec<Term> = (0..size).map(leaf).collect();
            let mut want = vec![0; 4];
            combine_terms(&Names, size, 0..size, &terms, &mut want).expect("all");
            for owners in 0..4_usize.pow(size as u32) {
                let owner = |k: usize| owners / 4_usize.pow(k as u32) % 4;
                let of = |o: usize| nodes(size, &move |k| owner(k) == o);
                let spans: Vec<Range<usize>> = (0..4).flat_map(of).collect();
                let made: Vec<Vec<u8>> = spans
                    .iter()
                    .map(|s| {
                        let mut to = vec![0; 2 * width(&Names, size, s)];
                        let own: Vec<Term> = s.clone().map(leaf).collect();
                        combine_terms(&Names, size, s.clone(), &own, &mut to).expect("a node");
                        to
                    })
                    .collect();
                let handed = spans.iter().zip(&made).map(|(s, b)| Term { span: s.clone(), bytes: b });
                let mut got = vec![0; 4];
                combine_terms(&Names, size, 0..size, &handed.collect::<Vec<_>>(), &mut got).expect("all");
                assert_eq!(got, want, "{size} positions, owners {owners}");
            }
        }
    }
}
