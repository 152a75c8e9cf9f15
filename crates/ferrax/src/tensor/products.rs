//! Products: matmul, dot_general, einsum.
use super::{Tensor, constant, emit, exactly, promote, pw, where_};
use crate::mistakes;
use ferrax_ir::ops::dot::{Dot, DotDims};
use ferrax_ir::ops::pointwise::Pw;
use ferrax_ir::ops::reduce::{Monoid, Reduce};
use ferrax_ir::ops::squeeze::Squeeze;
use ferrax_ir::ops::transpose::Transpose;
use ferrax_ir::{Dims, Dtype, Error};
use std::borrow::Borrow;
use std::collections::BTreeMap;

/// The sum of products over contracted axes: batch axes first, then the left side's others, then the right side's.
///
/// `contract` and `batch` name the axes of the left and of the right side, pair by pair.
///
/// ```
/// use ferrax::{Dtype, Tensor, dot_general, dot_general_in};
/// let (x, y) = (Tensor::ones(&[5, 2, 3]), Tensor::ones(&[5, 4, 3]));
/// assert_eq!(dot_general(&x, &y, (&[2], &[2]), (&[0], &[0])).shape(), [5, 2, 4]);
/// let x = Tensor::full(&[300], 1.0).astype(Dtype::BF16);
/// assert_eq!(dot_general_in(&x, &x, (&[0], &[0]), (&[], &[]), Dtype::F32).item(), 300.0); // no bfloat16, whose steps are 2 there
/// ```
#[track_caller]
pub fn dot_general(x: &Tensor, y: &Tensor, contract: (&[usize], &[usize]), batch: (&[usize], &[usize])) -> Tensor {
    let [x, y] = exactly(promote(&[x, y]));
    let dtype = x.dtype();
    dot_general_in(&x, &y, contract, batch, dtype)
}
/// [`dot_general`] whose sums are given in `dtype`: those of bfloat16, say, in float32.
#[track_caller]
pub fn dot_general_in(
    x: &Tensor,
    y: &Tensor,
    contract: (&[usize], &[usize]),
    batch: (&[usize], &[usize]),
    dtype: Dtype,
) -> Tensor {
    let [x, y] = exactly(promote(&[x, y]));
    let dims = DotDims { lc: contract.0.into(), rc: contract.1.into(), lb: batch.0.into(), rb: batch.1.into() };
    emit(Dot { preferred_element_type: Some(dtype), ..Dot::new(dims) }, &[&x, &y])
}

