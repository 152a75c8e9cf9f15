//! The part of an operation that each device can do on its part of the operands: [`Factors`], which name the dimensions of operands and
//! results that go together, and [`Ties`], which name the operands and results that go together with those of an op's bodies.
//!
//! ```text
//! dot_general  [b, i, k] x [b, k, j] -> [b, i, j]      factors b, i, j; k is summed
//! reshape      [i*j] -> [i, j]                         a dimension may be several factors, the coarsest first
//! sort         [i, whole] -> [i, whole]                a dimension without a factor must be whole
//! ```
//!
//! INVARIANT: if all dimensions of a factor are cut by the same axes, the same primitive on the parts gives the part of the result; for
//! a factor that is folded, a part of the fold.
use crate::aval::{Aval, Lit};
use crate::layout::Grid;
use crate::ops::collective::Names;
use crate::ops::reduce::Monoid;
use ferrax_kernel::Dims;
use smallvec::{SmallVec, smallvec};
use std::ops::Range;

/// A dimension's factors, the coarsest first; none where it must be whole.
pub type DimFactors = SmallVec<[u8; 2]>;

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Factor {
    /// 0 where its dimensions have several sizes.
    pub size: usize,
    /// Results do not have it: the results of the parts are folded.
    pub fold: Option<Monoid>,
    /// It must be whole, but results are cut as operands are.
    pub whole: bool,
}
/// A dimension of an operand or of a result.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Dimension {
    In(usize, usize),
    Out(usize, usize),
}
pub use Dimension::{In, Out};

