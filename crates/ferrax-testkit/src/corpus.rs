//! The corpus: what every primitive must answer, on any backend. `tests/corpus/*.toml` hold the cases, one file per family, and
//! `tests/corpus/generate.py` made them; `tests/corpus/tolerance.toml` says how near a result must come, by function and class of
//! backend.
//!
//! ```toml
//! [[case]]
//! apply = "sin f32[3]"        # as in [`crate::examples`]; or `program`
//! in = [[0.0, 1.0, nan]]      # flat; a string names an entry of the file's [values]
//! out = [[0.0, 0.84147096, nan]]
//! ```
//!
//! INVARIANT: a case reaches a backend as any program does, lowered to a plan; nothing here knows what it computes. Without a
//! tolerance results are compared by bits, but that all nans are one.
use crate::api::make_program;
use crate::examples::Example;
use ferrax_ir::text::parse;
use ferrax_ir::{Op, Program};
use ferrax_kernel::backend::{Backend, RunArg, RunCx};
use ferrax_kernel::plan::{Plan, Step};
use ferrax_kernel::{DType, Res, Scalar, reference};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use toml::{Table, Value};

pub struct Case {
    pub family: String,
    /// The program, as in the file.
    pub text: String,
    pub plan: Plan,
    pub ins: Vec<Vec<u8>>,
    pub outs: Vec<Vec<Scalar>>,
    /// The row of tolerance.toml.
    pub tolerance: String,
    /// Every primitive in it.
    pub names: BTreeSet<&'static str>,
}

