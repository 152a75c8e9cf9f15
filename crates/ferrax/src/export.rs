//! Exported programs: written where they were traced, loaded and called elsewhere, without the
//! language that traced them.
//!
//! ```no_run
//! use ferrax::{Tensor, export};
//! let model = export::load("model.ferrax")?;
//! let y = model.call(&[Tensor::new(&[0.5f32, 1.5], &[1, 2])?])?;
//! # Ok::<(), ferrax::Error>(())
//! ```
//!
//! A Rust program can write one:
//!
//! ```
//! use ferrax::export::{Constraint, Exported, ExportedSize, ExportedType, ProgramFamily, Signature, TracedProgram};
//! use ferrax::{Tensor, make_jaxpr};
//! let program = make_jaxpr(|x: &Tensor| (x * 2.0).sum(), &Tensor::zeros(&[3]))?.into();
//! let family = ProgramFamily::new(&["x".into()], &[TracedProgram { program, consts: vec![] }])?;
//! assert_eq!((family.used(), family.sizes().len()), (&[true][..], 0)); // the inputs that it reads, and its symbolic sizes
//! assert!(family.fractions().is_empty()); // which of these are no integers
//! let signature =
//!     Signature { fun_name: "f".into(), platforms: vec![("cpu".into(), 0)], calling_convention: 10, ..Signature::default() };
//! let file = Exported::new(signature, &[(&family, vec![])], None)?.to_bytes(0, None)?;
//! let read = Exported::from_bytes(&file)?;
//! assert_eq!(read.call(&[Tensor::ones(&[3])])?[0].item(), 6.0);
//! let s: &Signature = read.signature();
//! let (x, limits): (&ExportedType, &[Constraint]) = (&s.inputs[0], &s.constraints);
//! assert_eq!(x.shape.iter().map(ExportedSize::text).collect::<Vec<_>>(), ["3"]);
//! assert!(!x.is_float0() && !s.is_symbolic() && s.variable_names().is_empty() && limits.is_empty());
//! assert!(read.text()?.contains("mul") && !read.has_vjp() && !read.code().is_empty());
//! # Ok::<(), ferrax::Error>(())
//! ```
//!
//! A file holds a program, or one for each platform, with the arrays that it captured, the types of
//! its inputs and outputs, and as many reverse-mode derivatives as requested. Sizes may be
//! symbolic: the arguments' shapes bind them, and each binding is compiled once.
//!
//! INVARIANT: loading checks a file, its programs equation by equation; no file makes the reader
//! panic.
mod bytes;
mod file;
mod signature;
mod sizes;

pub use signature::{Constraint, ExportedSize, ExportedType, Signature};
pub use sizes::SizeExpr;

use signature::read_types;

#[cfg(feature = "api")]
use crate::Tensor;
use crate::compiled::Compiled;
use crate::device::Device;
use crate::spmd::device_of;
use crate::{array, eval};
use ferrax_ir::code::{Decoder, Encoder, Family};
use ferrax_ir::cx::{Fun, at_root};
use ferrax_ir::error::{Error, Res, value_err};
use ferrax_ir::ops::call::Call;
use ferrax_ir::ops::custom::{CustomVjp, NumOuts};
use ferrax_ir::program::In;
use ferrax_ir::value::Values;
use ferrax_ir::{Aval, Dtype, Op, Program, Value, bind};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// Bindings of symbolic sizes whose programs are kept compiled.
const MAX_BINDINGS: usize = 64;

/// A traced program with its captured values, which are its leading inputs.
pub struct TracedProgram {
    /// The program; captured values come first among its inputs.
    pub program: Arc<Program>,
    /// Those values.
    pub consts: Vec<Value>,
}

