//! One view of a primitive's parameters, shared by printer, parser, `eqn.params` and `bind(name, **params)`.
//!
//! An op struct's fields *are* its JAX parameters, by name; `primitive!` declares both at once:
//!
//! ```text
//! primitive! {
//!     /// `out[j..] = x` with operand axis k at `broadcast_dimensions[k]`.
//!     pub struct BroadcastInDim = "broadcast_in_dim" {
//!         broadcast_dimensions: Dims = nonempty,     // shown in text unless empty, zero, false or None
//!         shape: Dims = hidden,                      // never shown: the output's type says it
//!     } always_none { sharding = hidden }            // parameters JAX has and this system always leaves at None
//! }
//! ```
//!
//! INVARIANT: parameters are listed in alphabetical order, `name` first, as JAX prints them.
use crate::aval::Aval;
use crate::cx::Fun;
use crate::dtype::Dtype;
use crate::error::{Error, Res, type_err};
use crate::ops::callback::Callable;
use crate::ops::checkpoint::Policy;
use crate::program::Program;
use ferrax_kernel::Dims;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub enum Param {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(Arc<str>),
    Dtype(Dtype),
    /// One of a named list of choices: (type, name), e.g. `GatherScatterMode.CLIP`.
    Enum(&'static str, Arc<str>),
    Tuple(Vec<Param>),
    /// A record: `GatherDimensionNumbers(offset_dims=(), ..)`.
    Struct(&'static str, Vec<(&'static str, Param)>),
    /// As a tuple, in square brackets.
    List(Vec<Param>),
    Prog(Arc<Program>),
    Fun(Fun),
    Aval(Aval),
    Policy(Policy),
    /// A function of the host.
    Host(Callable),
}

/// Whether text shows a parameter.
#[derive(Clone, Copy, PartialEq, Debug)]
#[allow(non_camel_case_types)]
pub enum Show {
    always,
    nonempty,
    hidden,
}
pub type ParamList = Vec<(&'static str, Param, Show)>;

/// One parameter, as its primitive declares it.
#[derive(Clone, PartialEq, Debug)]
pub struct Field {
    pub name: &'static str,
    /// A description of the accepted values.
    pub takes: String,
    pub show: Show,
}
impl Field {
    pub fn of<T: ParamValue>(name: &'static str, show: Show) -> Field {
        Field { name, takes: T::words(), show }
    }
    /// A parameter that JAX has and this system always leaves at None.
    pub fn none(name: &'static str, show: Show) -> Field {
        Field { name, takes: "None".into(), show }
    }
}

impl Param {
    pub fn ints(v: &[usize]) -> Param {
        Param::Tuple(v.iter().map(|i| Param::Int(*i as i64)).collect())
    }
    pub fn is_empty(&self) -> bool {
        match self {
            Param::None | Param::Bool(false) | Param::Int(0) => true,
            Param::Tuple(v) | Param::List(v) => v.is_empty(),
            Param::Str(s) => s.is_empty(),
            _ => false,
        }
    }
    pub fn items(&self) -> Option<&[Param]> {
        match self {
            Param::Tuple(v) | Param::List(v) => Some(v),
            _ => None,
        }
    }
}

/// A type that can be a field of an op.
pub trait ParamValue: Sized {
    /// A description of the type, for error messages and signatures: `a tuple of nonnegative
    /// integers`.
    fn words() -> String;
    fn to_param(&self) -> Param;
    fn from_param(p: &Param) -> Option<Self>;
    /// The value where the text leaves it out; the declared outputs may say it.
    fn missing(_outs: &[Aval]) -> Option<Self> {
        None
    }
}

/// Parameters that are read for an op, from text or from `bind`.
#[derive(Default, Debug)]
pub struct ParamMap {
    map: Vec<(String, Param)>,
    /// The types of outputs that a program's text declares; empty under `bind`.
    pub outs: Vec<Aval>,
}
impl ParamMap {
    pub fn new(map: Vec<(String, Param)>) -> ParamMap {
        ParamMap { map, outs: vec![] }
    }
    pub fn insert(&mut self, key: String, p: Param) {
        self.map.push((key, p));
    }
    pub fn get(&self, key: &str) -> Option<&Param> {
        self.map.iter().find(|(k, _)| k == key).map(|(_, p)| p)
    }
    pub fn remove(&mut self, key: &str) -> Option<Param> {
        self.map.iter().position(|(k, _)| k == key).map(|i| self.map.swap_remove(i).1)
    }
    pub fn take<T: ParamValue>(&mut self, key: &str) -> Res<T> {
        match self.remove(key) {
            Some(p) => T::from_param(&p).ok_or_else(|| Error::type_error(refused::<T>(key, &p))),
            None => T::missing(&self.outs).ok_or_else(|| Error::type_error(format!("needs {key}, {}", T::words()))),
        }
    }
    /// The parameters left over, without the Nones.
    pub fn rest(&self) -> Option<&str> {
        self.map.iter().find(|(_, p)| !matches!(p, Param::None)).map(|(k, _)| &**k)
    }
}

/// The reason why a parameter is refused, without the primitive's name.
fn refused<T: ParamValue>(key: &str, p: &Param) -> String {
    let negative = |p: &Param| matches!(p, Param::Int(i) if *i < 0);
    let got = crate::text::param(p);
    match p.items() {
        Some(v) if T::words().starts_with(&Dims::words()) && v.iter().any(negative) => {
            format!("{key} must have every element be nonnegative, got {got}.")
        }
        _ => format!("{key} must be {}, got {got}.", T::words()),
    }
}

/// Name and parameters of an op; written by `primitive!`.
pub trait Params: Sized {
    fn names() -> Vec<&'static str>;
    /// The parameters of the member of that name, sorted as `params` sorts them.
    fn fields(name: &str) -> Vec<Field>;
    fn name(&self) -> &'static str;
    fn params(&self) -> ParamList;
    fn from_params(name: &str, p: &mut ParamMap) -> Res<Self>;
}
pub fn order(mut v: ParamList) -> ParamList {
    v.sort_by_key(|(k, ..)| (*k != "name", *k));
    v
}
pub fn order_fields(mut v: Vec<Field>) -> Vec<Field> {
    v.sort_by_key(|f| (f.name != "name", f.name));
    v
}
/// A family's member, whose name is the primitive's: `reduce_sum`, `reduce_max`.
pub trait Member: Copy + 'static {
    const ALL: &'static [(Self, &'static str)];
    fn name(self) -> &'static str
    where
        Self: PartialEq,
    {
        Self::ALL.iter().find(|(k, _)| *k == self).map_or("?", |(_, n)| n)
    }
    fn from_name(name: &str) -> Res<Self> {
        match Self::ALL.iter().find(|(_, n)| *n == name) {
            Some((k, _)) => Ok(*k),
            None => type_err(format!("no primitive is called {name}")),
        }
    }
}

