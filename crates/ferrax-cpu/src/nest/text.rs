//! A nest as text, and back.
//!
//! ```text
//!     arrays 36 32, scratch 512
//!     loop 8 independent {
//!       carry v0: i64 = 0i64 -> v1
//!       v2: f32 = load a0[v0 + 1]
//!       v3: f32 = mul v2, 0.5f32
//!       a1[v0]: f32 = v3
//!       v4: i64 = exact add v0, 1i64
//!       next v4
//!     }
//!     out v1
//! ```
//! Values are numbered in the order in which they are set; a constant stands where it is read. `f32x8` is a vector, `mask32x8` the truth values beside it; `v3 by -2` is the vector of numbers
//! that begins there and grows by so much; `a[v + 3 by 5 of 4]` are four elements that are five apart.
//!
//! INVARIANT: printing a parsed text gives the text, and both are the same nest except for the numbers of its values.
#[cfg(test)]
pub mod parse;

use super::{Callee, LoopKind, Nest, NestLoop, NestOp, NestTrip, NestValue, Stmt, lane};
use ferrax_kernel::DType;
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// The functions that nests call, by name.
pub struct FunctionNames {
    pub name: fn(Callee) -> String,
    #[cfg(test)]
    pub function: fn(&str) -> Option<Callee>,
    #[cfg(test)]
    pub instruction: fn(&str) -> Option<crate::instructions::Opcode>,
}

pub fn print(nest: &Nest, names: &FunctionNames) -> String {
    let mut p = Printer { nest, names, numbers: FxHashMap::default(), text: String::new(), depth: 0 };
    p.head();
    p.statements(&nest.body);
    if !nest.outs.is_empty() {
        let outs: Vec<String> = nest.outs.iter().map(|v| p.value(*v)).collect();
        p.line(&format!("out {}", outs.join(", ")));
    }
    p.text
}

