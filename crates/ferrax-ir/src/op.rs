//! The closed list of primitives, and the rules each one states.
//!
//! INVARIANT: everything else about primitives (enum, dispatch, names, parser) is generated from the one list below.
use crate::aval::Aval;
use crate::cut::{Recast, TypedCut};
use crate::cx::{Arg, Axis, Cx, Dim, Fun, Tan};
use crate::dtype::Dtype;
use crate::effects::Effects;
use crate::error::{Error, Res, type_err};
use crate::factors::{Factors, Ties};
use crate::lower::{Graph, TensorId, TensorIds};
use crate::ops::collective::Names;
use crate::ops::shard_map::ManualBody;
use crate::ops::*;
use crate::param::{Field, ParamList, ParamMap, Params};
use crate::parts::Here;
use crate::program::Program;
use crate::support::{Supports, Within};
use crate::typing::{Specs, Sums, Typing};
use crate::value::{Value, Values};
use crate::vary::Vary;
use ferrax_kernel::Dims;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

pub type Avals = SmallVec<[Aval; 1]>;
pub type Tans = SmallVec<[Tan; 2]>;
pub type Axes = SmallVec<[Dim; 2]>;

/// The numbers of a small value, where they are known.
pub type Numbers<'a> = &'a dyn Fn(&Value) -> Option<Vec<i64>>;

/// The rules of every primitive. There are no defaults: "not differentiable" is a visible line.
pub trait Rules {
    /// The types of the outputs, or why the operands do not fit.
    fn infer(&self, x: &[Aval]) -> Res<Avals>;
    /// Outputs, and their tangents for the operands' tangents. `cx` is the trace below.
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)>;
    /// Maps cotangents of the outputs, at least one of which is not zero, to those of the linear
    /// operands.
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans>;
    /// The same function on operands with a batch axis at `d`, and where the outputs have it.
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)>;
    /// The same function on tangents that are zero outside of their supports, with the supports of
    /// its results; `x` are the values without masks applied. `None`: the masks must be applied
    /// first. Optional for a primitive.
    fn within(&self, _cx: &dyn Cx, _x: &[Value], _s: &Supports) -> Res<Within> {
        Ok(None)
    }
    /// If the op only repeats its operand: the result's axis for each axis of the operand.
    fn repeats(&self) -> Option<&Dims> {
        None
    }
    /// The parts of the operands that each device can work on. Optional for a primitive: without it
    /// operands are whole.
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::whole(x, out)
    }
    /// The cuts of results, in types: those of the operands that share a factor with them, unless
    /// the op overrides it.
    fn cuts(&self, t: &Typing) -> Res<Specs> {
        t.by_factors(&self.factors(t.x, t.out))
    }
    /// How it handles operands that are terms of sums over devices. Linear ops accept them; the
    /// others refuse.
    fn sums(&self) -> Sums {
        Sums::Refused
    }
    /// The same on parts of these types, where parameters tell sizes.
    fn local(&self, _x: &[Aval], _out: &[Aval]) -> Option<Op> {
        None
    }
    /// The same with results of this dtype, where a parameter has the results' dtype: what several devices add is rounded once.
    fn wider(&self, _results: Dtype) -> Option<Op> {
        None
    }
    /// The same on a part of operand 0 of which index vectors count: outside of it zeros are read, and nothing is written.
    fn on_rows(&self, _x: &[Aval], _out: &Aval) -> Option<Op> {
        None
    }
    /// The same on an operand 0 that has the rows that windows read, with these paddings of some of its dimensions.
    fn around(&self, _padding: &[(usize, (i64, i64))]) -> Option<Op> {
        None
    }
    /// This device's parts of the results, of parts of the operands cut by these axes along the dimension that its factors call shared; `None` where
    /// whole operands cost less.
    fn shared(&self, _here: &Here, _x: &[Value], _axes: &[u8]) -> Res<Option<Values>> {
        Ok(None)
    }
    /// The numbers of a small result, where those of operands are known.
    fn numbers(&self, _x: &dyn Fn(usize) -> Option<Vec<i64>>, _n: usize) -> Option<Vec<i64>> {
        None
    }
    /// The result by moves of rows, where the numbers of indices are known and most rows are read or written.
    fn placed(&self, _cx: &dyn Cx, _x: &[Value], _numbers: Numbers) -> Res<Option<Value>> {
        Ok(None)
    }
    /// The two as one, and its operands, where operand 0 was made by this op of these.
    fn joined(&self, _made: &Op, _x: &[Value]) -> Option<(Op, Values)> {
        None
    }
    /// The program that runs in its place, and the operands that it takes, where there is one.
    fn expanded(&self, _x: &[Aval]) -> Res<Option<(Arc<Program>, Vec<usize>)>> {
        Ok(None)
    }
    /// The same function in terms of the waist.
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds>;
}

