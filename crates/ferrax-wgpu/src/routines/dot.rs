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
        of_matrices(&mut task, d, product, &epilogue, product.outs(), limits)?;
        return Ok(task);
    }
    // sums of parts, or of rows that end within a word, go through memory
    let (acc, elements) = (accumulator(d.dtype, d.out), d.b * d.m * d.n);
    let part = if parts == 1 { d.clone() } else { one_of(d, parts) };
    let sums = task.add_scratch(acc.size() * parts * elements);
    of_matrices(&mut task, &part, product, &Epilogue::none(acc, parts * elements)?, vec![sums], limits)?;
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

/// The product of a batch whose matrices are so many parts of the sums.
fn one_of(d: &Dot, parts: usize) -> Dot {
    let k = d.k / parts;
    Dot {
        b: parts,
        k,
        lhs: [d.lhs[2] * k as i64, d.lhs[1], d.lhs[2]],
        rhs: [d.rhs[1] * k as i64, d.rhs[1], d.rhs[2]],
        ..d.clone()
    }
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

/// The product of matrices with strides.
fn of_matrices(
    task: &mut Lowered,
    d: &Dot,
    product: &Product,
    epilogue: &Epilogue,
    outs: Vec<Reg>,
    limits: Limits,
) -> Res<()> {
    let acc = accumulator(d.dtype, d.out);
    let of = |words: &str, [of_b, of_row, of_term]: [i64; 3], row: &str, term: &str| {
        let x = wgsl::load(d.dtype, words, 0, &format!("b * ({of_b}) + {row} * ({of_row}) + {term} * ({of_term})"));
        format!("x = {};", scalar::convert(d.dtype, acc, &x))
    };
    let tiles = Tiles {
        b: d.b,
        m: d.m,
        n: d.n,
        k: d.k,
        acc,
        epilogue,
        lhs: &|row, term| of("in0", d.lhs, row, term),
        rhs: &|row, term| of("in1", [d.rhs[0], d.rhs[2], d.rhs[1]], row, term),
        terms_first: [d.lhs[2] == 1, d.rhs[1] == 1],
    };
    tiles.run(task, product.operands.map(Reg::In), outs, limits)
}
