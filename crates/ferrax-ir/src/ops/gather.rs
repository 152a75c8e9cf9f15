//! gather: for each index vector, a window of the operand. numpy: `x[i]` with integer arrays, `take`, `take_along_axis`.
//!
//! ```text
//! out[p.., w..] = x[starts(p) + w]      starts(p)[start_index_map[j]] = indices[p.., j]
//! ```
//! `p` runs over the axes of `indices` but its last, `w` over `slice_sizes` without the collapsed and batching axes; `offset_dims`
//! gives the positions of the window's axes in the output. Operand axis `operand_batching_dims[j]` goes along with axis
//! `start_indices_batching_dims[j]` of `indices`.
use super::dot::free;
use super::linear_jvp;
use super::scatter::{Scatter, ScatterDims, ScatterKind, first};
use crate::aval::{Aval, Lit};
use crate::cx::{Arg, Axis, Cx, Dim, Tan, int, truth};
use crate::dtype::Dtype;
use crate::error::{Res, type_err, value_err};
use crate::factors::{By, Factors, In, Indexed, Out, Read, Vectors};
use crate::lower::{Graph, TensorId, TensorIds, physical, unit};
use crate::op::{Avals, Axes, Numbers, Op, Rules, Tans};
use crate::ops::pointwise::Pw;
use crate::ops::slice::Slice;
use crate::param::{Param, ParamValue};
use crate::primitive;
use crate::support::{Selector, Support, Supports, Within, within_moved};
use crate::typing::{Specs, Typing};
use crate::value::{Value, Values};
use ferrax_kernel::routine::{self, OutOfBounds, Routine};
use ferrax_kernel::{Affine, Bin, DType, Dims, ReduceKind, Scalar};
use smallvec::smallvec;