/// Further rules of primitives with bodies (programs or closures).
pub trait BodyRules {
    /// Some operands known, some not: emit the known part to `cx`, record the rest in `rec`.
    fn split(&self, cx: &dyn Cx, rec: &dyn Cx, x: &[Value], unk: &[bool]) -> Res<Values>;
    /// Fewer outputs: the smaller op, which operands it still takes, and which outputs it still has (at least those in `used`).
    fn dce(&self, used: &[bool]) -> Option<(Op, Vec<bool>, Vec<bool>)>;
    /// The op as a program may hold it: closures traced, their captures among the operands.
    fn stage(&self, _cx: &dyn Cx, _x: &[Value]) -> Res<Option<(Op, Values)>> {
        Ok(None)
    }
    /// The function that this op means without transforms (custom_jvp, custom_vjp).
    fn means(&self) -> Option<&Fun> {
        None
    }
    /// Whether its results vary over all that its operands vary over; else its programs' types say it.
    fn vary_alike(&self) -> bool {
        false
    }
    /// Values that a rule's closure captured in a body become operands.
    fn lift(&self, x: &[Value]) -> Option<(Op, Values)>;
    fn effects(&self) -> Effects;
    fn bodies(&self) -> Vec<&Arc<Program>>;
    /// How its bodies go together with operands and results; `None` where another program runs in its place, or nothing can be cut.
    fn ties(&self, _x: &[Aval]) -> Option<Ties> {
        None
    }
    /// The same op with other bodies, of as many operands and results; only called where there are
    /// ties.
    fn with_bodies(&self, _bodies: Vec<Arc<Program>>) -> Option<Op> {
        None
    }
    /// Its body, where that is written for the parts that a device has.
    fn manual(&self) -> Option<ManualBody<'_>> {
        None
    }
}
/// Further rules of primitives with effects but no bodies.
pub trait Effectful {
    fn effects(&self) -> Effects;
    /// The axes over which its results vary, for operands that vary over `x`; `None` if `infer`
    /// determines it.
    fn vary(&self, x: Vary) -> Option<Vary>;
    /// Its effect on sums along the axes of a `shard_map` that it names; `None`: no effect.
    fn recast(&self) -> Option<(Recast, &Names)> {
        None
    }
}

