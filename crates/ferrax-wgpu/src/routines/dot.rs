//! Products, by [`tiles`]; smaller ones are kernels. If there are few tiles and the sums are long, workgroups take parts of the sums, and a kernel
//! adds those. What is computed of a product is in the pass that has its sums.
use super::tiles::{Element, Part, TILE, Tiles};
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
    let (parts, epilogue) = (splits(d), Epilogue::of(product.kernel)?);
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
fn splits(d: &Dot) -> usize {
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

/// The product of the exchanged operands, the result of which is transposed.
pub fn transposed(d: &Dot) -> Dot {
    let ([lb, lm, lk], [rb, rk, rn]) = (d.lhs, d.rhs);
    Dot { m: d.n, n: d.m, lhs: [rb, rn, rk], rhs: [lb, lk, lm], ..d.clone() }
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

/// The product in so many splits of the sums, each of which is a matrix of the result's batch, as a part of a pass; and whether each operand is dense
/// along its terms.
fn part<'a>(
    d: &'a Dot,
    splits: usize,
    product: &Product,
    epilogue: &'a Epilogue,
    [ins, outs]: [Vec<Reg>; 2],
) -> Res<(Part<'a>, [bool; 2])> {
    let (acc, k) = (accumulator(d.dtype, d.out), d.k / splits);
    let operands = [Operand::of(d, product.alone, 0)?, Operand::of(d, product.alone, 1)?];
    let terms_first = [operands[0].is_dense_along(2), operands[1].is_dense_along(2)];
    let elements = operands.map(|operand| -> Element<'a> {
        Box::new(move |words, row, term| {
            let term = if splits == 1 { term.to_string() } else { format!("(b * {k} + {term})") };
            format!("x = {};", operand.element(words, ["b", row, &term], d.dtype, acc))
        })
    });
    let operands = product.operands.map(|k| ins[k]);
    Ok((Part { epilogue, ins, outs, operands, elements }, terms_first))
}
/// The pass of a product in so many splits.
fn of_matrices(
    task: &mut Lowered,
    d: &Dot,
    splits: usize,
    product: &Product,
    epilogue: &Epilogue,
    outs: Vec<Reg>,
    limits: Limits,
) -> Res<()> {
    let (part, terms_first) = part(d, splits, product, epilogue, [product.ins(), outs])?;
    let (acc, k) = (accumulator(d.dtype, d.out), d.k / splits);
    Tiles { b: splits * d.b, m: d.m, n: d.n, k, acc, terms_first, parts: vec![part] }.run(task, limits)
}

/// Whether a product may be a part of a pass beside others that are like it: a whole one, whose tiles are fewer than a device runs at a time.
pub fn is_part(d: &Dot, limits: Limits) -> bool {
    let tiles = d.b * d.m.div_ceil(TILE) * d.n.div_ceil(TILE);
    !is_small(d, limits) && splits(d) == 1 && tiles < WORKGROUPS
}
/// Whether two are of one size.
pub fn is_alike(a: &Dot, b: &Dot) -> bool {
    let of = |d: &Dot| ([d.b, d.m, d.n, d.k], accumulator(d.dtype, d.out));
    of(a) == of(b)
}
/// One pass of products that are alike, with their inputs; their outputs follow each other in the task's.
pub fn together(all: Vec<(&Dot, Product, Vec<Reg>)>, limits: Limits) -> Res<Lowered> {
    let epilogues = all.iter().map(|(_, p, _)| Epilogue::of(p.kernel)).collect::<Res<Vec<_>>>()?;
    let (first, mut parts, mut orders, mut outs) = (all[0].0, vec![], vec![], 0);
    for ((d, product, ins), epilogue) in all.into_iter().zip(&epilogues) {
        if !d.n.is_multiple_of(epilogue.per_word()) {
            return Err(Error::Unsupported("a part with rows that end within a word".into()));
        }
        let o = product.kernel.outputs.len();
        let regs = [ins, (outs..outs + o).map(Reg::Out).collect()];
        let (part, terms_first) = part(d, 1, &product, epilogue, regs)?;
        outs += o;
        parts.push(part);
        orders.push(terms_first);
    }
    let (d, terms_first) = (first, orders[0]);
    if orders.iter().any(|order| *order != terms_first) {
        return Err(Error::Unsupported("parts whose operands lie in different orders".into()));
    }
    let mut task = Lowered::default();
    let acc = accumulator(d.dtype, d.out);
    Tiles { b: d.b, m: d.m, n: d.n, k: d.k, acc, terms_first, parts }.run(&mut task, limits)?;
    Ok(task)
}
