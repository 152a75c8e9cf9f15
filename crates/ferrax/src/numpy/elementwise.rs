//! Pointwise functions on operands whose dtypes and shapes promote and broadcast.
//!
//! INVARIANT: emits at most one conversion and one change of rank per operand, then the primitive.
use super::promotion::{Promotion, Rank, convert, one, result_type, to_inexact};
use ferrax_ir::aval::Lit;
use ferrax_ir::cx::bind;
use ferrax_ir::dtype::Dtype;
use ferrax_ir::error::{Error, Res};
use ferrax_ir::op::Op;
use ferrax_ir::ops::broadcast::BroadcastInDim;
use ferrax_ir::ops::pointwise::{self, Pointwise, Pw};
use ferrax_ir::ops::select::Select;
use ferrax_ir::value::{Value, Values};
use ferrax_kernel::Dims;
use smallvec::SmallVec;

/// The shape that operands of these shapes are repeated to.
pub fn broadcast_shapes<'a>(shapes: impl Iterator<Item = &'a [usize]> + Clone) -> Res<Dims> {
    let rank = shapes.clone().map(<[usize]>::len).max().unwrap_or(0);
    let mut out = Dims::new(&vec![1; rank]);
    for s in shapes.clone() {
        let at = rank - s.len();
        for (i, n) in s.iter().enumerate() {
            if *n != 1 && out[at + i] != *n {
                if out[at + i] != 1 {
                    let all = shapes.map(python_shape).collect::<Vec<_>>();
                    return Err(Error::value(format!(
                        "Incompatible shapes for broadcasting: shapes=[{}]",
                        all.join(", ")
                    )));
                }
                out[at + i] = *n;
            }
        }
    }
    Ok(out)
}
/// As Python prints a tuple.
pub fn python_shape(s: &[usize]) -> String {
    let items = s.iter().map(|n| n.to_string()).collect::<Vec<_>>();
    if let [one] = &items[..] { format!("({one},)") } else { format!("({})", items.join(", ")) }
}

/// `x` repeated to `shape`, by numpy's rule.
pub fn broadcast_to(x: &Value, shape: &Dims) -> Res<Value> {
    let s = x.shape();
    if *s == **shape {
        return Ok(x.clone());
    }
    let fits = s.len() <= shape.len() && s.iter().rev().zip(shape.iter().rev()).all(|(a, b)| a == b || *a == 1);
    if !fits {
        return Err(Error::value(format!(
            "Incompatible shapes for broadcasting: {} and requested shape {}",
            python_shape(s),
            python_shape(shape)
        )));
    }
    // axes of size 1 that grow are dropped first: broadcast_in_dim then names the remaining axes
    let at = shape.len() - s.len();
    let dims: Dims = (0..s.len()).map(|i| at + i).collect();
    one(bind(
        &BroadcastInDim { broadcast_dimensions: dims, shape: shape.clone().into() }.into(),
        std::slice::from_ref(x),
    )?)
}

/// Ranks made equal, but for rank 0, which every primitive repeats by itself. `name` words the complaint.
pub fn promote_shapes(name: &str, mut xs: Values, p: Promotion, warn: &mut dyn FnMut(String)) -> Res<Values> {
    let rank = xs[0].rank();
    if xs.iter().all(|x| x.shape() == xs[0].shape()) {
        return Ok(xs);
    }
    // equal ranks are for the primitive to judge, in its own words
    if xs.iter().all(|x| x.rank() == rank || x.rank() == 0) || xs.iter().filter(|x| x.rank() > 0).count() < 2 {
        return Ok(xs);
    }
    broadcast_shapes(xs.iter().map(Value::shape))?;
    let high = xs.iter().map(Value::rank).max().unwrap_or(0);
    if xs.iter().any(|x| x.rank() > 0 && x.rank() < high) && p.rank != Rank::Allow {
        let shapes = xs.iter().map(|x| python_shape(x.shape())).collect::<Vec<_>>().join(" ");
        match p.rank {
            Rank::Raise => {
                return Err(Error::value(format!(
                    "Operands could not be broadcast together for {name} on shapes {shapes} and with the config option jax_numpy_rank_promotion='raise'. \
                     For more information, see https://docs.jax.dev/en/latest/rank_promotion_warning.html."
                )));
            }
            _ => warn(format!(
                "Following NumPy automatic rank promotion for {name} on shapes {shapes}. Set the jax_numpy_rank_promotion config option to 'allow' \
                 to disable this warning; for more information, see https://docs.jax.dev/en/latest/rank_promotion_warning.html."
            )),
        }
    }
    for x in xs.iter_mut().filter(|x| x.rank() > 0) {
        if x.rank() < high {
            let at = high - x.rank();
            let shape: Dims = std::iter::repeat_n(1, at).chain(x.shape().iter().copied()).collect();
            let dims: Dims = (at..high).collect();
            *x = one(bind(
                &BroadcastInDim { broadcast_dimensions: dims, shape: shape.into() }.into(),
                std::slice::from_ref(x),
            )?)?;
        }
    }
    Ok(xs)
}