macro_rules! ops {
    (small { $($kind:ident $V:ident($T:ty) $(=> $many:ident)?;)* } large { $($lkind:ident $L:ident($LT:ty) $(=> $lmany:ident)?;)* }) => {
        /// A primitive with its parameters. Large ones are shared, so that equations stay small.
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        pub enum Op { $($V($T),)* $($L(Arc<$LT>),)* }
        impl Op {
    /// The functions of a custom rule, or the programs that they became.
    pub fn functions(&self) -> Vec<&Fun> {
        match self {
            Op::CustomJvp(c) => vec![&c.call_jaxpr, &c.jvp],
            Op::CustomVjp(c) => vec![&c.call_jaxpr, &c.fwd, &c.bwd],
            Op::CustomLin(c) => vec![&c.bwd],
            _ => vec![],
        }
    }
            pub fn rules(&self) -> &dyn Rules { match self { $(Op::$V(p) => p,)* $(Op::$L(p) => &**p,)* } }
            pub fn name(&self) -> &'static str { match self { $(Op::$V(p) => Params::name(p),)* $(Op::$L(p) => Params::name(&**p),)* } }
            pub fn params(&self) -> ParamList { match self { $(Op::$V(p) => Params::params(p),)* $(Op::$L(p) => Params::params(&**p),)* } }
            /// The additional rules, for ops with bodies.
            pub fn body(&self) -> Option<&dyn BodyRules> {
                match self { $(Op::$V(_p) => ops!(@body $kind _p),)* $(Op::$L(_p) => ops!(@body $lkind (&**_p)),)* }
            }
            pub fn effects(&self) -> Effects {
                match self { $(Op::$V(_p) => ops!(@effects $kind _p),)* $(Op::$L(_p) => ops!(@effects $lkind (&**_p)),)* }
            }
            /// Whether no other op shares these parameters.
            pub fn is_sole(&self) -> bool { match self { $(Op::$V(_) => true,)* $(Op::$L(p) => Arc::strong_count(p) == 1,)* } }
            /// The axes over which results vary, for operands that vary over `x`: the same, unless
            /// the op overrides it. `None` if `infer` determines it.
            fn vary(&self, x: Vary) -> Option<Vary> {
                match self { $(Op::$V(_p) => ops!(@vary $kind _p x),)* $(Op::$L(_p) => ops!(@vary $lkind (&**_p) x),)* }
            }
            fn recast(&self) -> Option<(Recast, &Names)> {
                match self { $(Op::$V(_p) => ops!(@recast $kind _p),)* $(Op::$L(_p) => ops!(@recast $lkind (&**_p)),)* }
            }
            /// Whether `effects` is nothing whatever the parameters.
            pub fn pure(&self) -> bool {
                match self { $(Op::$V(_) => ops!(@pure $kind),)* $(Op::$L(_) => ops!(@pure $lkind),)* }
            }
            /// Whether its results are a sequence, even where it has one.
            pub fn multiple(&self) -> bool {
                if let Op::Foreign(f) = self {
                    return f.definition.multiple();
                }
                match self {
                    $(Op::$V(_) => ops!(@multiple $kind $($many)?),)*
                    $(Op::$L(_) => ops!(@multiple $lkind $($lmany)?),)*
                }
            }
            /// Every primitive's name.
            pub fn names() -> Vec<&'static str> {
                let mut v = vec![];
                $(v.extend(<$T as Params>::names());)*
                $(v.extend(<$LT as Params>::names());)*
                v
            }
            fn table() -> &'static HashMap<&'static str, Facts> {
                static TABLE: OnceLock<HashMap<&'static str, Facts>> = OnceLock::new();
                TABLE.get_or_init(|| {
                    let mut t = HashMap::new();
                    $(for name in <$T as Params>::names() {
                        let make: Make = |n, p| <$T as Params>::from_params(n, p).map(Op::from);
                        t.insert(name, Facts { name, multiple: ops!(@multiple $kind $($many)?), fields: <$T as Params>::fields, make });
                    })*
                    $(for name in <$LT as Params>::names() {
                        let make: Make = |n, p| <$LT as Params>::from_params(n, p).map(Op::from);
                        t.insert(name, Facts { name, multiple: ops!(@multiple $lkind $($lmany)?), fields: <$LT as Params>::fields, make });
                    })*
                    t
                })
            }
        }
        $(impl From<$T> for Op { fn from(p: $T) -> Op { Op::$V(p) } })*
        $(impl From<$LT> for Op { fn from(p: $LT) -> Op { Op::$L(Arc::new(p)) } })*
    };
    (@body body $p:tt) => { Some($p as &dyn BodyRules) };
    (@body $kind:ident $p:tt) => { None };
    (@effects body $p:tt) => { BodyRules::effects($p) };
    (@effects effect $p:tt) => { Effectful::effects($p) };
    (@effects first $p:tt) => { Effects::default() };
    (@vary body $p:tt $x:ident) => { if BodyRules::vary_alike($p) { Some($x) } else { None } };
    (@vary effect $p:tt $x:ident) => { Effectful::vary($p, $x) };
    (@vary first $p:tt $x:ident) => { Some($x) };
    (@recast effect $p:tt) => { Effectful::recast($p) };
    (@recast $kind:ident $p:tt) => { None };
    (@multiple body) => { true };
    (@multiple $kind:ident many) => { true };
    (@multiple $kind:ident) => { false };
    (@pure first) => { true };
    (@pure $kind:ident) => { false };
}
type Make = fn(&str, &mut ParamMap) -> Res<Op>;

/// The properties that code outside of a primitive's rules may use.
pub struct Facts {
    pub name: &'static str,
    /// Whether its results are a sequence, even where it has one.
    pub multiple: bool,
    fields: fn(&str) -> Vec<Field>,
    make: Make,
}
impl Facts {
    /// Its parameters, by name.
    pub fn fields(&self) -> Vec<Field> {
        (self.fields)(self.name)
    }
}