/// How near a result must come.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Near {
    /// Steps between values of the dtype.
    Steps(u64),
    /// Units of the last place of the larger of the value and `scale`; a subnormal may be zero, as devices have it.
    Units { ulp: f64, scale: f64 },
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus")
}
fn table(path: &Path) -> Table {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.parse().unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
/// The families that have a file.
pub fn families() -> Vec<String> {
    let files = std::fs::read_dir(folder()).expect("tests/corpus").flatten().map(|e| e.path());
    let stem = |p: PathBuf| Some(p.file_stem()?.to_str()?.to_string());
    let mut v: Vec<String> = files.filter(|p| p.extension().is_some_and(|e| e == "toml")).filter_map(stem).collect();
    v.retain(|n| n != "tolerance");
    v.sort();
    v
}
/// The cases of one family.
pub fn cases(family: &str) -> Vec<Case> {
    let mut file = table(&folder().join(format!("{family}.toml")));
    let Some(Value::Array(list)) = file.remove("case") else { panic!("{family} has no cases") };
    let named = match file.remove("values") {
        Some(Value::Table(t)) => t,
        _ => Table::new(),
    };
    list.iter().map(|c| case(family, c, &named)).collect()
}

fn case(family: &str, c: &Value, named: &Table) -> Case {
    let word = |key: &str| c.get(key).and_then(Value::as_str);
    let text = word("apply").or(word("program")).expect("what to run").to_string();
    let bad = |e: &dyn std::fmt::Display| -> ! { panic!("{family}: {text}: {e}") };
    let mut names = BTreeSet::new();
    let staged = if word("apply").is_some() {
        let e = Example::parse(&text);
        names.insert(e.op.name());
        make_program(&|x| e.call(x), &e.avals())
    } else {
        parse(&text).and_then(|p| {
            names_of(&p, &mut names);
            make_program(&|x| Ok(ferrax_ir::current().inline(&p, x)?.into_vec()), p.in_avals())
        })
    };
    let (p, _) = staged.unwrap_or_else(|e| bad(&e.message()));
    let plan = ferrax_ir::lower::lower(&p).unwrap_or_else(|e| bad(&e.message()));
    let arrays = |key: &str, slots: &[u32]| -> Vec<Vec<Scalar>> {
        let list = c.get(key).and_then(Value::as_array).expect("arrays");
        assert_eq!(list.len(), slots.len(), "{text}: {key}");
        list.iter()
            .zip(slots)
            .map(|(v, s)| {
                let slot = &plan.slots[*s as usize];
                let v = v.as_str().map_or(v, |name| &named[name]);
                let x: Vec<Scalar> = v.as_array().expect("numbers").iter().map(|v| scalar(slot.dtype, v)).collect();
                assert_eq!(x.len(), slot.len, "{text}: {key}");
                x
            })
            .collect()
    };
    let (ins, outs) = (arrays("in", &plan.inputs), arrays("out", &plan.outputs));
    let first = text.split(['[', ' ']).next().unwrap_or_default();
    let tolerance = word("tolerance").unwrap_or(first).to_string();
    let ins = ins.iter().map(|x| reference::write(x)).collect();
    Case { family: family.into(), text, plan, ins, outs, tolerance, names }
}
fn scalar(d: DType, v: &Value) -> Scalar {
    let whole = |i: i64| if d.is_float() { Scalar::from_f64(d, i as f64) } else { Scalar::from_i64(d, i) };
    match v {
        Value::Boolean(b) => Scalar { dtype: d, bits: *b as u64 },
        Value::Integer(i) => whole(*i),
        Value::Float(x) => Scalar::from_f64(d, *x),
        // a value out of the range of a TOML integer
        Value::String(s) => Scalar { dtype: d, bits: s.parse().expect("a u64") },
        v => panic!("{v:?} is not an element"),
    }
}

fn names_of(p: &Program, out: &mut BTreeSet<&'static str>) {
    for e in p.eqns() {
        out.insert(e.op.name());
        e.op.bodies().iter().for_each(|b| names_of(b, out));
    }
}

// ---- running and comparing ----

impl Case {
    /// Whether the backend has every dtype and routine that the plan needs.
    pub fn fits(&self, b: &dyn Backend) -> bool {
        let runs = |s: &Step| !matches!(s, Step::Routine { routine, .. } if !b.runs(routine));
        self.plan.slots.iter().all(|s| b.supports(s.dtype)) && self.plan.steps.iter().all(runs)
    }
    pub fn run(&self, b: &dyn Backend) -> Res<Vec<Vec<u8>>> {
        let executable = b.compile(self.plan.clone().verify()?)?;
        let arg = |x: &Vec<u8>| Ok(RunArg { buffer: b.upload(x)?, donated: false });
        let args = self.ins.iter().map(arg).collect::<Res<_>>()?;
        let outs = executable.run(&RunCx { cancel: &AtomicBool::new(false), world: None }, args)?;
        outs.iter().map(|y| b.download(y)).collect()
    }
    /// The first error of `got`, in words; nothing if all is right.
    pub fn wrong(&self, got: &[Vec<u8>], near: Near) -> Option<String> {
        assert_eq!(got.len(), self.outs.len(), "{}", self.text);
        let (mut lines, mut most) = (vec![], 0);
        for (j, (bytes, want)) in got.iter().zip(&self.outs).enumerate() {
            let got = reference::read(self.plan.slots[self.plan.outputs[j] as usize].dtype, bytes);
            assert_eq!(got.len(), want.len(), "{}", self.text);
            for (i, (g, w)) in got.iter().zip(want).enumerate().filter(|(_, (g, w))| !agree(**g, **w, near)) {
                lines.push(format!("    {j}[{i}]: {g:?} is not {w:?}{}", self.operands(i, want.len())));
                most = most.max(steps_apart(*g, *w));
            }
        }
        let shown = lines.len().min(4);
        (!lines.is_empty()).then(|| {
            let n = lines.len();
            format!("  {}: {n} elements, by up to {most} steps\n{}", self.text, lines[..shown].join("\n"))
        })
    }
    /// The operands of a pointwise result.
    fn operands(&self, i: usize, n: usize) -> String {
        let slots = self.plan.inputs.iter().map(|s| &self.plan.slots[*s as usize]);
        let at = slots.zip(&self.ins).filter(|(s, _)| s.len == n).map(|(s, b)| reference::read(s.dtype, b)[i]);
        format!(" for {:?}", at.collect::<Vec<_>>())
    }
}
fn agree(got: Scalar, want: Scalar, near: Near) -> bool {
    let (g, w) = (got.to_f64(), want.to_f64());
    if got == want || got.dtype.is_float() && g.is_nan() && w.is_nan() {
        return true;
    }
    if !got.dtype.is_float() || g.is_nan() || w.is_nan() {
        return false;
    }
    match near {
        Near::Steps(n) => steps_apart(got, want) <= n && (n > 0 && g != w),
        Near::Units { ulp, scale } => {
            let digits = match got.dtype {
                DType::F16 => 10,
                DType::BF16 => 7,
                DType::F64 => 52,
                _ => 23,
            };
            let flushed = g == 0.0 && w.abs() < f32::MIN_POSITIVE as f64;
            ulp > 0.0 && (flushed || (g - w).abs() <= ulp * 2f64.powi(-digits) * w.abs().max(scale))
        }
    }
}
/// The values of the dtype between two, and one.
fn steps_apart(a: Scalar, b: Scalar) -> u64 {
    let ordered = |s: Scalar| {
        let sign = 1u64 << (8 * s.dtype.size() - 1);
        if s.bits & sign != 0 { -((s.bits & !sign) as i64) } else { s.bits as i64 }
    };
    ordered(a).abs_diff(ordered(b))
}

/// tolerance.toml.
pub struct Tolerances(Table);
impl Tolerances {
    pub fn read() -> Tolerances {
        Tolerances(table(&folder().join("tolerance.toml")))
    }
    /// For a case on a class of backends (`cpu`, `gpu`); exact where there is no row.
    pub fn near(&self, name: &str, class: &str) -> Near {
        let row = self.0.get(name);
        let number =
            |key: &str| row.and_then(|r| r.get(key)).and_then(|v| v.as_float().or(v.as_integer().map(|i| i as f64)));
        match class {
            "gpu" => Near::Units { ulp: number("gpu").unwrap_or(0.0), scale: number("scale").unwrap_or(0.0) },
            class => match number("units") {
                Some(ulp) => Near::Units { ulp, scale: number("scale").unwrap_or(0.0) },
                None => Near::Steps(number(class).unwrap_or(0.0) as u64),
            },
        }
    }
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }
}