const MODES: [(OutOfBounds, &str); 3] = [
    (OutOfBounds::Clip, "CLIP"),
    (OutOfBounds::FillOrDrop, "FILL_OR_DROP"),
    (OutOfBounds::Promise, "PROMISE_IN_BOUNDS"),
];
impl ParamValue for OutOfBounds {
    fn words() -> String {
        "a GatherScatterMode".into()
    }
    fn to_param(&self) -> Param {
        let name = MODES.iter().find(|m| m.0 == *self).map_or("", |m| m.1);
        Param::Enum("GatherScatterMode", name.into())
    }
    fn from_param(p: &Param) -> Option<OutOfBounds> {
        match p {
            Param::Enum(_, s) | Param::Str(s) => {
                let s = s.to_uppercase();
                let s = if s == "FILL" || s == "DROP" { "FILL_OR_DROP" } else { &s };
                MODES.iter().find(|m| m.1 == s).map(|m| m.0)
            }
            Param::None => Some(OutOfBounds::FillOrDrop),
            _ => None,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct GatherDims {
    pub offset_dims: Dims,
    pub collapsed_slice_dims: Dims,
    pub start_index_map: Dims,
    pub operand_batching_dims: Dims,
    pub start_indices_batching_dims: Dims,
}
impl ParamValue for GatherDims {
    fn words() -> String {
        "GatherDimensionNumbers".into()
    }
    fn to_param(&self) -> Param {
        Param::Struct(
            "GatherDimensionNumbers",
            vec![
                ("offset_dims", Param::ints(&self.offset_dims)),
                ("collapsed_slice_dims", Param::ints(&self.collapsed_slice_dims)),
                ("start_index_map", Param::ints(&self.start_index_map)),
                ("operand_batching_dims", Param::ints(&self.operand_batching_dims)),
                ("start_indices_batching_dims", Param::ints(&self.start_indices_batching_dims)),
            ],
        )
    }
    fn from_param(p: &Param) -> Option<GatherDims> {
        let [offset_dims, collapsed_slice_dims, start_index_map, operand_batching_dims, start_indices_batching_dims] =
            five(p)?;
        Some(GatherDims {
            offset_dims,
            collapsed_slice_dims,
            start_index_map,
            operand_batching_dims,
            start_indices_batching_dims,
        })
    }
}
/// Five lists of axes, the last two optional.
pub(super) fn five(p: &Param) -> Option<[Dims; 5]> {
    let mut out: [Dims; 5] = Default::default();
    let fields: Vec<&Param> = match p {
        Param::Struct(_, f) => f.iter().map(|x| &x.1).collect(),
        p => p.items()?.iter().collect(),
    };
    if !(3..=5).contains(&fields.len()) {
        return None;
    }
    for (o, f) in out.iter_mut().zip(fields) {
        *o = Dims::from_param(f)?;
    }
    Some(out)
}
pub(super) fn shift(d: &Dims, by: usize) -> Dims {
    d.iter().map(|k| k + by).collect()
}
/// The axes of `0..rank` that are not in `d`.
pub(super) fn others(rank: usize, d: &[usize]) -> Dims {
    (0..rank).filter(|k| !d.contains(k)).collect()
}

primitive! {
    pub struct Gather = "gather" {
        dimension_numbers: Box<GatherDims>,
        fill_value: Option<Lit>,
        indices_are_sorted: bool,
        mode: OutOfBounds,
        slice_sizes: Dims,
        unique_indices: bool,
    }
}
/// Arrays of indices that devices can bind beside the operand and the result.
const MOST_APART: usize = 4;

impl Gather {
    /// With the windows of a result of this type.
    fn with_windows(&self, operand: &Aval, out: &Aval) -> Gather {
        let (d, mut slice_sizes) = (&*self.dimension_numbers, self.slice_sizes.clone());
        let kept = free(operand.rank(), &d.collapsed_slice_dims, &d.operand_batching_dims);
        kept.iter().zip(d.offset_dims.iter()).for_each(|(k, o)| slice_sizes[*k] = out.shape[*o]);
        Gather { slice_sizes, ..self.clone() }
    }
    fn output(&self, i: &Aval) -> Dims {
        let d = &*self.dimension_numbers;
        let window = self.window();
        let rank = i.rank() - 1 + window.len();
        let (mut p, mut w) = (i.shape.iter(), window.iter());
        (0..rank).map(|k| *if d.offset_dims.contains(&k) { &mut w } else { &mut p }.next().unwrap_or(&1)).collect()
    }
    /// Sizes of the window's axes in the output.
    fn window(&self) -> Dims {
        let d = &*self.dimension_numbers;
        (0..self.slice_sizes.len())
            .filter(|k| !d.collapsed_slice_dims.contains(k) && !d.operand_batching_dims.contains(k))
            .map(|k| self.slice_sizes[k])
            .collect()
    }
    fn fill(&self, d: DType) -> Scalar {
        match self.fill_value.as_ref().and_then(|l| l.scalar()) {
            Some(s) if s.dtype.is_float() => Scalar::from_f64(d, s.to_f64()),
            Some(s) => Scalar::from_i64(d, s.to_i64()),
            None if d.is_float() => Scalar::from_f64(d, f64::NAN),
            None if d == DType::Bool => Scalar::bool(true),
            None if d.is_signed() => ReduceKind::Max.identity(d).unwrap_or(Scalar::zero(d)),
            None => ReduceKind::Min.identity(d).unwrap_or(Scalar::zero(d)),
        }
    }
}
/// Zero as a parameter: in the widest dtype of its kind, as text reads it.
pub fn zero_fill(d: Dtype) -> Lit {
    match d {
        d if d.is_bool() => Lit::from(false),
        d if d.is_int() => Lit::zero(Dtype::I64),
        _ => Lit::zero(Dtype::F64),
    }
}

/// The checks of dimension numbers of gather and scatter, with JAX's messages. `op` is `gather` or
/// `scatter`.
pub(super) struct Check<'a> {
    pub op: &'a str,
    pub operand: &'a Aval,
    pub indices: &'a Aval,
}
impl Check<'_> {
    fn name(&self) -> &'static str {
        if self.op == "gather" { "Gather" } else { "Scatter" }
    }
    pub fn indices(&self) -> Res<()> {
        if !self.indices.dtype.is_int() {
            return value_err("indices must have an integer type");
        }
        if self.indices.rank() == 0 {
            return type_err(format!(
                "{} index leaf dimension must be within [0, rank(indices) + 1). rank(indices) is 0 and {} index leaf dimension is -1.",
                self.name(),
                self.op
            ));
        }
        Ok(())
    }
    /// Each once.
    pub fn distinct(&self, what: &str, d: &Dims) -> Res<()> {
        if (1..d.len()).any(|k| d[..k].contains(&d[k])) {
            return type_err(format!("{what} in {} op must not repeat; got: {d}.", self.op));
        }
        Ok(())
    }
    pub fn sorted(&self, what: &str, d: &Dims) -> Res<()> {
        if d.windows(2).any(|w| w[0] > w[1]) {
            return type_err(format!("{what} in {} op must be sorted; got {d}", self.op));
        }
        self.distinct(what, d)
    }
    pub fn within(&self, what: &str, d: &Dims, rank: usize) -> Res<()> {
        match d.iter().find(|k| **k >= rank) {
            Some(k) => type_err(format!("Invalid {what} set in {} op; valid range is [0, {rank}); got: {k}.", self.op)),
            None => Ok(()),
        }
    }
    pub fn disjoint(&self, what: &str, d: &Dims, batching: &Dims) -> Res<()> {
        if d.iter().any(|k| batching.contains(k)) {
            return type_err(format!(
                "{what} and operand_batching_dims in {} op must be disjoint; got: {d} and {batching}.",
                self.op
            ));
        }
        Ok(())
    }
    /// The operand axis of each entry of an index vector.
    pub fn map(&self, what: &str, map: &Dims) -> Res<()> {
        let last = self.indices.rank() - 1;
        let gather = self.op == "gather";
        if self.indices.shape[last] != map.len() {
            return type_err(format!(
                "{} op has {} elements in {what} and the bound of dimension index_vector_dim={last} of indices is {}. These two numbers must be equal{}",
                self.name(),
                map.len(),
                self.indices.shape[last],
                if gather { "." } else { "" }
            ));
        }
        let rank = self.operand.rank();
        if let Some((at, k)) = map.iter().enumerate().find(|(_, k)| **k >= rank) {
            let mapping = if gather { "" } else { " mapping" };
            return type_err(format!("Invalid {what}{mapping}; domain is [0, {rank}), got: {at}->{k}."));
        }
        self.distinct(what, map)
    }
    /// Axes of operand and indices that go along with each other.
    pub fn batching(&self, what: &str, operand: &Dims, indices: &Dims) -> Res<()> {
        let last = self.indices.rank() - 1;
        self.within(what, indices, last + 1)?;
        self.distinct(what, indices)?;
        if indices.contains(&last) {
            return type_err(format!(
                "{} op cannot have the index vector dimension as a batching dimension; got {indices}.",
                self.name()
            ));
        }
        if operand.len() != indices.len() {
            return type_err(format!(
                "{} op requires equal numbers of operand_batching_dims and {what}, got {operand} and {indices}.",
                self.name()
            ));
        }
        let (a, b) = (self.operand.shape.pick(operand), self.indices.shape.pick(indices));
        if a != b {
            return type_err(format!(
                "{} op requires operand batching dimensions and indices batching dimensions to have the same shape, got {a} and {b}.",
                self.name()
            ));
        }
        Ok(())
    }
}