/// Declares an op struct, its name and its parameters. See the module's head.
#[macro_export]
macro_rules! primitive {
    ($(#[$m:meta])* pub struct $T:ident = $name:literal { $($(#[$fm:meta])* $f:ident : $FT:ty $(= $show:ident)?),* $(,)? } $(always_none { $($c:ident $(= $cshow:ident)?),* $(,)? })?) => {
        $(#[$m])*
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        pub struct $T { $($(#[$fm])* pub $f: $FT),* }
        impl $crate::param::Params for $T {
            fn names() -> Vec<&'static str> { vec![$name] }
            fn fields(_: &str) -> Vec<$crate::param::Field> { $crate::primitive!(@fields [$($f $FT = $($show)?),*] [$($($c $($cshow)?),*)?]) }
            fn name(&self) -> &'static str { $name }
            fn params(&self) -> $crate::param::ParamList { $crate::primitive!(@list self [$($f $($show)?),*] [$($($c $($cshow)?),*)?]) }
            fn from_params(_: &str, _p: &mut $crate::param::ParamMap) -> $crate::error::Res<$T> {
                $($(_p.remove(stringify!($c));)*)?
                Ok($T { $($f: _p.take(stringify!($f).trim_start_matches("r#"))?),* })
            }
        }
    };
    // The name is that of a family's member.
    ($(#[$m:meta])* pub struct $T:ident = $k:ident : $K:ty { $($(#[$fm:meta])* $f:ident : $FT:ty $(= $show:ident)?),* $(,)? } $(always_none { $($c:ident $(= $cshow:ident)?),* $(,)? })?) => {
        $(#[$m])*
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        pub struct $T { pub $k: $K, $($(#[$fm])* pub $f: $FT),* }
        impl $crate::param::Params for $T {
            fn names() -> Vec<&'static str> { <$K as $crate::param::Member>::ALL.iter().map(|m| m.1).collect() }
            fn fields(_: &str) -> Vec<$crate::param::Field> { $crate::primitive!(@fields [$($f $FT = $($show)?),*] [$($($c $($cshow)?),*)?]) }
            fn name(&self) -> &'static str { $crate::param::Member::name(self.$k) }
            fn params(&self) -> $crate::param::ParamList { $crate::primitive!(@list self [$($f $($show)?),*] [$($($c $($cshow)?),*)?]) }
            fn from_params(name: &str, _p: &mut $crate::param::ParamMap) -> $crate::error::Res<$T> {
                $($(_p.remove(stringify!($c));)*)?
                Ok($T { $k: $crate::param::Member::from_name(name)?, $($f: _p.take(stringify!($f).trim_start_matches("r#"))?),* })
            }
        }
    };
    (@list $me:ident [$($f:ident $($show:ident)?),*] [$($c:ident $($cshow:ident)?),*]) => {
        $crate::param::order(vec![
            $((stringify!($f).trim_start_matches("r#"), $crate::param::ParamValue::to_param(&$me.$f), $crate::primitive!(@show $($show)?)),)*
            $((stringify!($c), $crate::param::Param::None, $crate::primitive!(@show $($cshow)?)),)*
        ])
    };
    (@fields [$($f:ident $FT:ty = $($show:ident)?),*] [$($c:ident $($cshow:ident)?),*]) => {
        $crate::param::order_fields(vec![
            $($crate::param::Field::of::<$FT>(stringify!($f).trim_start_matches("r#"), $crate::primitive!(@show $($show)?)),)*
            $($crate::param::Field::none(stringify!($c), $crate::primitive!(@show $($cshow)?)),)*
        ])
    };
    (@show) => { $crate::param::Show::always };
    (@show $s:ident) => { $crate::param::Show::$s };
}

/// A parameter that an op's text leaves out, since types determine it: readers skip it, and for the
/// parser it is missing.
#[macro_export]
macro_rules! hidden_param {
    ($T:ty, $words:literal, $missing:expr) => {
        impl $crate::param::ParamValue for $T {
            fn words() -> String {
                $words.into()
            }
            fn to_param(&self) -> $crate::param::Param {
                $crate::param::Param::None
            }
            fn from_param(_: &$crate::param::Param) -> Option<$T> {
                Some($missing)
            }
            fn missing(_: &[$crate::aval::Aval]) -> Option<$T> {
                Some($missing)
            }
        }
    };
}

// ---- field types ----

impl ParamValue for bool {
    fn words() -> String {
        "True or False".into()
    }
    fn to_param(&self) -> Param {
        Param::Bool(*self)
    }
    fn from_param(p: &Param) -> Option<bool> {
        match p {
            Param::Bool(b) => Some(*b),
            Param::Int(i) => Some(*i != 0),
            _ => None,
        }
    }
    fn missing(_: &[Aval]) -> Option<bool> {
        Some(false)
    }
}
macro_rules! int {
    ($($T:ty, $words:literal;)*) => { $(impl ParamValue for $T {
        fn words() -> String {
            $words.into()
        }
        fn to_param(&self) -> Param {
            Param::Int(*self as i64)
        }
        fn from_param(p: &Param) -> Option<$T> {
            match p {
                Param::Int(i) => <$T>::try_from(*i).ok(),
                Param::Bool(b) => Some(*b as $T),
                _ => None,
            }
        }
        fn missing(_: &[Aval]) -> Option<$T> {
            Some(0)
        }
    })* }
}
int!(usize, "a nonnegative integer"; u32, "a nonnegative integer"; i32, "an integer"; i64, "an integer";);
impl ParamValue for Dtype {
    fn words() -> String {
        "a dtype".into()
    }
    fn to_param(&self) -> Param {
        Param::Dtype(*self)
    }
    fn from_param(p: &Param) -> Option<Dtype> {
        match p {
            Param::Dtype(d) => Some(*d),
            Param::Str(s) => Dtype::from_long(s).or_else(|| Dtype::from_short(s)),
            _ => None,
        }
    }
}
/// Sizes or axes, as a tuple. Where left out: the (one) output's shape if text declares one and the field is `shape`; else empty.
impl ParamValue for Dims {
    fn words() -> String {
        "a tuple of nonnegative integers".into()
    }
    fn to_param(&self) -> Param {
        Param::ints(self)
    }
    fn from_param(p: &Param) -> Option<Dims> {
        p.items()?.iter().map(usize::from_param).collect()
    }
    fn missing(_: &[Aval]) -> Option<Dims> {
        Some(Dims::default())
    }
}
/// A shape that text leaves to the output's type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Shape(pub Dims);
impl std::ops::Deref for Shape {
    type Target = Dims;
    fn deref(&self) -> &Dims {
        &self.0
    }
}
impl From<Dims> for Shape {
    fn from(d: Dims) -> Shape {
        Shape(d)
    }
}
impl ParamValue for Shape {
    fn words() -> String {
        "a tuple of nonnegative integers".into()
    }
    fn to_param(&self) -> Param {
        Param::ints(&self.0)
    }
    fn from_param(p: &Param) -> Option<Shape> {
        Dims::from_param(p).map(Shape)
    }
    fn missing(outs: &[Aval]) -> Option<Shape> {
        outs.first().map(|a| Shape(a.shape.clone()))
    }
}
impl ParamValue for Arc<str> {
    fn words() -> String {
        "a string".into()
    }
    fn to_param(&self) -> Param {
        Param::Str(self.clone())
    }
    fn from_param(p: &Param) -> Option<Arc<str>> {
        match p {
            Param::Str(s) => Some(s.clone()),
            _ => None,
        }
    }
}
impl ParamValue for Arc<Program> {
    fn words() -> String {
        "a program".into()
    }
    fn to_param(&self) -> Param {
        Param::Prog(self.clone())
    }
    fn from_param(p: &Param) -> Option<Arc<Program>> {
        match p {
            Param::Prog(p) => Some(p.clone()),
            _ => None,
        }
    }
}
impl ParamValue for Fun {
    fn words() -> String {
        "a program or a function".into()
    }
    fn to_param(&self) -> Param {
        match self {
            Fun::Prog(p) => Param::Prog(p.clone()),
            f => Param::Fun(f.clone()),
        }
    }
    fn from_param(p: &Param) -> Option<Fun> {
        match p {
            Param::Prog(p) => Some(Fun::Prog(p.clone())),
            Param::Fun(f) => Some(f.clone()),
            _ => None,
        }
    }
}
impl ParamValue for Aval {
    fn words() -> String {
        "a type of arrays".into()
    }
    fn to_param(&self) -> Param {
        Param::Aval(self.clone())
    }
    fn from_param(p: &Param) -> Option<Aval> {
        match p {
            Param::Aval(a) => Some(a.clone()),
            _ => None,
        }
    }
}
/// A float that is equal if its bits are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FloatParam(u64);
impl FloatParam {
    pub fn get(self) -> f64 {
        f64::from_bits(self.0)
    }
}
impl From<f64> for FloatParam {
    fn from(x: f64) -> FloatParam {
        FloatParam(x.to_bits())
    }
}
impl ParamValue for FloatParam {
    fn words() -> String {
        "a float".into()
    }
    fn to_param(&self) -> Param {
        Param::Float(f64::from_bits(self.0))
    }
    fn from_param(p: &Param) -> Option<FloatParam> {
        match p {
            Param::Float(x) => Some((*x).into()),
            Param::Int(i) => Some((*i as f64).into()),
            _ => None,
        }
    }
}
impl<T: ParamValue> ParamValue for Option<T> {
    fn words() -> String {
        format!("{} or None", T::words())
    }
    fn to_param(&self) -> Param {
        self.as_ref().map_or(Param::None, T::to_param)
    }
    fn from_param(p: &Param) -> Option<Option<T>> {
        match p {
            Param::None => Some(None),
            p => T::from_param(p).map(Some),
        }
    }
    fn missing(_: &[Aval]) -> Option<Option<T>> {
        Some(None)
    }
}
impl<T: ParamValue> ParamValue for Box<[T]> {
    fn words() -> String {
        format!("a tuple, each {}", T::words())
    }
    fn to_param(&self) -> Param {
        Param::Tuple(self.iter().map(T::to_param).collect())
    }
    fn from_param(p: &Param) -> Option<Box<[T]>> {
        p.items()?.iter().map(T::from_param).collect()
    }
}
impl<T: ParamValue> ParamValue for Vec<T> {
    fn words() -> String {
        format!("a tuple, each {}", T::words())
    }
    fn to_param(&self) -> Param {
        Param::Tuple(self.iter().map(T::to_param).collect())
    }
    fn from_param(p: &Param) -> Option<Vec<T>> {
        p.items()?.iter().map(T::from_param).collect()
    }
}
impl<T: ParamValue> ParamValue for Box<T> {
    fn words() -> String {
        T::words()
    }
    fn to_param(&self) -> Param {
        (**self).to_param()
    }
    fn from_param(p: &Param) -> Option<Box<T>> {
        T::from_param(p).map(Box::new)
    }
    fn missing(outs: &[Aval]) -> Option<Box<T>> {
        T::missing(outs).map(Box::new)
    }
}
impl<A: ParamValue, B: ParamValue, C: ParamValue> ParamValue for (A, B, C) {
    fn words() -> String {
        format!("a tuple of three: {}, {}, {}", A::words(), B::words(), C::words())
    }
    fn to_param(&self) -> Param {
        Param::Tuple(vec![self.0.to_param(), self.1.to_param(), self.2.to_param()])
    }
    fn from_param(p: &Param) -> Option<(A, B, C)> {
        let [a, b, c] = p.items()? else { return None };
        Some((A::from_param(a)?, B::from_param(b)?, C::from_param(c)?))
    }
}
impl<A: ParamValue, B: ParamValue> ParamValue for (A, B) {
    fn words() -> String {
        format!("a pair: {}, {}", A::words(), B::words())
    }
    fn to_param(&self) -> Param {
        Param::Tuple(vec![self.0.to_param(), self.1.to_param()])
    }
    fn from_param(p: &Param) -> Option<(A, B)> {
        let [a, b] = p.items()? else { return None };
        Some((A::from_param(a)?, B::from_param(b)?))
    }
}