/// One function traced at several sizes, as one program: see [`Family`].
pub struct ProgramFamily {
    family: Family,
    constants: Vec<Vec<u8>>,
    used: Vec<bool>,
}
impl ProgramFamily {
    /// `names`: of the inputs, as users write them: `args[0]['w']`.
    ///
    /// # Errors
    /// `Value` if the traces differ in more than sizes, or captured different arrays.
    pub fn new(names: &[String], traced: &[TracedProgram]) -> Res<ProgramFamily> {
        let (mut encoders, mut constants, mut used) = (vec![], None, vec![]);
        for t in traced {
            let (encoder, consts, reads) = written(names, t)?;
            if constants.as_ref().is_some_and(|c| *c != consts) {
                return value_err("the arrays that the function captured depend on the symbolic sizes");
            }
            constants = Some(consts);
            encoders.push(encoder);
            used = reads;
        }
        Ok(ProgramFamily { family: Family::of(encoders)?, constants: constants.unwrap_or_default(), used })
    }
    /// The sizes that vary, each as its values in the traces.
    pub fn sizes(&self) -> &[Vec<i64>] {
        self.family.sizes()
    }
    /// Which of them are constants that are no integers; their values are the bits of doubles.
    pub fn fractions(&self) -> &[bool] {
        self.family.fractions()
    }
    /// Which of the inputs the program reads.
    pub fn used(&self) -> &[bool] {
        &self.used
    }
}
fn is_float0(a: &Aval) -> bool {
    a.dtype == Dtype::Float0
}
/// A program's signature and then itself; the bytes of the arrays it captured; and which inputs it reads.
fn written(names: &[String], t: &TracedProgram) -> Res<(Encoder, Vec<Vec<u8>>, Vec<bool>)> {
    let (p, n) = (&t.program, t.consts.len());
    let outs = p.out_avals();
    // outputs of dtype float0 carry nothing and are not computed
    let wanted: Vec<usize> = (0..outs.len()).filter(|i| !is_float0(&outs[*i])).collect();
    let reads = p.dce(&outs.iter().map(|a| !is_float0(a)).collect::<Vec<_>>()).1;
    let ins = &p.in_avals()[n..];
    if names.len() != ins.len() {
        return value_err(format!("{} names for {} inputs", names.len(), ins.len()));
    }
    let mut e = Encoder::default();
    e.count(ins.len());
    for ((a, name), read) in ins.iter().zip(names).zip(&reads[n..]) {
        e.name(name);
        e.count(*read as usize);
        e.aval(a);
    }
    e.count(outs.len());
    outs.iter().for_each(|a| e.aval(a));
    let kept = (0..p.n_ins()).filter(|i| if *i < n { reads[*i] } else { !is_float0(&p.in_avals()[*i]) });
    let kept: Vec<In> = kept.map(In::Old).collect();
    let n_consts = reads[..n].iter().filter(|r| **r).count();
    e.program(&Arc::new(p.rewire(&kept, Some(&wanted)).with_consts(n_consts)))?;
    let mut constants = vec![];
    for v in t.consts.iter().zip(&reads).filter(|c| *c.1).map(|c| c.0) {
        constants.push(match v {
            Value::Array(a) => array::bytes(a)?,
            Value::Lit(l) => array::bytes(&array::from_lit(l, eval::current_device())?)?,
            Value::Tracer(_) => return Err(v.leaked()),
        });
    }
    Ok((e, constants, reads[n..].to_vec()))
}

/// One of the programs of a file.
struct Stored {
    code: Vec<u8>,
    /// The expressions of its symbolic sizes.
    sizes: Vec<ExportedSize>,
    constants: Vec<Vec<u8>>,
    /// The constants as arrays.
    arrays: OnceLock<Vec<Value>>,
}
impl Stored {
    fn new(code: Vec<u8>, sizes: Vec<ExportedSize>, constants: Vec<Vec<u8>>) -> Stored {
        Stored { code, sizes, constants, arrays: OnceLock::new() }
    }
    /// The program at these values of the variables, and the types of all its outputs: it does not compute those of dtype float0.
    fn program(&self, variables: &[i64]) -> Res<(Arc<Program>, Vec<Aval>)> {
        let known: Vec<Option<i64>> = variables.iter().copied().map(Some).collect();
        let sizes = self.sizes.iter().map(|e| e.expr.value(&known)).collect::<Res<Vec<_>>>()?;
        let fractions: Vec<bool> = self.sizes.iter().map(|e| e.expr.is_ratio()).collect();
        let mut d = Decoder::with_fractions(&self.code, &sizes, &fractions);
        let (ins, outs) = read_types(&mut d)?;
        let p = d.program()?;
        d.end()?;
        let ins = ins.iter().map(|t| t.at(&sizes)).collect::<Res<Vec<_>>>()?;
        let outs = outs.iter().map(|t| t.at(&sizes)).collect::<Res<Vec<_>>>()?;
        let own = &p.in_avals()[p.n_consts()..];
        let fits = p.n_consts() == self.constants.len()
            && own.iter().eq(ins.iter().filter(|a| !is_float0(a)))
            && p.out_avals().iter().eq(outs.iter().filter(|a| !is_float0(a)));
        if !fits {
            return value_err("the program is damaged: it is not of the type that the file says");
        }
        for (a, c) in p.in_avals().iter().zip(&self.constants) {
            let a = ferrax_ir::lower::physical(a);
            if a.shape.checked(a.dtype.size())? != c.len() {
                return value_err("the program is damaged: an array is not of its type");
            }
        }
        Ok((p, outs))
    }
    fn arrays(&self, p: &Program) -> Res<&[Value]> {
        if let Some(all) = self.arrays.get() {
            return Ok(all);
        }
        let device = eval::current_device();
        let array = |(a, c): (&Aval, &Vec<u8>)| Ok(Value::Array(array::from_bytes(a.clone(), c, device, false)?));
        let all = p.in_avals().iter().zip(&self.constants).map(array).collect::<Res<_>>()?;
        Ok(self.arrays.get_or_init(|| all))
    }
}