/// The conversion of a function's operands before promotion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coercion {
    /// Nothing beyond promotion to a common dtype.
    Any,
    /// Integers and booleans become floats: `sin`, `/`.
    Inexact,
    /// `add` of booleans is `or`, `mul` of booleans is `and`.
    Arithmetic,
    /// Booleans become int32.
    Number,
}

/// A product of numbers and an array of bools selects the numbers where it is true, and 0
/// elsewhere: programs mask infinite and nan elements so. `None` if there is no such array, or
/// shapes do not fit, which the primitive reports.
fn chosen(xs: &[Value], of: (Dtype, bool), p: Promotion, warn: &mut dyn FnMut(String)) -> Res<Option<Value>> {
    let is_mask = |x: &Value| x.dtype() == Dtype::BOOL && !matches!(x, Value::Lit(_));
    let (mask, numbers) = match xs {
        [m, x] | [x, m] if is_mask(m) => (m, x),
        _ => return Ok(None),
    };
    let Ok(shape) = broadcast_shapes([mask.shape(), numbers.shape()].into_iter()) else { return Ok(None) };
    let mut xs = promote_shapes("mul", [mask.clone(), convert(numbers, of.0, of.1)?].into_iter().collect(), p, warn)?;
    for x in xs.iter_mut().filter(|x| x.rank() > 0) {
        *x = broadcast_to(x, &shape)?;
    }
    let zero = convert(&Value::Lit(Lit::zero(of.0)), of.0, of.1)?;
    one(bind(&Select {}.into(), &[xs[0].clone(), zero, xs[1].clone()])?).map(Some)
}

/// The conversion of dtypes for a pointwise primitive under its numpy name.
pub fn coercion(f: Pw) -> Coercion {
    match f {
        Pw::Add | Pw::Mul => Coercion::Arithmetic,
        Pw::Square | Pw::ShiftLeft | Pw::ShiftRightLogical | Pw::ShiftRightArithmetic => Coercion::Number,
        Pw::Floor | Pw::Ceil | Pw::IsFinite => Coercion::Any,
        f if matches!(f.row().domain, pointwise::Domain::Float | pointwise::Domain::Inexact) => Coercion::Inexact,
        _ => Coercion::Any,
    }
}

/// numpy's name of a function of two operands, where the primitive has another.
fn ufunc(f: Pw) -> &'static str {
    match f {
        Pw::Sub => "subtract",
        Pw::Mul => "multiply",
        Pw::Eq => "equal",
        Pw::Ne => "not_equal",
        Pw::Lt => "less",
        Pw::Le => "less_equal",
        Pw::Gt => "greater",
        Pw::Ge => "greater_equal",
        Pw::Max => "maximum",
        Pw::Min => "minimum",
        Pw::Rem => "remainder",
        Pw::And => "bitwise_and",
        Pw::Or => "bitwise_or",
        Pw::Xor => "bitwise_xor",
        Pw::ShiftLeft => "left_shift",
        Pw::ShiftRightLogical | Pw::ShiftRightArithmetic => "right_shift",
        f => f.row().name,
    }
}
/// Random keys have no dtype in common with numbers, and none that is inexact.
fn refuse_keys(f: Pw, coercion: Coercion, kinds: &[(Dtype, bool)]) -> Res<()> {
    let Some((key, _)) = kinds.iter().find(|k| k.0.is_key()) else { return Ok(()) };
    if kinds.iter().any(|k| k.0 != *key) {
        let all: Vec<&str> = kinds.iter().map(|k| k.0.long()).collect();
        return Err(Error::type_error(format!("{} does not accept dtypes {}.", ufunc(f), all.join(", "))));
    }
    if coercion == Coercion::Inexact {
        return Err(Error::type_error(format!("Cannot interpret '{}' as a data type", key.long())));
    }
    Ok(())
}

