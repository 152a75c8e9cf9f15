//! Masks and lists: the bookkeeping words that rules with bodies share. A mask is a `&[bool]`, one entry per operand or output.
use crate::cx::Tan;
use crate::error::Res;
use crate::value::Value;

pub fn nonzero(t: &[Tan]) -> Vec<bool> {
    t.iter().map(Option::is_some).collect()
}
pub fn not(m: &[bool]) -> Vec<bool> {
    m.iter().map(|b| !b).collect()
}
pub fn or(a: &[bool], b: &[bool]) -> Vec<bool> {
    a.iter().zip(b).map(|(a, b)| *a || *b).collect()
}
pub fn count(m: &[bool]) -> usize {
    m.iter().filter(|b| **b).count()
}
/// The entries where `m`.
pub fn pick<T: Clone>(x: &[T], m: &[bool]) -> Vec<T> {
    x.iter().zip(m).filter(|(_, k)| **k).map(|(v, _)| v.clone()).collect()
}
/// Where `m`, the next of `a`, else the next of `b`. INVARIANT: `a` and `b` have as many elements
/// as `m` has of each kind.
pub fn merge<T>(m: &[bool], a: impl IntoIterator<Item = T>, b: impl IntoIterator<Item = T>) -> Vec<T> {
    let (mut a, mut b) = (a.into_iter(), b.into_iter());
    m.iter().filter_map(|k| if *k { a.next() } else { b.next() }).collect()
}
/// The next value where `m`, a symbolic zero elsewhere.
pub fn spread(m: &[bool], v: impl IntoIterator<Item = Value>) -> Vec<Tan> {
    let mut v = v.into_iter();
    m.iter().map(|k| if *k { v.next() } else { None }).collect()
}
pub fn cat<T: Clone>(parts: &[&[T]]) -> Vec<T> {
    parts.concat()
}
/// Least mask above `m` that `f` maps into itself. Each round adds at least one, so it ends.
pub fn fixpoint<T>(mut m: Vec<bool>, mut f: impl FnMut(&[bool]) -> Res<(Vec<bool>, T)>) -> Res<(Vec<bool>, T)> {
    loop {
        let (out, t) = f(&m)?;
        let next = or(&m, &out);
        if next == m {
            return Ok((m, t));
        }
        m = next;
    }
}