impl Rules for Gather {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a, i] = x else { return type_err(format!("gather takes 2 operands, got {}", x.len())) };
        let d = &*self.dimension_numbers;
        let check = Check { op: "gather", operand: a, indices: i };
        if a.tape + i.tape > 0 {
            return type_err("gather does not accept a tape");
        }
        check.indices()?;
        check.sorted("offset_dims", &d.offset_dims)?;
        let rank = d.offset_dims.len() + i.rank() - 1;
        if let Some((at, k)) = d.offset_dims.iter().enumerate().find(|(_, k)| **k >= rank) {
            return type_err(format!(
                "Offset dimension {at} in gather op is out of bounds; got {k}, but should have been in [0, {rank})"
            ));
        }
        check.map("start_index_map", &d.start_index_map)?;
        for (what, dims) in
            [("collapsed_slice_dims", &d.collapsed_slice_dims), ("operand_batching_dims", &d.operand_batching_dims)]
        {
            check.sorted(what, dims)?;
            check.within(what, dims, a.rank())?;
        }
        check.disjoint("collapsed_slice_dims", &d.collapsed_slice_dims, &d.operand_batching_dims)?;
        check.disjoint("start_index_map", &d.start_index_map, &d.operand_batching_dims)?;
        check.batching("start_indices_batching_dims", &d.operand_batching_dims, &d.start_indices_batching_dims)?;
        if self.slice_sizes.len() != a.rank() {
            return type_err(format!(
                "Gather op must have one slice size for every input dimension; got: len(slice_sizes)={}, input_shape.rank={}",
                self.slice_sizes.len(),
                a.rank()
            ));
        }
        if d.offset_dims.len() != self.window().len() {
            return type_err(format!(
                "All components of the offset index in a gather op must either be a offset dimension or explicitly collapsed/batching; got len(slice_sizes)={}, output_slice_sizes={}, collapsed_slice_dims={}, operand_batching_dims={}.",
                self.slice_sizes.len(),
                d.offset_dims,
                d.collapsed_slice_dims,
                d.operand_batching_dims
            ));
        }
        if let Some(k) = (0..a.rank()).find(|k| self.slice_sizes[*k] > a.shape[*k]) {
            return type_err(format!(
                "Slice size at index {k} in gather op is out of range, must be within [0, {} + 1), got {}.",
                a.shape[k], self.slice_sizes[k]
            ));
        }
        for (does, dims) in
            [("collapse slice dims", &d.collapsed_slice_dims), ("have operand batching dims", &d.operand_batching_dims)]
        {
            if let Some((at, k)) = dims.iter().enumerate().find(|(_, k)| self.slice_sizes[**k] > 1) {
                return type_err(format!(
                    "Gather op can only {does} with bound 1, but bound is {} for index {k} at position {at}.",
                    self.slice_sizes[*k]
                ));
            }
        }
        Ok(smallvec![a.with_shape(self.output(i))])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        // An index outside reads a constant, whose tangent is zero.
        let y = cx.bind(&self.clone().into(), x)?;
        if dx[0].is_none() || self.mode != OutOfBounds::FillOrDrop {
            return Ok((y, linear_jvp(&self.clone().into(), cx, x, dx)?.1));
        }
        let zero = Gather { fill_value: Some(zero_fill(y[0].dtype())), ..self.clone() };
        Ok((y, linear_jvp(&zero.into(), cx, x, dx)?.1))
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let (Some(ct), Arg::Linear(a)) = (&ct[0], &x[0]) else { return Ok(smallvec![None, None]) };
        let d = &*self.dimension_numbers;
        let add = Scatter {
            kind: ScatterKind::Add,
            dimension_numbers: Box::new(ScatterDims {
                update_window_dims: d.offset_dims.clone(),
                inserted_window_dims: d.collapsed_slice_dims.clone(),
                scatter_dims_to_operand_dims: d.start_index_map.clone(),
                operand_batching_dims: d.operand_batching_dims.clone(),
                scatter_indices_batching_dims: d.start_indices_batching_dims.clone(),
            }),
            indices_are_sorted: self.indices_are_sorted,
            // the forward pass clamps indices that the caller promised to be in bounds: so does its
            // transpose
            mode: if self.mode == OutOfBounds::Promise { OutOfBounds::Clip } else { self.mode },
            unique_indices: self.unique_indices,
        };
        let (zeros, index) = (cx.zeros(&a.strong())?, x[1].value()?.clone());
        let (_, support) = cx.bare(ct);
        let y = cx.bind1(add.clone(), &[zeros, index.clone(), ct.clone()])?;
        if support.is_everywhere() {
            return Ok(smallvec![Some(y), None]);
        }
        // an operand element that only masked elements read has no cotangent
        let (most, full, a) = (add.largest(), Dims::new(ct.shape()), a.with_dtype(Dtype::I32));
        let read = Selector::mask(&a.shape.clone(), move |cx| {
            let mask = cx.convert(&cx.stretch(&support.mask(cx, &full)?, &full)?, Dtype::I32)?;
            let found = cx.bind1(most.clone(), &[cx.zeros(&a)?, index.clone(), mask])?;
            cx.pw2(Pw::Gt, &found, &int(Dtype::I32, 0))
        });
        let (y, _) = cx.bare(&y);
        Ok(smallvec![Some(cx.supported(y, Support::masked_already(read))?), None])
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let n = &*self.dimension_numbers;
        let up = |v: &Dims| shift(v, 1);
        let (operand, indices) = (cx.to_front(&x[0], d[0])?, cx.to_front(&x[1], d[1])?);
        let (o, i) = (d[0].is_some() as usize, d[1].is_some() as usize);
        let mut dims = GatherDims {
            offset_dims: if i == 1 { up(&n.offset_dims) } else { Dims::new(&[0]).concat(&up(&n.offset_dims)) },
            collapsed_slice_dims: shift(&n.collapsed_slice_dims, o),
            start_index_map: shift(&n.start_index_map, o),
            operand_batching_dims: shift(&n.operand_batching_dims, o),
            start_indices_batching_dims: shift(&n.start_indices_batching_dims, i),
        };
        let mut slice_sizes = self.slice_sizes.clone();
        match (o, i) {
            (1, 1) => {
                dims.operand_batching_dims = dims.operand_batching_dims.insert(0, 0);
                dims.start_indices_batching_dims = dims.start_indices_batching_dims.insert(0, 0);
                slice_sizes = slice_sizes.insert(0, 1.min(ax.n));
            }
            (1, _) => slice_sizes = slice_sizes.insert(0, ax.n),
            _ => (),
        }
        let op = Gather { dimension_numbers: Box::new(dims), slice_sizes, ..self.clone() };
        Ok((cx.bind(&op.into(), &[operand, indices])?, smallvec![Some(0)]))
    }
    /// An index out of bounds reads nothing, which is a mask too; the gather has applied it.
    fn within(&self, cx: &dyn Cx, x: &[Value], s: &Supports) -> Res<Within> {
        let all: Vec<usize> = (0..x[0].rank()).collect();
        let nothing = self.mode == OutOfBounds::FillOrDrop && self.fill_value.as_ref().is_some_and(Lit::is_zero);
        if !nothing && self.mode == OutOfBounds::FillOrDrop {
            return Ok(None);
        }
        let Some((y, s)) = within_moved(cx, &self.clone().into(), x, s, &all)? else { return Ok(None) };
        if !nothing {
            return Ok(Some((y, s)));
        }
        let mask = Gather { fill_value: Some(Lit::from(false)), ..self.clone() };
        let (shape, index) = (Dims::new(x[0].shape()), x[1].clone());
        let inside = Support::masked_already(Selector::mask(&Dims::new(y[0].shape()), move |cx| {
            cx.bind1(mask.clone(), &[cx.broadcast(&truth(true), &shape, &[])?, index.clone()])
        }));
        Ok(Some((y, s.into_iter().map(|s| s.map(|s| s.and(&inside))).collect())))
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        let mut f = Factors { addresses: true, ..Factors::whole(x, out) };
        let d = &*self.dimension_numbers;
        let (operand, indices) = (&x[0], &x[1]);
        let batch = free(out[0].rank(), &d.offset_dims, &[]);
        for k in 0..indices.rank() - 1 {
            let beside = d.start_indices_batching_dims.iter().position(|b| *b == k);
            let dims =
                [In(1, k), Out(0, batch[k])].into_iter().chain(beside.map(|j| In(0, d.operand_batching_dims[j])));
            f.link(indices.shape[k], &dims.collect::<Vec<_>>());
        }
        // axes that every window contains whole
        let kept = free(operand.rank(), &d.collapsed_slice_dims, &d.operand_batching_dims);
        for (k, o) in kept.iter().zip(d.offset_dims.iter()) {
            if self.slice_sizes[*k] == operand.shape[*k] && !d.start_index_map.contains(k) {
                f.link(operand.shape[*k], &[In(0, *k), Out(0, *o)]);
            }
        }
        let fills = self.mode == OutOfBounds::FillOrDrop;
        let fill = out[0].dtype.num().filter(|_| fills).map(|d| Lit::new(self.fill(d), false));
        if fill.is_some() != fills {
            return f;
        }
        for (component, dim) in d.start_index_map.iter().copied().enumerate().filter(|i| self.slice_sizes[i.1] == 1) {
            let windows = d.start_index_map.iter().map(|k| (*k, self.slice_sizes[*k])).collect();
            let read = Some(Read { fill, batch: batch.clone() });
            f.indexed.push(Indexed { dim, by: By::Vectors(Vectors { component, windows, clamped: !fills, read }) });
        }
        f
    }
    fn placed(&self, cx: &dyn Cx, x: &[Value], numbers: Numbers) -> Res<Option<Value>> {
        let (d, w) = (&*self.dimension_numbers, &self.slice_sizes);
        let operand = x[0].shape();
        let most = w.size().saturating_mul(4) >= Dims::new(operand).size();
        let Some(numbers) = numbers(&x[1]).filter(|_| x[1].rank() == 1 && most) else { return Ok(None) };
        let Some(start_indices) = first(&numbers, &d.start_index_map, operand, w, self.mode) else { return Ok(None) };
        let limit_indices = start_indices.iter().zip(w.iter()).map(|(s, n)| s + n).collect();
        let y = cx.bind1(Slice { start_indices, limit_indices, strides: None }, &x[..1])?;
        cx.reshape(&y, &w.without(&d.collapsed_slice_dims)).map(Some)
    }
    fn local(&self, x: &[Aval], out: &[Aval]) -> Option<Op> {
        Some(self.with_windows(&x[0], &out[0]).into())
    }
    fn on_rows(&self, x: &[Aval], out: &Aval) -> Option<Op> {
        let fill_value = Some(zero_fill(out.dtype));
        let own = self.with_windows(&x[0], out);
        Some(Gather { mode: OutOfBounds::FillOrDrop, fill_value, indices_are_sorted: false, ..own }.into())
    }
    fn cuts(&self, t: &Typing) -> Res<Specs> {
        let (d, indices) = (&*self.dimension_numbers, &t.specs[1]);
        let sliced = d
            .start_index_map
            .iter()
            .any(|k| self.slice_sizes[*k] != t.x[0].shape[*k] && !t.specs[0].dims[*k].is_empty());
        let batch = d.operand_batching_dims.iter().zip(d.start_indices_batching_dims.iter());
        let differ = batch.clone().any(|(o, i)| {
            let (o, i) = (&t.specs[0].dims[*o], &indices.dims[*i]);
            !o.is_empty() && !i.is_empty() && o != i
        });
        let beside = |k: &usize| !d.start_indices_batching_dims.contains(k) && !indices.dims[*k].is_empty();
        if sliced || differ || (0..indices.dims.len()).any(|k| beside(&k)) {
            t.refuse(|| {
                format!(
                    "Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for the gather indexing as out sharding could not be \
                     resolved unambiguously (or would require collectives on inputs). Got operand={}, indices={}",
                    t.type_text(0),
                    t.type_text(1)
                )
            })?;
        }
        let mut made = t.by_factors(&self.factors(t.x, t.out))?;
        let kept = free(t.x[0].rank(), &d.collapsed_slice_dims, &d.operand_batching_dims);
        for (k, o) in kept.iter().zip(d.offset_dims.iter()) {
            if self.slice_sizes[*k] == t.x[0].shape[*k] {
                made[0].dims[*o] = t.specs[0].dims[*k].clone();
            }
        }
        Ok(made)
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let d = &*self.dimension_numbers;
        let dtype = physical(&out[0]).dtype;
        // index vectors interleaved from a few arrays are read from these
        let columns = b.columns(x[1]).filter(|c| c.len() <= MOST_APART);
        // with the axis of an array of pairs, which each window has whole
        let also = |d: &Dims, pairs: bool, n: usize| if pairs { d.insert(d.len(), n) } else { d.clone() };
        let r = |b: &Graph, v: TensorId, fill: Scalar, pairs: bool| routine::Gather {
            operand: b.shape(v),
            indices: b.shape(x[1]),
            slice_sizes: also(&self.slice_sizes, pairs, 2),
            offset_dims: also(&d.offset_dims, pairs, out[0].rank()),
            collapsed_slice_dims: d.collapsed_slice_dims.clone(),
            start_index_map: d.start_index_map.clone(),
            operand_batching_dims: d.operand_batching_dims.clone(),
            start_indices_batching_dims: d.start_indices_batching_dims.clone(),
            mode: self.mode,
            fill,
            dtype,
            index_dtype: b.dtype(x[1]),
            out: also(&out[0].shape, pairs, 2),
            apart: columns.is_some(),
        };
        let one = |b: &mut Graph, v: TensorId, fill: Scalar, pairs: bool| {
            let indices = columns.as_deref().unwrap_or(&x[1..]);
            let ins: TensorIds = std::iter::once(v).chain(indices.iter().copied()).collect();
            let g = r(b, v, fill, pairs);
            let shape = g.out.clone();
            b.routine(Routine::Gather(g), &ins, &[shape])[0]
        };
        let fill = self.fill(dtype);
        // the filler of complex numbers is a real one
        let second = if out[0].dtype.is_complex() { Scalar::zero(dtype) } else { fill };
        let pairs = b.in_pairs(x[0]);
        Ok(smallvec![match (pairs, b.parts(x[0])) {
            (Some(pairs), _) => {
                let y = one(b, pairs, fill, true);
                let y = b.unzip(y);
                match b.parts(y).filter(|_| self.mode == OutOfBounds::FillOrDrop && fill != second) {
                    Some((p, q)) => {
                        let inside = self.inside(b, &b.shape(x[0]), x[1], &out[0].shape);
                        let second = b.constant(second, out[0].shape.clone());
                        let q = b.select(inside, q, second);
                        b.pair(p, q)
                    }
                    None => y,
                }
            }
            (None, Some((p, q))) => {
                let (p, q) = (one(b, p, fill, false), one(b, q, second, false));
                b.pair(p, q)
            }
            (None, None) => one(b, x[0], fill, false),
        }])
    }
}

