//! Primitives that a host language defines: a name, an implementation, and rules.
//!
//! ```text
//! p = Primitive("mulsub");  p.def_impl(f);  p.def_abstract_eval(g);  ad.primitive_jvps[p] = ..
//! ```
//!
//! Evaluated, it calls its implementation; staged, it stays an equation; lowered, the implementation is traced and inlined.
//! INVARIANT: two of them are equal if definition and parameters are; the definition decides which parameters are equal.
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Fun, Tan};
use crate::effects::Effects;
use crate::error::{Res, type_err};
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, BodyRules, Op, Rules, Tans};
use crate::param::{Field, ParamList, ParamMap, Params};
use crate::program::Program;
use crate::value::{Value, Values};
use std::any::Any;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Parameters that only their definition can read.
pub type Opaque = Arc<dyn Any + Send + Sync>;

/// The rules that a host language defines for a primitive.
pub trait Definition: Send + Sync {
    fn name(&self) -> &'static str;
    /// Whether its results are a sequence, even where it has one.
    fn multiple(&self) -> bool;
    /// For printing.
    fn params(&self, p: &Opaque) -> ParamList;
    /// Whether the parameters are numbers, names and the like, which refer to nothing else.
    fn plain(&self, p: &Opaque) -> bool;
    fn same(&self, a: &Opaque, b: &Opaque) -> bool;
    fn hash(&self, p: &Opaque) -> u64;
    fn infer(&self, p: &Opaque, x: &[Aval]) -> Res<Avals>;
    fn jvp(&self, p: &Opaque, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)>;
    fn transpose(&self, p: &Opaque, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans>;
    fn batch(&self, p: &Opaque, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)>;
    /// The implementation, traced.
    fn program(&self, p: &Opaque, ins: &[Aval]) -> Res<Arc<Program>>;
}

#[derive(Clone)]
pub struct Foreign {
    pub definition: Arc<dyn Definition>,
    pub opaque: Opaque,
    /// The types that it was bound to: lowering traces the implementation on these.
    pub ins: Vec<Aval>,
    /// The implementation.
    pub implementation: Fun,
}
impl PartialEq for Foreign {
    fn eq(&self, o: &Foreign) -> bool {
        Arc::ptr_eq(&self.definition, &o.definition) && self.definition.same(&self.opaque, &o.opaque)
    }
}
impl Eq for Foreign {}
impl Hash for Foreign {
    fn hash<H: Hasher>(&self, h: &mut H) {
        self.definition.name().hash(h);
        self.definition.hash(&self.opaque).hash(h);
    }
}
impl std::fmt::Debug for Foreign {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(self.definition.name())
    }
}
impl Params for Foreign {
    fn names() -> Vec<&'static str> {
        vec![]
    }
    fn fields(_: &str) -> Vec<Field> {
        vec![]
    }
    fn name(&self) -> &'static str {
        self.definition.name()
    }
    fn params(&self) -> ParamList {
        self.definition.params(&self.opaque)
    }
    fn from_params(name: &str, _: &mut ParamMap) -> Res<Foreign> {
        type_err(format!("{name} is defined by a host language, and text cannot name it"))
    }
}
impl Rules for Foreign {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        self.definition.infer(&self.opaque, x)
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        self.definition.jvp(&self.opaque, cx, x, dx)
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        self.definition.transpose(&self.opaque, cx, x, ct)
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        self.definition.batch(&self.opaque, cx, ax, x, d)
    }
    fn expanded(&self, x: &[Aval]) -> Res<Option<(Arc<Program>, Vec<usize>)>> {
        Ok(Some((self.definition.program(&self.opaque, &self.ins)?, (0..x.len()).collect())))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        let body = self.definition.program(&self.opaque, &self.ins)?;
        b.inline(&body, x)
    }
}
impl BodyRules for Foreign {
    fn split(&self, _: &dyn Cx, rec: &dyn Cx, x: &[Value], _: &[bool]) -> Res<Values> {
        rec.record(&self.clone().into(), x)
    }
    fn dce(&self, _: &[bool]) -> Option<(Op, Vec<bool>, Vec<bool>)> {
        None
    }
    fn means(&self) -> Option<&Fun> {
        Some(&self.implementation)
    }
    fn vary_alike(&self) -> bool {
        true
    }
    fn lift(&self, _: &[Value]) -> Option<(Op, Values)> {
        None
    }
    fn effects(&self) -> Effects {
        Effects::default()
    }
    fn bodies(&self) -> Vec<&Arc<Program>> {
        vec![]
    }
}