/// `f` of operands of any dtypes and shapes.
pub fn elementwise(f: Pw, xs: Values, p: Promotion, warn: &mut dyn FnMut(String)) -> Res<Value> {
    elementwise_in(f, coercion(f), xs, p, warn)
}
/// The same with the coercion given: `/` is `div` of floats, though `div` takes integers too.
pub fn elementwise_in(
    mut f: Pw,
    coercion: Coercion,
    xs: Values,
    p: Promotion,
    warn: &mut dyn FnMut(String),
) -> Res<Value> {
    let (d0, w0) = (xs[0].dtype(), xs[0].weak());
    if xs.iter().any(|x| x.dtype() == Dtype::Float0) {
        return Err(Error::type_error(format!(
            "Called {} with a float0 array. float0s do not support any operations by design because they are not compatible with non-trivial \
             vector spaces. No implicit dtype conversion is done. You can use np.zeros_like(arr, dtype=np.float) to cast a float0 array to a regular \
             zeros array. \nIf you didn't expect to get a float0 you might have accidentally taken a gradient with respect to an integer argument.",
            f.row().name
        )));
    }
    let ready = xs[1..].iter().all(|x| x.dtype() == d0 && x.weak() == w0 && x.shape() == xs[0].shape());
    let fits = match coercion {
        Coercion::Inexact => d0.is_inexact(),
        Coercion::Number => d0 != Dtype::BOOL,
        Coercion::Any | Coercion::Arithmetic => true,
    };
    let xs = if ready && fits {
        xs
    } else {
        let kinds: SmallVec<[(Dtype, bool); 2]> = xs.iter().map(|x| (x.dtype(), x.weak())).collect();
        refuse_keys(f, coercion, &kinds)?;
        let (mut d, weak) = result_type(&kinds, p)?;
        match coercion {
            Coercion::Inexact => d = to_inexact(d, p),
            Coercion::Number if d == Dtype::BOOL => d = Dtype::I32,
            _ => {}
        }
        if f == Pw::Mul
            && d.is_inexact()
            && let Some(out) = chosen(&xs, (d, weak), p, warn)?
        {
            return Ok(out);
        }
        let xs: Values = if xs.len() == 1 && xs[0].dtype() == d {
            xs
        } else {
            xs.iter().map(|x| convert(x, d, weak)).collect::<Res<_>>()?
        };
        promote_shapes(f.row().name, xs, p, warn)?
    };
    if coercion == Coercion::Arithmetic && xs[0].dtype() == Dtype::BOOL {
        f = if f == Pw::Add { Pw::Or } else { Pw::And };
    }
    let apply = |f: Pw, xs: &[Value]| one(bind(&Op::Pointwise(Pointwise { f, y: 0 }), xs)?);
    if xs[0].dtype().is_complex() && matches!(f, Pw::Lt | Pw::Le | Pw::Gt | Pw::Ge) {
        // by real part, equal ones by imaginary part
        let part = |part: Pw| xs.iter().map(|x| apply(part, std::slice::from_ref(x))).collect::<Res<Values>>();
        let (re, im) = (part(Pw::Real)?, part(Pw::Imag)?);
        let (tie, by_re, by_im) = (apply(Pw::Eq, &re)?, apply(f, &re)?, apply(f, &im)?);
        return one(bind(&Select {}.into(), &[tie, by_re, by_im])?);
    }
    apply(f, &xs)
}