/// Runs every case that fits a backend, on all cores; panics with the errors. Returns how many ran,
/// of how many.
pub fn check(class: &str, b: &dyn Backend) -> (usize, usize) {
    let tolerances = Tolerances::read();
    let all: Vec<Case> = families().iter().flat_map(|f| cases(f)).collect();
    let fitting: Vec<&Case> = all.iter().filter(|c| c.fits(b)).collect();
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(vec![]);
    let work = || {
        while let Some(c) = fitting.get(next.fetch_add(1, Ordering::Relaxed)) {
            let what = match c.run(b) {
                Ok(got) => c.wrong(&got, tolerances.near(&c.tolerance, class)),
                Err(e) => Some(format!("  {}: {e}", c.text)),
            };
            wrong.lock().expect("no panic under this lock").extend(what);
        }
    };
    std::thread::scope(|s| {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        (0..cores).for_each(|_| drop(s.spawn(work)));
    });
    let mut wrong = wrong.into_inner().expect("no panic under this lock");
    wrong.sort();
    assert!(wrong.is_empty(), "{class}: {} of {} cases\n{}", wrong.len(), fitting.len(), wrong.join("\n"));
    (fitting.len(), all.len())
}

/// Primitives and routines without a case, of those that compute numbers by themselves.
pub fn missing() -> Vec<&'static str> {
    let mut seen = BTreeSet::new();
    families().iter().flat_map(|f| cases(f)).for_each(|c| seen.extend(c.names));
    let elsewhere: BTreeSet<&str> = crate::examples::ELSEWHERE.iter().map(|e| e.0).collect();
    Op::names().into_iter().filter(|n| !seen.contains(n) && !elsewhere.contains(n)).collect()
}