/// An operand with a label for each axis.
#[derive(Clone)]
struct Labelled {
    x: Tensor,
    labels: Vec<char>,
}
impl Labelled {
    #[track_caller]
    fn without(self, gone: impl Fn(char) -> bool) -> Labelled {
        let axes: Dims = (0..self.labels.len()).filter(|k| gone(self.labels[*k])).collect();
        if axes.is_empty() {
            return self;
        }
        let kind = if self.x.dtype().is_bool() { Monoid::Or } else { Monoid::Sum };
        let x = emit(Reduce { kind, axes }, &[&self.x]);
        Labelled { x, labels: self.labels.into_iter().filter(|c| !gone(*c)).collect() }
    }
    /// Repeated labels reduced to one: elements off their diagonal are zeroed, then summed over.
    #[track_caller]
    fn diagonal(self, needed: &[char]) -> Labelled {
        let mut it = self;
        for c in it.labels.clone() {
            let axes: Vec<usize> = (0..it.labels.len()).filter(|k| it.labels[*k] == c).collect();
            if axes.len() < 2 {
                continue;
            }
            let at = |k: usize| Tensor::iota(it.x.shape(), k, Dtype::U32);
            let same = axes[1..].iter().map(|k| pw(Pw::Eq, &[&at(axes[0]), &at(*k)])).reduce(|a, b| a & b);
            let x = where_(&same.unwrap_or_else(|| unreachable!("two axes")), &it.x, constant(it.x.dtype(), 0.0));
            let drop = if needed.contains(&c) { &axes[..axes.len() - 1] } else { &axes[..] };
            let x = emit(Reduce { kind: Monoid::Sum, axes: drop.into() }, &[&x]);
            let labels = it.labels.iter().enumerate().filter(|(k, _)| !drop.contains(k)).map(|(_, c)| *c).collect();
            it = Labelled { x, labels };
        }
        it
    }
    /// Without axis k, of size 1.
    #[track_caller]
    fn dropped(&mut self, k: usize) {
        self.x = emit(Squeeze { dimensions: [k].into() }, &[&self.x]);
        self.labels.remove(k);
    }
}
#[track_caller]
fn pair(mut x: Labelled, mut y: Labelled, keep: &[char]) -> Labelled {
    // an axis of size 1 that broadcasts against a longer one carries no label
    for c in x.labels.clone() {
        let (Some(i), Some(j)) = (find(&x.labels, c), find(&y.labels, c)) else { continue };
        if x.x.shape()[i] != y.x.shape()[j] {
            if x.x.shape()[i] == 1 { x.dropped(i) } else { y.dropped(j) }
        }
    }
    let (lx, ly) = (x.labels.clone(), y.labels.clone());
    let x = x.without(|c| !ly.contains(&c) && !keep.contains(&c));
    let y = y.without(|c| !lx.contains(&c) && !keep.contains(&c));
    let made = |a: &Labelled, b: &Labelled| -> Vec<char> {
        let batch = a.labels.iter().filter(|c| b.labels.contains(c) && keep.contains(c));
        let own =
            |a: &Labelled, b: &Labelled| a.labels.iter().filter(|c| !b.labels.contains(c)).copied().collect::<Vec<_>>();
        batch.copied().chain(own(a, b)).chain(own(b, a)).collect()
    };
    let labels = made(&x, &y);
    // the order of operands that needs no transpose afterwards, if there is one
    let wanted: Vec<char> = keep.iter().copied().filter(|c| labels.contains(c)).collect();
    let (x, y) = if labels == wanted { (x, y) } else { (y, x) };
    let labels = made(&x, &y);
    let shared: Vec<char> = x.labels.iter().copied().filter(|c| y.labels.contains(c)).collect();
    let at = |of: &Labelled, kept: bool| -> Vec<usize> {
        let wanted = shared.iter().filter(|c| keep.contains(c) == kept);
        wanted.filter_map(|c| find(&of.labels, *c)).collect()
    };
    let out = dot_general(&x.x, &y.x, (&at(&x, false), &at(&y, false)), (&at(&x, true), &at(&y, true)));
    Labelled { x: out, labels }
}
fn find(labels: &[char], c: char) -> Option<usize> {
    labels.iter().position(|d| *d == c)
}

/// Which two to contract first: the order of least work for up to five operands, else the cheapest pair each time.
fn next_pair(terms: &[Vec<char>], output: &[char], sizes: &BTreeMap<char, usize>) -> (usize, usize) {
    let work = |labels: &[char]| labels.iter().map(|c| sizes[c] as f64).product::<f64>();
    fn joined(terms: &[Vec<char>], i: usize, j: usize, output: &[char]) -> (Vec<char>, Vec<Vec<char>>, Vec<char>) {
        let mut all = terms[i].clone();
        all.extend(terms[j].iter().filter(|c| !terms[i].contains(c)));
        let rest: Vec<Vec<char>> =
            terms.iter().enumerate().filter(|(k, _)| *k != i && *k != j).map(|(_, t)| t.clone()).collect();
        let kept = all.iter().copied().filter(|c| output.contains(c) || rest.iter().any(|t| t.contains(c))).collect();
        (all, rest, kept)
    }
    fn least(terms: &[Vec<char>], output: &[char], work: &dyn Fn(&[char]) -> f64, deep: bool) -> (f64, (usize, usize)) {
        let mut best = (f64::INFINITY, (0, 1));
        for i in 0..terms.len() {
            for j in i + 1..terms.len() {
                let (all, mut rest, kept) = joined(terms, i, j, output);
                let mut cost = work(&all);
                if deep && !rest.is_empty() {
                    rest.push(kept);
                    cost += least(&rest, output, work, true).0;
                }
                if cost < best.0 {
                    best = (cost, (i, j));
                }
            }
        }
        best
    }
    least(terms, output, &work, terms.len() <= 5).1
}