/// A program at one binding of its symbolic sizes.
struct Binding {
    stored: usize,
    variables: Vec<i64>,
    program: Arc<Program>,
    /// The types of all outputs.
    outs: Vec<Aval>,
    consts: Vec<Value>,
    /// The op of a call in a trace.
    op: Op,
    compiled: Mutex<Vec<Arc<Compiled>>>,
}
impl Binding {
    fn run(&self, args: &[Value], device: &'static Device) -> Res<Values> {
        let ready = lock(&self.compiled).iter().find(|c| c.device == device).cloned();
        let c = match ready {
            Some(c) => c,
            None => {
                let c = Arc::new(Compiled::new(self.program.clone(), device)?);
                lock(&self.compiled).push(c.clone());
                c
            }
        };
        Ok(c.run(args, &[])?.into_iter().map(Value::Array).collect())
    }
    /// With the outputs of dtype float0 between those that were computed.
    fn all_outputs(&self, computed: Values, device: &'static Device) -> Res<Values> {
        if computed.len() == self.outs.len() {
            return Ok(computed);
        }
        let mut computed = computed.into_iter();
        let out = |a: &Aval| {
            let found = if is_float0(a) { None } else { computed.next() };
            match found {
                Some(v) => Ok(v),
                None => {
                    let zeros = ferrax_kernel::error::filled(a.shape.size(), 0u8)?;
                    Ok(Value::Array(array::from_bytes(a.clone(), &zeros, device, false)?))
                }
            }
        };
        self.outs.iter().map(out).collect()
    }
}

/// Makes the reverse-mode derivative of an exported program when it is requested.
pub type MakeVjp = Box<dyn Fn() -> Res<Arc<Exported>> + Send + Sync>;

/// The derivative: found in the file, made at first use, or missing.
struct Derivative {
    known: OnceLock<Arc<Exported>>,
    make: Option<MakeVjp>,
}
impl Derivative {
    fn get(&self) -> Res<Option<Arc<Exported>>> {
        if let (None, Some(make)) = (self.known.get(), &self.make) {
            let made = make()?;
            return Ok(Some(self.known.get_or_init(|| made).clone()));
        }
        Ok(self.known.get().cloned())
    }
}

/// An exported program.
pub struct Exported {
    signature: Arc<Signature>,
    stored: Vec<Stored>,
    vjp: Arc<Derivative>,
    bindings: Mutex<Vec<Arc<Binding>>>,
}
fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(|e| e.into_inner())
}

/// The exported program in the file at `path`.
///
/// # Errors
/// `Value` if the file cannot be read, is no exported program, or was damaged.
pub fn load(path: impl AsRef<Path>) -> Res<Arc<Exported>> {
    let path = path.as_ref();
    match std::fs::read(path) {
        Ok(bytes) => Exported::from_bytes(&bytes),
        Err(e) => value_err(format!("{}: {e}", path.display())),
    }
}

