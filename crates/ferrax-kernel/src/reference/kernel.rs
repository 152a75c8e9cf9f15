//! A kernel, node by node at every point of its loop nest.
use super::{array, scalar};
use crate::error::{Error, Res};
use crate::kernel::{Access, Kernel, Node, NodeId};
use crate::order;
use crate::{Bin, DType, ReduceKind, Scalar};

/// The outputs of `k`.
///
/// # Errors
/// `Invalid` where `k` breaks its invariants or an operand has another number of bytes.
pub fn kernel(k: &Kernel, ins: &[&[u8]]) -> Res<Vec<Vec<u8>>> {
    k.verify()?;
    let ins = array::operands("kernel", &k.inputs, ins)?;
    let reduced = k.nodes.iter().filter_map(|(_, n)| if let Node::Reduce { of, .. } = n { Some(*of) } else { None });
    let (reduced, once) = (k.needed(reduced), k.needed(k.outputs.iter().copied()));
    let mut out: Vec<Vec<Scalar>> = vec![vec![]; k.outputs.len()];
    for i in 0..k.grid.size() {
        let i = k.grid.unravel(i);
        let mut rows = vec![];
        if reduced.contains(&true) {
            for r in 0..k.rdims.size() {
                let index = [&i[..], &k.rdims.unravel(r)].concat();
                rows.push(values(k, &ins, &index, &[], &reduced)?);
            }
        }
        let v = values(k, &ins, &i, &rows, &once)?;
        for (out, node) in out.iter_mut().zip(&k.outputs) {
            out.push(v[*node as usize]);
        }
    }
    Ok(out.iter().map(|o| array::write(o)).collect())
}

/// The values of the requested nodes at one index; a Reduce goes over `rows`, the values at each
/// reduced index.
fn values(k: &Kernel, ins: &[Vec<Scalar>], index: &[usize], rows: &[Vec<Scalar>], wanted: &[bool]) -> Res<Vec<Scalar>> {
    let mut v: Vec<Scalar> = vec![];
    for (id, (d, node)) in k.nodes.iter().enumerate() {
        if !wanted[id] {
            v.push(Scalar::zero(*d));
            continue;
        }
        let x = |o: &u32| v[*o as usize];
        let value = match node {
            Node::Const(s) => *s,
            Node::Index(a) => scalar::convert(Scalar::from_i64(DType::I64, a.at(index.iter().copied())), *d),
            Node::Load(a) => load(a, &ins[a.input as usize], index)?,
            Node::Reduce { kind, of } => {
                let column: Vec<Scalar> = rows.iter().map(|row| row[*of as usize]).collect();
                reduce(*kind, k.dtype(*of), &column, *d)?
            }
            pointwise => function(*d, pointwise, &|o| x(&o))?,
        };
        v.push(value);
    }
    Ok(v)
}

/// The value, of dtype `d`, of a node that is a scalar function of its operands' values.
///
/// # Errors
/// `Invalid` where the function is not defined for their dtypes, or the node is not a function.
pub fn function(d: DType, n: &Node, x: &dyn Fn(NodeId) -> Scalar) -> Res<Scalar> {
    match n {
        Node::Un(f, a) => scalar::un(*f, x(*a)),
        Node::Bin(f, a, b) => scalar::bin(*f, x(*a), x(*b)),
        Node::Select { p, t, f } => Ok(x(if x(*p).is_zero() { *f } else { *t })),
        Node::Convert(a) => Ok(scalar::convert(x(*a), d)),
        Node::Bitcast(a) => Ok(scalar::bitcast(x(*a), d)),
        Node::Round { of, exponent, mantissa } => Ok(scalar::round(x(*of), *exponent, *mantissa)),
        other => Err(Error::Invalid(format!("{other:?} is not a scalar function"))),
    }
}

fn load(a: &Access, input: &[Scalar], index: &[usize]) -> Res<Scalar> {
    let at = |f: &crate::Affine| f.at(index.iter().copied());
    if !a.guards.iter().all(|g| (g.lo..g.hi).contains(&at(&g.at))) {
        return Ok(a.fill);
    }
    let outside = || Error::Invalid(format!("a kernel reads element {} of {}", at(&a.at), input.len()));
    usize::try_from(at(&a.at)).ok().and_then(|i| input.get(i)).copied().ok_or_else(outside)
}

/// All of `x`, elements of dtype `from`, in the order of [`crate::order`]; accumulators have the lane dtype. `to` is the result's dtype.
pub fn reduce(kind: ReduceKind, from: DType, x: &[Scalar], to: DType) -> Res<Scalar> {
    let Some(f) = kind.bin() else {
        return Ok(Scalar::from_i64(to, position_of_extreme(kind, x)? as i64));
    };
    let identity = kind.identity(from).expect("a kind with a function has an identity");
    let failed = std::cell::Cell::new(None);
    let combine = |a: Scalar, b: Scalar| {
        scalar::bin(f, a, b).unwrap_or_else(|e| {
            failed.set(Some(e));
            a
        })
    };
    let sum = order::reduce(x.len(), &|i| lane(x[i]), lane(identity), &combine);
    match failed.take() {
        Some(e) => Err(e),
        None if sum.dtype.is_float() && sum.to_f64().is_nan() => Ok(Scalar::from_f64(to, f64::NAN)),
        None => Ok(scalar::convert(sum, to)),
    }
}

/// `x` at the dtype that accumulators have; bool stays bool, where addition is `or`.
pub fn lane(x: Scalar) -> Scalar {
    if x.dtype == DType::Bool { x } else { scalar::convert(x, x.dtype.lane()) }
}

/// The first nan, else the first of the greatest (or least) elements; 0 where there are none.
fn position_of_extreme(kind: ReduceKind, x: &[Scalar]) -> Res<usize> {
    let is_nan = |s: &Scalar| s.dtype.is_float() && s.to_f64().is_nan();
    if let Some(i) = x.iter().position(is_nan) {
        return Ok(i);
    }
    let better = if kind == ReduceKind::ArgMax { Bin::Gt } else { Bin::Lt };
    let mut best = 0;
    for i in 0..x.len() {
        if !scalar::bin(better, x[i], x[best])?.is_zero() {
            best = i;
        }
    }
    Ok(best)
}