/// A factor for each group of dimensions that go together.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Factors {
    pub factors: Vec<Factor>,
    pub ins: Vec<SmallVec<[DimFactors; 4]>>,
    pub outs: Vec<SmallVec<[DimFactors; 4]>>,
    /// Operands that a sum starts with: where devices sum, all but the first take zeros.
    pub start: Vec<usize>,
    /// It calls the host: one device does it for all.
    pub once: bool,
    /// Elements of an operand say where those of others lie: none may be without meaning.
    pub addresses: bool,
    /// The program specifies how the result is cut: for each dimension the names of axes, or
    /// nothing.
    pub wanted: Option<Vec<Option<Names>>>,
    /// The mesh that those names are of.
    pub grid: Option<Grid>,
    /// All are alike along so many leading axes, and whole along the others.
    pub batch: Option<usize>,
    /// Dimensions of operand 0 that are no factors, and may be cut: each device does for its part what the indices say of it.
    pub indexed: Vec<Indexed>,
    /// The whole op as moves of rows, dimension after dimension. Empty where it does more.
    pub moved: Vec<Moved>,
    /// Dimensions of operand 0 of which result 0 has windows.
    pub windows: Vec<Windowed>,
    /// A dimension of all operands that is no factor, and may be cut: devices share the work by the rule `shared` of the op.
    pub shared: Option<Shared>,
}
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Shared {
    pub dim: usize,
    /// Results are cut along it too; otherwise each device has all of them.
    pub cut: bool,
    /// It costs more than to cut another dimension instead, where there is one.
    pub last: bool,
}
/// Position `k` along a dimension of the result, or of an operand that is folded, goes with the `span` rows that begin at `k * stride - low` of
/// operand 0, whose own rows are spread: row `r` is at `r * spread`.
#[derive(Clone, PartialEq, Debug)]
pub struct Windowed {
    pub dim: usize,
    pub of: Dimension,
    pub low: i64,
    pub stride: usize,
    pub span: usize,
    pub spread: usize,
    /// What rows outside of the operand have.
    pub fill: Lit,
}
/// A dimension of the result of which each row is a row of an operand, or is filled.
#[derive(Clone, PartialEq, Debug)]
pub struct Moved {
    pub result: usize,
    pub dim: usize,
    /// The rows of the result, and of each operand.
    pub size: usize,
    pub sizes: Vec<usize>,
    pub runs: Vec<Run>,
    /// The operand from which the other rows are filled.
    pub fill: Option<usize>,
}
/// Rows of a result that are rows `first`, `first + step`, .. of an operand.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    pub rows: Range<usize>,
    pub operand: usize,
    pub first: i64,
    pub step: i64,
}
impl Windowed {
    /// The first row of operand 0 that the windows from position `k` on read, where those are as far from a row as at position 0.
    pub fn first(&self, k: usize) -> i64 {
        let spread = self.spread as i64;
        (k * self.stride) as i64 / spread - self.low.div_euclid(spread)
    }
    /// How many rows the windows of so many positions read.
    pub fn rows(&self, positions: usize) -> usize {
        let end = self.reach(positions) as i64 - self.low - 1;
        usize::try_from(end.div_euclid(self.spread as i64) - self.first(0) + 1).unwrap_or(0)
    }
    /// How far the windows of so many positions reach.
    fn reach(&self, positions: usize) -> usize {
        positions.saturating_sub(1) * self.stride + self.span
    }
    /// The padding with which the windows of so many positions cover the rows that they read.
    pub fn around(&self, positions: usize) -> (i64, i64) {
        let low = self.low.rem_euclid(self.spread as i64);
        let rows = self.rows(positions).saturating_sub(1) * self.spread + 1;
        (low, self.reach(positions) as i64 - low - rows as i64)
    }
}
impl Factors {
    /// The moves of a result's rows.
    pub fn moves_of(&self, result: usize) -> impl Iterator<Item = &Moved> + Clone {
        self.moved.iter().filter(move |m| m.result == result)
    }
    /// The dimension whose rows move, and of how many operands, where it is one alone.
    pub fn moved_dim(&self) -> Option<(usize, usize)> {
        let m = self.moved.first()?;
        self.moved.iter().enumerate().all(|(i, o)| o.dim == m.dim && o.result == i).then_some((m.dim, m.sizes.len()))
    }
}
impl Run {
    /// Whether another one goes on where this ends.
    pub fn meets(&self, next: &Run) -> bool {
        let end = self.first + self.rows.len() as i64 * self.step;
        (self.operand, self.step, self.rows.end, end) == (next.operand, next.step, next.rows.start, next.first)
    }
    /// The rows of this run that `inner` has, where that says which rows of others the operand has.
    pub fn through(&self, inner: &Run) -> Option<Run> {
        let len = self.rows.len() as i64;
        let inside = |j: i64| (inner.rows.start as i64..inner.rows.end as i64).contains(&(self.first + j * self.step));
        // rows are in order: those inside follow each other
        let (start, end, step) = (inner.rows.start as i64, inner.rows.end as i64 - 1, self.step);
        let (near, far) = if step > 0 { (start, end) } else { (end, start) };
        let from = ((near - self.first) * step.signum() + step.abs() - 1).div_euclid(step.abs()).max(0);
        let to = ((far - self.first) * step.signum()).div_euclid(step.abs()).min(len - 1);
        (from <= to && inside(from)).then(|| Run {
            rows: self.rows.start + from as usize..self.rows.start + to as usize + 1,
            operand: inner.operand,
            first: inner.first + (self.first + from * step - inner.rows.start as i64) * inner.step,
            step: step * inner.step,
        })
    }
}
/// How the positions along a dimension of operand 0 are read or written by number.
#[derive(Clone, PartialEq, Debug)]
pub struct Indexed {
    pub dim: usize,
    pub by: By,
}
#[derive(Clone, PartialEq, Debug)]
pub enum By {
    /// Row `k` of the result is row `first + k * step` of the operand.
    Rows { first: First, step: usize },
    /// Rows from `first` on are those of operand 1, which has the other dimensions whole.
    Update { first: First },
    /// A component of the index vectors, along the last axis of operand 1, is the position of a row.
    Vectors(Vectors),
}
/// The first of some rows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum First {
    At(usize),
    /// An operand, which is clamped so that all rows are inside.
    Operand(usize),
}
#[derive(Clone, PartialEq, Debug)]
pub struct Vectors {
    pub component: usize,
    /// For each component, the dimension of operand 0 that it indexes and the size of the window there.
    pub windows: Vec<(usize, usize)>,
    pub clamped: bool,
    /// For reads.
    pub read: Option<Read>,
}
/// The parameters of reads by index vectors.
#[derive(Clone, PartialEq, Debug)]
pub struct Read {
    /// The value that is read outside of the operand.
    pub fill: Option<Lit>,
    /// The result's dimension for each of those of the index vectors.
    pub batch: Dims,
}
impl By {
    /// Whether the result is the operand with other values at the indices.
    pub fn writes(&self) -> bool {
        match self {
            By::Rows { .. } => false,
            By::Update { .. } => true,
            By::Vectors(v) => v.read.is_none(),
        }
    }
}
/// The most factors that one operation has.
const MAX_FACTORS: usize = 64;

