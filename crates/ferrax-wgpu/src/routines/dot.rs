//! Products, by [`tiles`]; smaller ones are kernels. If there are few tiles and the sums are long, workgroups take parts of the sums, and a kernel
//! adds those. What is computed of a product is in the pass that has its sums.
use super::tiles::{TILE, Tiles};
use super::{Product, load};
use crate::task::{Limits, Reg};
use crate::wgsl::epilogue::{Epilogue, Partial};
use crate::wgsl::{self, Lowered, scalar};
use ferrax_kernel::kernel::{Affine, Kernel, Node};
use ferrax_kernel::routine::Dot;
use ferrax_kernel::{Bin, DType, Error, ReduceKind, Res, Scalar};

/// Workgroups from which more of them are no faster, and terms of a part of a sum, at least.
pub const WORKGROUPS: usize = 256;
pub const MIN_TERMS: usize = 256;

pub fn lower(d: &Dot, product: &Product, limits: Limits) -> Res<Lowered> {
    for (n, strides) in [([d.b, d.m, d.k], d.lhs), ([d.b, d.k, d.n], d.rhs)] {
        let span: i64 = n
            .iter()
            .zip(strides)
            .map(|(n, s)| (*n as i64 - 1).max(0).saturating_mul(s.abs()))
            .fold(0, i64::saturating_add);
        if span > i32::MAX as i64 {
            return Err(Error::Unsupported(format!(
                "dot: an operand spans {span} elements, more than a shader can count"
            )));
        }
    }
    if is_small(d, limits) {
        return wgsl::lower(product.kernel, limits);
    }
    let (parts, epilogue) = (parts(d), Epilogue::of(product.kernel)?);
    let mut task = Lowered::default();
    if parts == 1 && d.n.is_multiple_of(epilogue.per_word()) {
        of_matrices(&mut task, d, 1, product, &epilogue, product.outs(), limits)?;
        return Ok(task);
    }
    // sums of parts, or of rows that end within a word, go through memory
    let (acc, elements) = (accumulator(d.dtype, d.out), d.b * d.m * d.n);
    let sums = task.add_scratch(acc.size() * parts * elements);
    of_matrices(&mut task, d, parts, product, &Epilogue::none(acc, parts * elements)?, vec![sums], limits)?;
    let at = Affine::new(0, [1, elements as i64]);
    product.of_sums(&mut task, sums, &Partial { parts, at, dims: [elements].into() }, limits)?;
    Ok(task)
}

/// Whether it is a kernel.
pub fn is_small(d: &Dot, limits: Limits) -> bool {
    d.m < 16 || d.n < 16 || d.k < 8 || d.dtype == DType::Bool || limits.workgroup < 256
}

/// In how many parts the sums are taken: a power of two that divides them.
fn parts(d: &Dot) -> usize {
    let tiles = d.m.div_ceil(TILE) * d.n.div_ceil(TILE);
    let mut parts = 1;
    while d.b == 1 && parts * tiles < WORKGROUPS && d.k.is_multiple_of(2 * parts) && d.k / (2 * parts) >= MIN_TERMS {
        parts *= 2;
    }
    parts
}

/// The dtype of the accumulator.
fn accumulator(d: DType, out: DType) -> DType {
    match (d, out) {
        (DType::Bool, DType::Bool) => DType::Bool,
        _ if out.is_float() && !d.is_float() => DType::F32,
        _ => d.lane(),
    }
}

/// Grid (b, m, n), reduced over k.
pub fn as_kernel(d: &Dot) -> Kernel {
    let [lb, lm, lk] = d.lhs;
    let [rb, rk, rn] = d.rhs;
    let acc = accumulator(d.dtype, d.out);
    let x = load(0, Affine::new(0, [lb, lm, 0, lk]), vec![], Scalar::zero(d.dtype));
    let y = load(1, Affine::new(0, [rb, 0, rn, rk]), vec![], Scalar::zero(d.dtype));
    let (product, sum) = if acc == DType::Bool { (Bin::And, ReduceKind::Or) } else { (Bin::Mul, ReduceKind::Sum) };
    Kernel {
        grid: [d.b, d.m, d.n].into(),
        rdims: [d.k].into(),
        inputs: ferrax_kernel::Routine::Dot(d.clone()).operands(),
        nodes: vec![
            x,
            y,
            (acc, Node::Convert(0)),
            (acc, Node::Convert(1)),
            (acc, Node::Bin(product, 2, 3)),
            (acc, Node::Reduce { kind: sum, of: 4 }),
            (d.out, Node::Convert(5)),
        ],
        outputs: vec![6],
    }
}