impl Op {
    pub fn facts(name: &str) -> Option<&'static Facts> {
        Op::table().get(name)
    }
    /// The op of a name and JAX's parameters.
    pub fn from_name(name: &str, mut p: ParamMap) -> Res<Op> {
        let Some(facts) = Op::facts(name) else { return type_err(format!("no primitive is called {name}")) };
        let op = (facts.make)(name, &mut p).map_err(|e| match e {
            Error::Raised(k, m) => Error::Raised(k, format!("{name} {m}")),
            e => e,
        })?;
        match p.rest() {
            Some(k) => type_err(format!("{name} has no parameter {k}")),
            None => Ok(op),
        }
    }
    /// The types of the results; refused where no memory holds one. So a rule's `infer` may give a shape of any sizes, as long as they are right.
    pub fn results(&self, x: &[Aval]) -> Res<Avals> {
        let mut outs = self.rules().infer(x)?;
        if let Some(vary) = self.vary(x.iter().fold(Vary::NONE, |all, a| all | a.vary)) {
            outs.iter_mut().for_each(|a| a.vary = vary);
        }
        if self.body().is_none() {
            let parted = x.iter().any(|a| !a.cut.is_none());
            let requested = if let Op::Reshard(r) = self { r.dst_sharding } else { TypedCut::NONE };
            outs.iter_mut().for_each(|a| a.cut = requested);
            if parted && !matches!(self, Op::Reshard(_)) {
                crate::typing::results(self.name(), x, &mut outs, |t| {
                    let mut specs = self.rules().cuts(t)?;
                    t.sums(self.rules().sums(), &mut specs)?;
                    Ok(specs)
                })?;
            }
        }
        if let Some((how, axes)) = self.recast() {
            outs.iter_mut().for_each(|a| a.cut = a.cut.recast(a.rank(), how, &axes.0));
        }
        outs.iter().try_for_each(|a| a.shape.checked(a.dtype.size()).map(|_| ()))?;
        Ok(outs)
    }
    pub fn means(&self) -> Option<&Fun> {
        self.body().and_then(|b| b.means())
    }
    pub fn bodies(&self) -> Vec<&Arc<Program>> {
        self.body().map_or(vec![], |b| b.bodies())
    }
    /// For an executor: the ops that run on several devices.
    pub fn spread(&self) -> Option<pmap::Spread<'_>> {
        if let Op::Pmap(p) = self { Some(p.spread()) } else { None }
    }
    /// The program that can replace this op anywhere: that of a `jit` within a `jit`.
    pub fn inlined(&self) -> Option<&Arc<Program>> {
        if let Op::Call(c) = self { Some(&c.jaxpr) } else { None }
    }
    /// Has effects, which happen even if its outputs are unused.
    pub fn has_io(&self) -> bool {
        !self.pure() && self.effects().io
    }
    /// A closure of the host: the values that it captures, batched ones included, are unknown
    /// before it is called.
    pub fn is_closure(&self) -> bool {
        !self.pure() && self.effects().any_axis
    }
    pub fn uses_axis(&self, name: &str) -> bool {
        !self.pure() && self.effects().uses_axis(name)
    }
}