#[track_caller]
fn wrong(m: impl Into<String>) -> ! {
    mistakes::raise(Error::value(m))
}
/// Sums of products by Einstein's notation.
///
/// ```
/// use ferrax::{Dtype, Tensor, einsum};
/// let a = Tensor::arange(6, Dtype::F32).reshape(&[2, 3]);
/// assert_eq!(einsum("ij,kj->ik", &[&a, &a]).to_vec::<f32>().unwrap(), [5.0, 14.0, 14.0, 50.0]);
/// assert_eq!(einsum("...i->...", &[&a]).to_vec::<f32>().unwrap(), [3.0, 12.0]);
/// ```
///
/// # Panics
/// For subscripts that do not fit the operands.
#[track_caller]
pub fn einsum<T: Borrow<Tensor>>(subscripts: &str, operands: &[T]) -> Tensor {
    let text: String = subscripts.chars().filter(|c| *c != ' ').collect();
    let (inputs, output) = match text.split_once("->") {
        Some((i, o)) => (i.to_string(), Some(o.to_string())),
        None => (text, None),
    };
    let terms: Vec<&str> = inputs.split(',').collect();
    if terms.len() != operands.len() {
        wrong(format!(
            "Number of einsum subscripts, {}, must be equal to the number of operands, {}.",
            terms.len(),
            operands.len()
        ));
    }
    let arrays = promote(&operands.iter().map(Borrow::<Tensor>::borrow).collect::<Vec<_>>());
    // the axes of an ellipsis get labels outside of every alphabet
    let hidden = |n: usize| (0..n).rev().map(|i| char::from_u32(0xE000 + i as u32).unwrap_or('?'));
    let mut longest = 0;
    let mut live: Vec<Labelled> = vec![];
    for (i, (t, x)) in terms.iter().zip(&arrays).enumerate() {
        let named = t.replace("...", "");
        if named.contains('.') {
            wrong("Invalid Ellipses.");
        }
        let rest = x.rank().checked_sub(named.chars().count());
        let labels: Vec<char> = match (t.split_once("..."), rest) {
            (Some((a, b)), Some(n)) => {
                longest = longest.max(n);
                a.chars().chain(hidden(n)).chain(b.chars()).collect()
            }
            (None, Some(0)) => named.chars().collect(),
            (Some(_), None) => wrong("Ellipses lengths do not match."),
            _ => wrong(format!(
                "Einstein sum subscript '{t}' does not contain the correct number of indices for operand {i}."
            )),
        };
        live.push(Labelled { x: x.clone(), labels });
    }
    let every: Vec<char> = live.iter().flat_map(|l| l.labels.clone()).collect();
    let output: Vec<char> = match output {
        Some(o) => match o.split_once("...") {
            Some((a, b)) => a.chars().chain(hidden(longest)).chain(b.chars()).collect(),
            None => o.chars().collect(),
        },
        None => {
            let mut once: Vec<char> =
                every.iter().copied().filter(|c| every.iter().filter(|d| *d == c).count() == 1).collect();
            once.retain(|c| !hidden(longest).any(|h| h == *c));
            once.sort_unstable();
            hidden(longest).chain(once).collect()
        }
    };
    for c in &output {
        if output.iter().filter(|d| *d == c).count() > 1 {
            wrong(format!("Output character '{c}' appeared more than once in the output."));
        }
        if !every.contains(c) {
            wrong(format!("Output character '{c}' did not appear in the input"));
        }
    }
    let mut sizes: BTreeMap<char, usize> = BTreeMap::new();
    for (i, l) in live.iter().enumerate() {
        for (c, n) in l.labels.iter().zip(l.x.shape()) {
            let known = sizes.entry(*c).or_insert(1);
            if *known == 1 {
                *known = *n;
            } else if *n != 1 && n != known {
                wrong(format!("Size of label '{c}' for operand {i} ({known}) does not match previous terms ({n})."));
            }
        }
    }
    while live.len() > 1 {
        let labels: Vec<Vec<char>> = live.iter().map(|l| l.labels.clone()).collect();
        let (i, j) = if live.len() == 2 { (0, 1) } else { next_pair(&labels, &output, &sizes) };
        let y = live.remove(j);
        let x = live.remove(i);
        let rest: Vec<char> = live.iter().flat_map(|l| l.labels.clone()).collect();
        let needed = |o: &Labelled| [&o.labels[..], &rest, &output].concat();
        let x = x.diagonal(&needed(&y));
        let y = y.diagonal(&needed(&x));
        let mut keep = output.clone();
        rest.iter().for_each(|c| {
            if !keep.contains(c) {
                keep.push(*c)
            }
        });
        live.push(pair(x, y, &keep));
    }
    let last = live.remove(0).diagonal(&output).without(|c| !output.contains(&c));
    let permutation: Dims = output.iter().filter_map(|c| find(&last.labels, *c)).collect();
    if permutation.iter().copied().eq(0..permutation.len()) {
        return last.x;
    }
    emit(Transpose { permutation }, &[&last.x])
}