impl Exported {
    /// A program of `signature`, whose inputs and outputs are read from the families; each family with the expressions of its sizes.
    ///
    /// # Errors
    /// `Value` if the symbolic sizes cannot be solved for, or something does not fit.
    pub fn new(
        signature: Signature,
        families: &[(&ProgramFamily, Vec<String>)],
        make_vjp: Option<MakeVjp>,
    ) -> Res<Arc<Exported>> {
        let names = signature.variable_names();
        let stored = |(f, sizes): &(&ProgramFamily, Vec<String>)| {
            let sizes = sizes.iter().map(|s| ExportedSize::parse(s, &names)).collect::<Res<_>>()?;
            Ok(Stored::new(f.family.bytes(), sizes, f.constants.clone()))
        };
        let stored = families.iter().map(stored).collect::<Res<_>>()?;
        Exported::made(signature, stored, None, make_vjp)
    }
    fn made(
        mut signature: Signature,
        stored: Vec<Stored>,
        vjp: Option<Arc<Exported>>,
        make: Option<MakeVjp>,
    ) -> Res<Arc<Exported>> {
        let Some(first) = stored.first() else { return value_err("the file holds no program") };
        let (ins, outs) = read_types(&mut Decoder::new(&first.code, &[]))?;
        signature.inputs = ins.iter().map(|t| t.closed(&first.sizes)).collect::<Res<_>>()?;
        signature.outputs = outs.iter().map(|t| t.closed(&first.sizes)).collect::<Res<_>>()?;
        if signature.platforms.is_empty() || signature.platforms.iter().any(|p| p.1 >= stored.len()) {
            return value_err("the program is damaged: it is for no platform");
        }
        let traced_at: Vec<i64> = signature.variables.iter().map(|v| v.1).collect();
        let programs = stored.iter().map(|s| s.program(&traced_at)).collect::<Res<Vec<_>>>()?;
        let (first, outs) = &programs[0];
        let mut own = first.in_avals()[first.n_consts()..].iter().cloned();
        let args: Vec<Option<Aval>> =
            signature.inputs.iter().map(|t| if t.is_float0() { None } else { own.next() }).collect();
        if programs.iter().any(|p| p.1 != *outs) || signature.bind(&args)? != traced_at {
            return value_err("the program is damaged: its programs are of different types");
        }
        let known = vjp.map_or_else(OnceLock::new, OnceLock::from);
        let vjp = Arc::new(Derivative { known, make });
        Ok(Arc::new(Exported { signature: Arc::new(signature), stored, vjp, bindings: Mutex::default() }))
    }
    /// The types of its arguments and results.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }
    /// Its bytes without head and constants, for inspection: the code of the first program.
    pub fn code(&self) -> &[u8] {
        &self.stored[0].code
    }
    /// The first program as text, at the sizes at which it was traced.
    pub fn text(&self) -> Res<String> {
        let at: Vec<i64> = self.signature.variables.iter().map(|v| v.1).collect();
        let sizes: String = self.signature.variables.iter().map(|(v, n)| format!("# {v} = {n}\n")).collect();
        Ok(format!("{sizes}{}", self.stored[0].program(&at)?.0))
    }
    /// Whether the file has a derivative, or one can be made.
    pub fn has_vjp(&self) -> bool {
        self.vjp.known.get().is_some() || self.vjp.make.is_some()
    }
    /// Its reverse-mode derivative: takes the inputs and a cotangent of each output, gives a cotangent of each input. `None` if the file
    /// has none.
    pub fn vjp(&self) -> Res<Option<Arc<Exported>>> {
        self.vjp.get()
    }
    #[cfg(feature = "api")]
    /// The outputs for these inputs. Inside a transform it is one operation, with the file's derivative.
    ///
    /// # Errors
    /// `Value` if the inputs do not fit the signature, or the program is for other platforms.
    pub fn call(&self, args: &[Tensor]) -> Res<Vec<Tensor>> {
        let args: Vec<Option<Value>> = args.iter().map(|t| Some(t.0.clone())).collect();
        Ok(self.apply(&args)?.into_iter().map(Tensor).collect())
    }
    /// The same for values; `None` is an argument of dtype float0.
    pub fn apply(&self, args: &[Option<Value>]) -> Res<Values> {
        eval::init();
        let types: Vec<Option<Aval>> = self
            .signature
            .inputs
            .iter()
            .zip(args)
            .map(|(t, v)| v.as_ref().filter(|_| !t.is_float0()).map(Value::aval))
            .chain(args.iter().skip(self.signature.inputs.len()).map(|_| None))
            .collect();
        let variables = self.signature.bind(&types)?;
        let given = args.iter().zip(&types).filter(|a| a.1.is_some()).filter_map(|a| a.0.clone());
        let given: Vec<Value> = given.collect();
        let device = device_of(&given, eval::current_device())?;
        let b = self.binding(self.for_platform(device.platform())?, variables)?;
        let all: Vec<Value> = b.consts.iter().cloned().chain(given).collect();
        let traced = !at_root() || all.iter().any(Value::is_tracer);
        let out = if traced { bind(&b.op, &all)? } else { b.run(&all, device)? };
        b.all_outputs(out, device)
    }
    /// Which program is for a platform.
    fn for_platform(&self, platform: &str) -> Res<usize> {
        let all = &self.signature.platforms;
        let serves =
            |name: &str| name == platform || platform == "gpu" && matches!(name, "cuda" | "rocm" | "metal" | "vulkan");
        match all.iter().find(|p| serves(&p.0)) {
            Some(p) => Ok(p.1),
            None if self.signature.disabled_checks.iter().any(|c| c == "platform") => Ok(all[0].1),
            None => {
                let names: Vec<String> = all.iter().map(|p| format!("'{}'", p.0)).collect();
                let comma = if names.len() == 1 { "," } else { "" };
                value_err(format!(
                    "Function '{}' was exported for platforms '({}{comma})' but it is used on '('{platform}',)'.",
                    self.signature.fun_name,
                    names.join(", ")
                ))
            }
        }
    }
    fn binding(&self, stored: usize, variables: Vec<i64>) -> Res<Arc<Binding>> {
        let mut all = lock(&self.bindings);
        if let Some(i) = all.iter().position(|b| b.stored == stored && b.variables == variables) {
            let b = all.remove(i);
            all.push(b.clone()); // the most recently used is last
            return Ok(b);
        }
        drop(all);
        let (program, outs) = self.stored[stored].program(&variables).map_err(|e| self.no_program(&variables, &e))?;
        let consts = self.stored[stored].arrays(&program)?.to_vec();
        let program = Arc::new(program.with_consts(0));
        let op = self.op(&program, &consts);
        let b = Arc::new(Binding { stored, variables, program, outs, consts, op, compiled: Mutex::default() });
        let mut all = lock(&self.bindings);
        if all.len() == MAX_BINDINGS {
            all.remove(0);
        }
        all.push(b.clone());
        Ok(b)
    }
    /// Why there is no program at these sizes: it was traced at others, where a slice or a window fitted.
    fn no_program(&self, variables: &[i64], e: &Error) -> Error {
        let at = self.signature.variables.iter().zip(variables).map(|((name, _), n)| format!("'{name}' = {n}"));
        let at = at.collect::<Vec<_>>().join(", ");
        Error::value(format!("Function '{}' is not exported for {at}: {e}", self.signature.fun_name))
    }
    /// A call as an operation with the derivative of the file's.
    fn op(&self, program: &Arc<Program>, consts: &[Value]) -> Op {
        let name = &*self.signature.fun_name;
        let call: Op = Call::new(name, program.clone()).into();
        let captured = consts.to_vec();
        let fwd = Fun::user(&format!("{name}_vjp_fwd"), move |x| {
            let all: Vec<Value> = captured.iter().chain(x).cloned().collect();
            Ok(bind(&call, &all)?.into_iter().chain(x.iter().cloned()).collect())
        });
        let (signature, vjp) = (self.signature.clone(), self.vjp.clone());
        let bwd = Fun::user(&format!("{name}_vjp_bwd"), move |x| {
            let Some(vjp) = vjp.get()? else { return value_err("No VJP is available") };
            let mut given = x.iter();
            let ins = signature.inputs.iter().map(|t| if t.is_float0() { None } else { given.next().cloned() });
            let mut args: Vec<Option<Value>> = ins.collect();
            args.extend(
                signature.outputs.iter().map(|t| t.dtype.is_inexact().then(|| given.next().cloned()).flatten()),
            );
            let cts = vjp.apply(&args)?;
            Ok(cts.into_iter().zip(&signature.inputs).filter(|c| c.1.dtype.is_inexact()).map(|c| c.0).collect())
        });
        CustomVjp {
            name: name.into(),
            call_jaxpr: Fun::Prog(program.clone()),
            fwd,
            bwd,
            num_consts: consts.len(),
            num_outs: NumOuts::new(program.n_outs()),
            symbolic_zeros: false,
        }
        .into()
    }
}