struct Printer<'a> {
    nest: &'a Nest,
    names: &'a FunctionNames,
    numbers: FxHashMap<NestValue, usize>,
    text: String,
    depth: usize,
}
impl Printer<'_> {
    fn line(&mut self, s: &str) {
        let indent = 2 * self.depth;
        let _ = writeln!(self.text, "{:indent$}{s}", "");
    }
    fn head(&mut self) {
        let n = self.nest;
        let mut parts = vec![];
        let join = |all: &[String]| all.join(" ");
        if !n.lengths.is_empty() {
            let lengths: Vec<String> = n.lengths.iter().map(usize::to_string).collect();
            parts.push(format!("arrays {}", join(&lengths)));
        }
        if let Some((_, bytes)) = n.scratch {
            parts.push(format!("scratch {bytes}"));
        }
        if !n.meeting.is_empty() {
            let pairs: Vec<String> = n.meeting.iter().map(|(a, b)| format!("{a}-{b}")).collect();
            parts.push(format!("meeting {}", join(&pairs)));
        }
        if !n.inputs.is_empty() {
            let dtypes: Vec<String> = n.inputs.iter().map(|d| d.short().to_string()).collect();
            parts.push(format!("inputs {}", join(&dtypes)));
        }
        if !parts.is_empty() {
            self.line(&parts.join(", "));
        }
    }
    /// A value that is set here.
    fn numbered(&mut self, v: NestValue) -> String {
        let next = self.numbers.len();
        format!("v{}", *self.numbers.entry(v).or_insert(next))
    }
    fn value(&mut self, v: NestValue) -> String {
        match self.nest.def(v).op {
            NestOp::Const(bits) => constant(self.nest.dtype(v), bits),
            _ => self.numbered(v),
        }
    }
    fn dtype(&self, v: NestValue) -> String {
        let def = self.nest.def(v);
        match def.dtype {
            d if def.lanes == 1 => d.short().to_string(),
            DType::Bool => format!("mask{}x{}", if def.wide { 64 } else { 32 }, def.lanes),
            d => format!("{}x{}", d.short(), def.lanes),
        }
    }
    fn place(&mut self, array: u32, index: NestValue, offset: i32) -> String {
        let index = self.value(index);
        let name = match self.nest.scratch {
            Some((scratch, _)) if scratch == array => "w".to_string(),
            _ => format!("a{array}"),
        };
        match offset {
            0 => format!("{name}[{index}"),
            o => format!("{name}[{index} {} {}", if o < 0 { '-' } else { '+' }, o.unsigned_abs()),
        }
    }
    fn statements(&mut self, all: &[Stmt]) {
        for s in all {
            match s {
                Stmt::Let(v) if matches!(self.nest.def(*v).op, NestOp::Const(_)) => (),
                Stmt::Let(v) => {
                    let what = self.expression(*v);
                    let (dtype, v) = (self.dtype(*v), self.numbered(*v));
                    self.line(&format!("{v}: {dtype} = {what}"));
                }
                Stmt::Store { array, index, offset, value, dtype, stride } => {
                    let (place, value) = (self.place(*array, *index, *offset), self.value(*value));
                    let by = if *stride == 1 { String::new() } else { format!(" by {stride}") };
                    self.line(&format!("{place}{by}]: {} = {value}", dtype.short()));
                }
                Stmt::ExitUnless(p) => {
                    let p = self.value(*p);
                    self.line(&format!("exit unless {p}"));
                }
                Stmt::CallRow(c) => {
                    let name = (self.names.name)(c.callee);
                    let from: Vec<String> = c.from[..c.operands as usize].iter().map(i32::to_string).collect();
                    self.line(&format!("rows {} at {} of {} = {name}", c.elements, c.to, from.join(" ")));
                }
                Stmt::Loop(l) => self.repeated(l),
            }
        }
    }
    fn repeated(&mut self, l: &NestLoop) {
        let trip = match l.trip {
            NestTrip::Static(n) => n.to_string(),
            NestTrip::Dyn(v) => self.value(v),
            NestTrip::Forever => "forever".to_string(),
        };
        let kind = match l.kind {
            LoopKind::Sequential => "",
            LoopKind::Independent => " independent",
            LoopKind::Free => " free",
            LoopKind::Fold => " fold",
        };
        self.line(&format!("loop {trip}{kind} {{"));
        self.depth += 1;
        for c in &l.carries {
            let init = self.value(c.init);
            let (slot, dtype, after) = (self.numbered(c.slot), self.dtype(c.slot), self.numbered(c.after));
            self.line(&format!("carry {slot}: {dtype} = {init} -> {after}"));
        }
        self.statements(&l.body);
        if !l.carries.is_empty() {
            let nexts: Vec<String> = l.carries.iter().map(|c| self.value(c.next)).collect();
            self.line(&format!("next {}", nexts.join(", ")));
        }
        self.depth -= 1;
        self.line("}");
    }
    fn expression(&mut self, v: NestValue) -> String {
        let def = *self.nest.def(v);
        match def.op {
            NestOp::Load(array, offset) => return format!("load {}]", self.place(array, def.args[0], offset)),
            NestOp::LoadApart(array, offset, stride, lanes) => {
                return format!("load {} by {stride} of {lanes}]", self.place(array, def.args[0], offset));
            }
            NestOp::LoadWide(array, offset, from) => {
                return format!("load {} as {}]", self.place(array, def.args[0], offset), from.short());
            }
            _ => (),
        }
        let args: Vec<String> = def.args().iter().map(|a| self.value(*a)).collect();
        let name = match def.op {
            NestOp::Input(k) => format!("input {k}"),
            NestOp::Un(f) => f.name().to_string(),
            NestOp::Bin(f) => f.name().to_string(),
            NestOp::Select => "select".to_string(),
            NestOp::Convert(from) => format!("convert {}", from.short()),
            NestOp::Bits(from) => format!("bits {}", from.short()),
            NestOp::Wrap => "wrap".to_string(),
            NestOp::Settle => "settle".to_string(),
            NestOp::Call(f, _) => format!("call {}", (self.names.name)(f)),
            NestOp::Vector(code) => code.text(),
            NestOp::Splat => "splat".to_string(),
            NestOp::Ramp(by) => format!("ramp {by}"),
            NestOp::Down(n) => format!("down {n}"),
            NestOp::Blend(n) => format!("blend {n}"),
            NestOp::First => "first".to_string(),
            op => format!("{op:?}").to_lowercase(),
        };
        let exact = if def.is_exact { "exact " } else { "" };
        format!("{exact}{name} {}", args.join(", ")).trim_end().to_string()
    }
}

fn constant(d: DType, bits: u64) -> String {
    let name = d.short();
    match lane(d) {
        DType::Bool => format!("{}{name}", bits & 0xff),
        DType::F32 => match f32::from_bits(bits as u32) {
            x if x.is_nan() => format!("#{bits:x}{name}"),
            x => format!("{x:?}{name}"),
        },
        DType::F64 => match f64::from_bits(bits) {
            x if x.is_nan() => format!("#{bits:x}{name}"),
            x => format!("{x:?}{name}"),
        },
        _ => format!("{}{name}", super::facts::integer(d, bits)),
    }
}