/// An operand: its dtype, its first position, and for its batch, rows (or columns) and terms, sizes and strides of their axes.
struct Operand {
    dtype: DType,
    offset: i64,
    axes: [Vec<(usize, i64)>; 3],
}
impl Operand {
    /// Load `number` of the product's kernel, over grid (b.., m.., n..) and terms.
    fn of(d: &Dot, k: &Kernel, number: usize) -> Res<Operand> {
        let (dtype, Node::Load(a)) = &k.nodes[number] else {
            return Err(Error::Invalid("dot: its kernel begins with no load".into()));
        };
        let mut rest = k.domain().iter().copied().enumerate().collect::<Vec<_>>().into_iter().peekable();
        let axes = [d.b, d.m, d.n, d.k].map(|n| {
            let (mut all, mut size): (Vec<(usize, i64)>, usize) = (vec![], 1);
            while size < n
                && let Some((k, dim)) = rest.next()
            {
                size *= dim;
                let stride = a.at.stride(k);
                match all.last_mut() {
                    _ if dim == 1 => (),
                    Some((outer, s)) if *s == stride * dim as i64 => (*outer, *s) = (*outer * dim, stride),
                    _ => all.push((dim, stride)),
                }
            }
            all
        });
        let [b, m, n, k] = axes;
        Ok(Operand { dtype: *dtype, offset: a.at.offset, axes: [b, if number == 0 { m } else { n }, k] })
    }
    /// Its lane of `d`, then of `acc`.
    fn element(&self, words: &str, of: [&str; 3], d: DType, acc: DType) -> String {
        let along = self.axes.iter().zip(of).flat_map(|(axes, i)| along(axes, i));
        let at = [self.offset.to_string()].into_iter().chain(along).collect::<Vec<_>>().join(" + ");
        let x = scalar::convert(self.dtype, d, &wgsl::load(self.dtype, words, 0, &at));
        scalar::convert(d, acc, &x)
    }
    fn is_dense_along(&self, part: usize) -> bool {
        self.axes[part].last().is_some_and(|(_, stride)| *stride == 1)
    }
}
/// The terms of a position for the row-major index `i` of these axes.
fn along(axes: &[(usize, i64)], i: &str) -> Vec<String> {
    let mut below = 1;
    let mut terms = vec![];
    for (k, (n, stride)) in axes.iter().enumerate().rev() {
        let divided = if below == 1 { i.to_string() } else { format!("{i} / {below}") };
        let digit = if k == 0 { divided } else { format!("{divided} % {n}") };
        if *stride != 0 {
            terms.push(format!("({digit}) * ({stride})"));
        }
        below *= n;
    }
    terms
}

/// The product in so many parts of the sums, each of which is a matrix of the result's batch.
fn of_matrices(
    task: &mut Lowered,
    d: &Dot,
    parts: usize,
    product: &Product,
    epilogue: &Epilogue,
    outs: Vec<Reg>,
    limits: Limits,
) -> Res<()> {
    let (acc, k) = (accumulator(d.dtype, d.out), d.k / parts);
    let operands = [Operand::of(d, product.alone, 0)?, Operand::of(d, product.alone, 1)?];
    let of = |number: usize, row: &str, term: &str| {
        let term = if parts == 1 { term.to_string() } else { format!("(b * {k} + {term})") };
        let x = operands[number].element(&format!("in{number}"), ["b", row, &term], d.dtype, acc);
        format!("x = {x};")
    };
    let tiles = Tiles {
        b: parts * d.b,
        m: d.m,
        n: d.n,
        k,
        acc,
        epilogue,
        lhs: &|row, term| of(0, row, term),
        rhs: &|row, term| of(1, row, term),
        terms_first: [operands[0].is_dense_along(2), operands[1].is_dense_along(2)],
    };
    tiles.run(task, product.operands.map(Reg::In), outs, limits)
}