// `first`: first order. `effect`: also implements Effectful. `body`: also implements BodyRules. Small: at most 40 bytes.
// `many`: its results are a sequence, even if there is only one; always so for ops with bodies.
ops! {
    small {
    first Pointwise(pointwise::Pointwise);
    first Select(select::Select);
    first Reshape(reshape::Reshape);
    first Transpose(transpose::Transpose);
    first Reduce(reduce::Reduce);
    first Dot(dot::Dot);
    first Convert(convert::Convert);
    first Pad(pad::Pad);
    first Concatenate(concatenate::Concatenate);
    first Rev(rev::Rev);
    first Squeeze(squeeze::Squeeze);
    first Clamp(clamp::Clamp);
    first Bitcast(bitcast::Bitcast);
    first ReducePrecision(bitcast::ReducePrecision);
    first DynamicSlice(dynamic_slice::DynamicSlice);
    first DynamicUpdateSlice(dynamic_slice::DynamicUpdateSlice);
    first Cumulative(cumulative::Cumulative);
    body Call(call::Call);
    body Cond(cond::Cond);
    first TapeLen(tape::TapeLen);
    first Stack(stack::Stack);
    first Unstack(stack::Unstack) => many;
    first Tile(tile::Tile);
    first TopK(top_k::TopK) => many;
    first Special(special::Special);
    first Cholesky(linalg::factors::Cholesky);
    first TriangularSolve(linalg::factors::TriangularSolve);
    first OptimizationBarrier(barrier::OptimizationBarrier) => many;
    }
    large {
    first BroadcastInDim(broadcast::BroadcastInDim);
    first Slice(slice::Slice);
    first Split(concatenate::Split) => many;
    first DevicePut(device_put::DevicePut);
    first Reshard(reshard::Reshard);
    first ShardingConstraint(sharding_constraint::ShardingConstraint);
    first Iota(iota::Iota);
    first ArgReduce(argreduce::ArgReduce);
    first Gather(gather::Gather);
    first Scatter(scatter::Scatter);
    first Sort(sort::Sort) => many;
    first Conv(conv::Conv);
    first Fft(fft::Fft);
    first ReduceBy(reduce_by::ReduceBy) => many;
    first ReduceWindowBy(reduce_by::ReduceWindowBy) => many;
    first ReduceWindow(reduce_window::ReduceWindow);
    first SelectAndGatherAdd(select_and_gather::SelectAndGatherAdd);
    first SelectAndScatterAdd(select_and_gather::SelectAndScatterAdd);
    first RandomKey(random::RandomKey);
    first RandomMap(random::RandomMap);
    first RandomBits(random::RandomBits);
    first RandomSplit(random::RandomSplit);
    first RandomFoldIn(random::RandomFoldIn);
    first Threefry(rng::Threefry) => many;
    first Philox(rng::Philox) => many;
    first ApproxTopK(top_k::ApproxTopK) => many;
    first RngBitGenerator(rng::RngBitGenerator) => many;
    effect RngUniform(rng::RngUniform);
    first RaggedDot(ragged_dot::RaggedDot);
    effect AllReduce(collective::AllReduce);
    effect AxisIndex(collective::AxisIndex);
    effect AllGather(collective::AllGather);
    effect ReduceScatter(collective::ReduceScatter);
    effect AllToAll(collective::AllToAll);
    effect Permute(collective::Permute);
    effect VaryCast(collective::VaryCast);
    effect Callback(callback::Callback) => many;
    body Pmap(pmap::Pmap);
    body ShardMap(shard_map::ShardMap);
    body Remat(checkpoint::Remat);
    body Loop(loops::Loop);
    body CustomJvp(custom::CustomJvp);
    body CustomVjp(custom::CustomVjp);
    effect CustomLin(custom::CustomLin) => many;
    body Foreign(foreign::Foreign);
    body LinearSolve(linear_solve::LinearSolve);
    first EmptyTape(tape::EmptyTape);
    first CholeskyUpdate(linalg::factors::CholeskyUpdate);
    first TridiagonalSolve(linalg::factors::TridiagonalSolve);
    first Lu(linalg::factors::Lu) => many;
    first PivotsToPermutation(linalg::factors::PivotsToPermutation);
    first SymmetricProduct(linalg::factors::SymmetricProduct);
    first Qr(linalg::orthogonal::Qr) => many;
    first HouseholderProduct(linalg::orthogonal::HouseholderProduct);
    first Ormqr(linalg::orthogonal::Ormqr);
    first Geqrf(linalg::orthogonal::Geqrf) => many;
    first Hessenberg(linalg::orthogonal::Hessenberg) => many;
    first Tridiagonal(linalg::orthogonal::Tridiagonal) => many;
    first Eigh(linalg::spectral::Eigh) => many;
    first Eig(linalg::spectral::Eig) => many;
    first Svd(linalg::spectral::Svd) => many;
    first Schur(linalg::spectral::Schur) => many;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_stay_small() {
        assert!(size_of::<Op>() <= 48, "{}", size_of::<Op>());
        assert!(size_of::<crate::program::Eqn>() <= 96, "{}", size_of::<crate::program::Eqn>());
    }
    /// The parameters of an op are those of its declaration.
    #[test]
    fn fields_are_sorted_and_distinct() {
        for name in Op::names() {
            let facts = Op::facts(name).expect("a primitive");
            let names: Vec<&str> = facts.fields().iter().map(|f| f.name).collect();
            let mut sorted = names.clone();
            sorted.sort_by_key(|k| (*k != "name", *k));
            sorted.dedup();
            assert_eq!(names, sorted, "{name}");
            assert!(facts.fields().iter().all(|f| !f.takes.is_empty()), "{name}");
        }
    }
    #[test]
    fn names_are_distinct() {
        let mut names = Op::names();
        names.sort_unstable();
        let n = names.len();
        names.dedup();
        assert_eq!(names.len(), n);
    }
}