impl Factors {
    /// Everything must be whole.
    pub fn whole(x: &[Aval], out: &[Aval]) -> Factors {
        let none = |a: &Aval| smallvec![DimFactors::new(); a.rank()];
        Factors { ins: x.iter().map(none).collect(), outs: out.iter().map(none).collect(), ..Factors::default() }
    }
    /// For operations of the host: on whole operands, and once.
    pub fn once(x: &[Aval], out: &[Aval]) -> Factors {
        Factors { once: true, ..Factors::whole(x, out) }
    }
    /// Results of operands element by element: dimensions of one place and size go together; smaller operands are repeated.
    pub fn pointwise(x: &[Aval], out: &[Aval]) -> Factors {
        let mut f = Factors::whole(x, out);
        let Some(first) = out.first() else { return f };
        for d in 0..first.rank() {
            let alike = |a: &Aval| a.rank() == first.rank() && a.shape[d] == first.shape[d];
            let ins = (0..x.len()).filter(|i| alike(&x[*i])).map(|i| In(i, d));
            let outs = (0..out.len()).filter(|i| alike(&out[*i])).map(|i| Out(i, d));
            f.link(first.shape[d], &ins.chain(outs).collect::<Vec<_>>());
        }
        f
    }
    /// All operands and results alike along the axes of the first operand for which `along`; its other dimensions must be whole, and the
    /// results' are cut as they are.
    pub fn along(x: &[Aval], out: &[Aval], along: impl Fn(usize) -> bool) -> Factors {
        let mut f = Factors::whole(x, out);
        let Some(first) = x.first() else { return f };
        for d in 0..first.rank() {
            let alike = |a: &Aval| a.rank() == first.rank() && a.shape[d] == first.shape[d];
            let ins = (0..x.len()).filter(|i| alike(&x[*i])).map(|i| In(i, d));
            if along(d) {
                let outs = (0..out.len()).filter(|i| alike(&out[*i])).map(|i| Out(i, d));
                f.link(first.shape[d], &ins.chain(outs).collect::<Vec<_>>());
            } else {
                let outs = (0..out.len()).filter(|i| out[*i].rank() == first.rank()).map(|i| Out(i, d));
                f.keep(&ins.chain(outs).collect::<Vec<_>>());
            }
        }
        f
    }
    /// All operands and results alike along the first `n` axes of each.
    pub fn batched(x: &[Aval], out: &[Aval], n: usize) -> Factors {
        let mut f = Factors { batch: Some(n), ..Factors::whole(x, out) };
        let Some(first) = x.first() else { return f };
        for d in 0..n.min(first.rank()) {
            let alike = |a: &Aval| a.shape.get(d) == first.shape.get(d);
            let ins = (0..x.len()).filter(|i| alike(&x[*i])).map(|i| In(i, d));
            let outs = (0..out.len()).filter(|i| alike(&out[*i])).map(|i| Out(i, d));
            f.link(first.shape[d], &ins.chain(outs).collect::<Vec<_>>());
        }
        f
    }
    fn add(&mut self, factor: Factor, dims: &[Dimension]) {
        if factor.size == 1 || (factor.size == 0 && !factor.whole) || self.factors.len() == MAX_FACTORS {
            return;
        }
        let id = self.factors.len() as u8;
        self.factors.push(factor);
        for d in dims {
            match *d {
                In(i, d) => self.ins[i][d].push(id),
                Out(i, d) => self.outs[i][d].push(id),
            }
        }
    }
    /// Dimensions that go together. Called again for a dimension, it adds a finer factor of it.
    pub fn link(&mut self, size: usize, dims: &[Dimension]) {
        self.add(Factor { size, fold: None, whole: false }, dims);
    }
    /// Dimensions of operands that are folded.
    pub fn fold(&mut self, size: usize, monoid: Monoid, dims: &[Dimension]) {
        self.add(Factor { size, fold: Some(monoid), whole: false }, dims);
    }
    /// Dimensions that must be whole, where the result is cut as the operand is.
    pub fn keep(&mut self, dims: &[Dimension]) {
        self.add(Factor { size: 0, fold: None, whole: true }, dims);
    }
    /// The dimensions of operand and result 0 of a reshape: the longest runs of sizes with equal products, cut at common divisors.
    pub fn reshape(x: &[Aval], out: &[Aval]) -> Factors {
        let mut f = Factors::whole(x, out);
        let (from, to) = (&x[0].shape, &out[0].shape);
        if from.contains(&0) {
            return f;
        }
        let (mut i, mut j) = (0, 0);
        // the remainders of the current dimensions
        let (mut m, mut n) = (1, 1);
        loop {
            while m == 1 && i < from.len() {
                (m, i) = (from[i], i + 1);
            }
            while n == 1 && j < to.len() {
                (n, j) = (to[j], j + 1);
            }
            if m == 1 || n == 1 {
                return f;
            }
            // coarsest first: one divides the other, or the two have no finer factors
            let size = if m.is_multiple_of(n) {
                n
            } else if n.is_multiple_of(m) {
                m
            } else {
                f.common(gcd(m, n), (i - 1, j - 1));
                let (mut a, mut b) = (m, n);
                // to where both end together
                while a != b && (i < from.len() || j < to.len()) {
                    if a < b && i < from.len() {
                        (a, i) = (a * from[i], i + 1);
                    } else if j < to.len() {
                        (b, j) = (b * to[j], j + 1);
                    } else {
                        break;
                    }
                }
                (m, n) = (1, 1);
                continue;
            };
            f.link(size, &[In(0, i - 1), Out(0, j - 1)]);
            (m, n) = (m / size, n / size);
        }
    }
    /// The coarsest parts of two dimensions of which neither divides the other.
    fn common(&mut self, size: usize, (i, j): (usize, usize)) {
        self.link(size, &[In(0, i), Out(0, j)]);
    }
}
fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The source of an input of a body, or the destination of an output.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Tie {
    /// The operand, or the result, of this number.
    Same(usize),
    /// One element along its leading axis, or of the sequence that it is.
    Element(usize),
    /// Whole on every device.
    Whole,
}
/// How the bodies of an op go together with its operands and results. Operands and results that no body has are whole.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Ties {
    pub bodies: Vec<BodyTies>,
}
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BodyTies {
    pub ins: Vec<Tie>,
    pub outs: Vec<Tie>,
    /// (result, operand): the next iteration takes the result as this operand.
    pub carried: Vec<(usize, usize)>,
}
impl BodyTies {
    /// Of a body that takes these operands and gives the results.
    pub fn same(ins: Range<usize>, outs: usize) -> BodyTies {
        BodyTies { ins: ins.map(Tie::Same).collect(), outs: (0..outs).map(Tie::Same).collect(), carried: vec![] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Dtype;

    fn reshaped(from: &[usize], to: &[usize]) -> (Vec<usize>, Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let f = Factors::reshape(&[Aval::new(Dtype::F32, from)], &[Aval::new(Dtype::F32, to)]);
        let ids = |d: &SmallVec<[DimFactors; 4]>| d.iter().map(|d| d.to_vec()).collect();
        (f.factors.iter().map(|f| f.size).collect(), ids(&f.ins[0]), ids(&f.outs[0]))
    }
    #[test]
    fn reshapes_split_and_merge() {
        assert_eq!(
            reshaped(&[6, 5], &[2, 3, 5]),
            (vec![2, 3, 5], vec![vec![0, 1], vec![2]], vec![vec![0], vec![1], vec![2]])
        );
        assert_eq!(
            reshaped(&[2, 3, 5], &[6, 1, 5]),
            (vec![2, 3, 5], vec![vec![0], vec![1], vec![2]], vec![vec![0, 1], vec![], vec![2]])
        );
        assert_eq!(reshaped(&[8, 4], &[2, 16]), (vec![2, 4, 4], vec![vec![0, 1], vec![2]], vec![vec![0], vec![1, 2]]));
        // 4 and 6 have halves in common, and the threes that follow are in order again
        assert_eq!(
            reshaped(&[4, 3, 5], &[6, 2, 5]),
            (vec![2, 5], vec![vec![0], vec![], vec![1]], vec![vec![0], vec![], vec![1]])
        );
        assert_eq!(reshaped(&[0, 4], &[4, 0]).0, Vec::<usize>::new());
    }
}