impl Tensor {
    /// The matrix product over the last two axes, leading axes broadcasting; a vector counts as one row or one column.
    ///
    /// # Panics
    /// For scalars, and sizes that do not fit.
    #[track_caller]
    pub fn matmul(&self, o: impl Borrow<Tensor>) -> Tensor {
        let o: &Tensor = o.borrow();
        let (l, r) = (self.rank(), o.rank());
        for (i, n) in [l, r].into_iter().enumerate() {
            if n == 0 {
                wrong(format!("matmul input operand {i} must have ndim at least 1, but it has ndim 0"));
            }
        }
        if l <= 2 && r <= 2 {
            return dot_general(self, o, (&[l - 1], &[r.saturating_sub(2)]), (&[], &[]));
        }
        let (x, y) = match (l, r) {
            (1, _) => ("z", "...zy"),
            (_, 1) => ("...xz", "z"),
            _ => ("...xz", "...zy"),
        };
        let out = match (l, r) {
            (1, _) => "...y",
            (_, 1) => "...x",
            _ => "...xy",
        };
        let (k, m) = (self.shape()[l - 1], o.shape()[r.saturating_sub(2)]);
        if k != m {
            mistakes::raise(Error::type_error(format!(
                "dot_general requires contracting dimensions to have the same shape, got ({k},) and ({m},)."
            )));
        }
        einsum(&format!("{x},{y}->{out}"), &[self, o])
    }
    /// The product of vectors along the last axis of this one and of `o`, summed: numpy's `inner` of equal leading axes.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([1, 2]).dot(Tensor::from([3, 4])).item(), 11.0);
    /// ```
    #[track_caller]
    pub fn dot(&self, o: impl Borrow<Tensor>) -> Tensor {
        einsum("...i,...i->...", &[self, o.borrow()])
    }
    /// All products of two vectors' elements.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([1, 2]).outer(Tensor::from([3, 4])).to_vec::<i32>()?, [3, 4, 6, 8]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn outer(&self, o: impl Borrow<Tensor>) -> Tensor {
        self.flatten().expand_dims(1) * o.borrow().flatten().expand_dims(0)
    }
}