impl Gather {
    /// Where an element of the result comes from a window that lies inside the operand.
    fn inside(&self, b: &mut Graph, operand: &Dims, indices: TensorId, out: &Dims) -> TensorId {
        let (d, dtype, rank) = (&*self.dimension_numbers, b.dtype(indices), b.rank(indices) - 1);
        let positions = b.shape(indices).remove(rank);
        let mut all = b.constant(Scalar::bool(true), positions.clone());
        for (j, axis) in d.start_index_map.iter().enumerate() {
            let map: Vec<Affine> = (0..rank).map(unit).chain([Affine::constant(j as i64)]).collect();
            let index = b.view(indices, positions.clone(), &map);
            let last = (operand[*axis] - self.slice_sizes[*axis]) as i64;
            let last = if dtype.size() < 8 { last.min(dtype.greatest()) } else { last };
            for (f, bound) in [(Bin::Ge, 0), (Bin::Le, last)] {
                let bound = b.constant(Scalar::from_i64(dtype, bound), positions.clone());
                let holds = b.bin(f, index, bound);
                all = b.bin(Bin::And, all, holds);
            }
        }
        b.broadcast(all, out.clone(), &free(out.len(), &d.offset_dims, &[]))
    }
}

impl ParamValue for Lit {
    fn words() -> String {
        "a number".into()
    }
    fn to_param(&self) -> Param {
        match self.scalar() {
            Some(s) if s.dtype == DType::Bool => Param::Bool(s.bits != 0),
            Some(s) if s.dtype.is_int() => Param::Int(s.to_i64()),
            _ => Param::Float(self.parts().0),
        }
    }
    fn from_param(p: &Param) -> Option<Lit> {
        match p {
            Param::Bool(x) => Some(Lit::from(*x)),
            Param::Int(x) => Some(Lit::from_i64(Dtype::I64, *x)),
            Param::Float(x) => Some(Lit::from_f64(Dtype::F64, *x)),
            _ => None,
        }
    }
}

/// Reads `x[.., index[..], ..]` along one axis, all other axes going along: numpy's `take_along_axis`. `index` has the shape of the result.
pub fn take_along(cx: &dyn Cx, x: &Value, index: &Value, axis: usize) -> Res<Value> {
    let rank = x.rank();
    if index.shape().contains(&0) && index.shape() == x.shape() {
        return Ok(x.clone()); // nothing is read, and an axis of size 0 has no window of size 1
    }
    let rest = others(rank, &[axis]);
    let dims = GatherDims {
        collapsed_slice_dims: [axis].into(),
        start_index_map: [axis].into(),
        operand_batching_dims: rest.clone(),
        start_indices_batching_dims: rest,
        ..GatherDims::default()
    };
    let op = Gather {
        dimension_numbers: Box::new(dims),
        fill_value: None,
        indices_are_sorted: false,
        mode: OutOfBounds::Promise,
        slice_sizes: (0..rank).map(|k| 1.min(x.shape()[k])).collect(),
        unique_indices: false,
    };
    let shape = Dims::new(index.shape());
    let index = cx.reshape(index, &shape.insert(rank, 1))?;
    cx.bind1(op, &[x.clone(), index])
}
