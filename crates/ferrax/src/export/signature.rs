//! The inputs and outputs of an exported program, and how the arguments' shapes bind its symbolic
//! sizes.
//!
//! INVARIANT: a binding that is found agrees with every size of every argument and with every constraint.
use super::sizes::SizeExpr;
use ferrax_ir::code::{Decoder, SizeRead};
use ferrax_ir::error::{Res, value_err};
use ferrax_ir::{Aval, Dims, Dtype};

/// A size: a number, or an expression of the signature's variables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExportedSize {
    text: String,
    /// Its value for values of the variables.
    pub expr: SizeExpr,
}
impl ExportedSize {
    /// Parses its text.
    ///
    /// # Errors
    /// `Value` if the text is not an expression of these variables.
    pub fn parse(text: &str, variables: &[String]) -> Res<ExportedSize> {
        Ok(ExportedSize { text: text.into(), expr: SizeExpr::parse(text, variables)? })
    }
    /// As it is written: `3`, `2*b`.
    pub fn text(&self) -> &str {
        &self.text
    }
}
/// The type of an input or output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExportedType {
    /// The user's name for it: `args[0]['w']`; empty for an output.
    pub name: String,
    /// Whether the program reads it.
    pub used: bool,
    /// The element type.
    pub dtype: Dtype,
    /// Whether the dtype yields to others.
    pub weak: bool,
    /// The sizes of the axes.
    pub shape: Vec<ExportedSize>,
}
impl ExportedType {
    /// Whether it is the cotangent of an integer: it has no elements.
    pub fn is_float0(&self) -> bool {
        self.dtype == Dtype::Float0
    }
    fn shape_text(&self) -> String {
        tuple(self.shape.iter().map(|s| s.text.clone()))
    }
}
/// As Python writes a tuple.
fn tuple(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    if items.len() == 1 { format!("({},)", items[0]) } else { format!("({})", items.join(", ")) }
}
/// A constraint on the variables, which are at least 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Constraint {
    /// As the user wrote it: `b >= 4`.
    pub text: String,
    /// The difference of its sides, which is 0, or at least 0.
    pub difference: ExportedSize,
    /// Whether it must be 0.
    pub equal: bool,
}

/// The description of an exported program, without its equations.
#[derive(Clone, Debug, Default)]
pub struct Signature {
    /// The function's name.
    pub fun_name: String,
    /// For each platform, which of the stored programs is for it.
    pub platforms: Vec<(String, usize)>,
    /// Checks of the exporter's that were left out.
    pub disabled_checks: Vec<String>,
    /// Data of the exporting language: the trees of arguments and results.
    pub notes: Vec<u8>,
    /// The version of how it is called.
    pub calling_convention: u32,
    /// The symbolic sizes, each with one at which the function was traced.
    pub variables: Vec<(String, i64)>,
    /// Constraints on these sizes.
    pub constraints: Vec<Constraint>,
    /// The types of the arguments.
    pub inputs: Vec<ExportedType>,
    /// The types of the results.
    pub outputs: Vec<ExportedType>,
}

/// A type as encoded: its sizes are numbers or refer to the file's expressions.
pub(super) struct OpenType {
    name: String,
    used: bool,
    aval: Aval,
    sizes: Vec<SizeRead>,
}
/// The types of inputs and outputs, which precede the code.
pub(super) fn read_types(d: &mut Decoder) -> Res<(Vec<OpenType>, Vec<OpenType>)> {
    let input = |d: &mut Decoder| {
        let (name, used) = (d.name()?.to_string(), d.count()? == 1);
        let (aval, sizes) = d.open_aval()?;
        Ok(OpenType { name, used, aval, sizes })
    };
    let output = |d: &mut Decoder| {
        let (aval, sizes) = d.open_aval()?;
        Ok(OpenType { name: String::new(), used: true, aval, sizes })
    };
    let n = d.count()?;
    let inputs = (0..n).map(|_| input(d)).collect::<Res<_>>()?;
    let n = d.count()?;
    Ok((inputs, (0..n).map(|_| output(d)).collect::<Res<_>>()?))
}
impl OpenType {
    /// The type where these are the values of the expressions.
    pub(super) fn at(&self, sizes: &[i64]) -> Res<Aval> {
        let mut shape = Dims::default();
        for s in &self.sizes {
            let n = match s {
                SizeRead::Known(n) => Some(*n),
                SizeRead::Expression(k) => sizes.get(*k).copied(),
            };
            match n.and_then(|n| usize::try_from(n).ok()) {
                Some(n) => shape.push(n),
                None => return value_err("the program is damaged: a size is not valid"),
            }
        }
        shape.checked(self.aval.dtype.size())?;
        Ok(self.aval.with_shape(shape))
    }
    pub(super) fn closed(&self, sizes: &[ExportedSize]) -> Res<ExportedType> {
        let size = |s: &SizeRead| match s {
            SizeRead::Known(n) if *n >= 0 => ExportedSize::parse(&n.to_string(), &[]),
            SizeRead::Expression(k) if *k < sizes.len() => Ok(sizes[*k].clone()),
            _ => value_err("the program is damaged: a size is not valid"),
        };
        if self.aval.tape > 0 {
            return value_err("the program is damaged: a tape is not an array");
        }
        Ok(ExportedType {
            name: self.name.clone(),
            used: self.used,
            dtype: self.aval.dtype,
            weak: self.aval.weak,
            shape: self.sizes.iter().map(size).collect::<Res<_>>()?,
        })
    }
}

impl Signature {
    /// The names of the symbolic sizes.
    pub fn variable_names(&self) -> Vec<String> {
        self.variables.iter().map(|v| v.0.clone()).collect()
    }
    /// Whether there are symbolic sizes.
    pub fn is_symbolic(&self) -> bool {
        !self.variables.is_empty()
    }
    /// The values of the variables for arguments of these types; `None` is an argument of dtype
    /// float0.
    ///
    /// # Errors
    /// `Value` if the arguments do not fit.
    pub fn bind(&self, args: &[Option<Aval>]) -> Res<Vec<i64>> {
        if args.len() != self.inputs.len() {
            return value_err(format!(
                "Function '{}' was exported with {} flat arguments and called with {}",
                self.fun_name,
                self.inputs.len(),
                args.len()
            ));
        }
        for (want, arg) in self.inputs.iter().zip(args) {
            match arg {
                Some(a) => fits(want, a)?,
                None if want.is_float0() => (),
                None => return value_err(format!("{} is missing", want.name)),
            }
        }
        Solver { of: self, args, values: vec![None; self.variables.len()], obtained: String::new() }.solve()
    }
}
/// An error where rank, dtype, or a size that is a number is another.
fn fits(want: &ExportedType, a: &Aval) -> Res<()> {
    let called = || tuple(a.shape.iter().map(usize::to_string));
    let wrong = |what: &str, place: &str, expected: String, called: String| {
        value_err(format!("{what} mismatch for {}{place}: expected {expected} and called with {called}", want.name))
    };
    if a.rank() != want.shape.len() {
        return wrong("Rank", "", want.shape_text(), called());
    }
    if a.dtype != want.dtype {
        return wrong("Dtype", "", want.dtype.long().into(), a.dtype.long().into());
    }
    for (i, (n, s)) in a.shape.iter().zip(&want.shape).enumerate() {
        if s.expr.number().is_some_and(|want| i64::try_from(*n) != Ok(want)) {
            let place = format!(".shape[{i}] (expected same constant)");
            return wrong("Shape", &place, want.shape_text(), called());
        }
    }
    Ok(())
}

struct Solver<'a> {
    of: &'a Signature,
    args: &'a [Option<Aval>],
    values: Vec<Option<i64>>,
    /// Which values were found, and where, in words.
    obtained: String,
}
/// A size of an argument that is an expression.
struct SizeSpec<'a> {
    place: String,
    size: &'a ExportedSize,
    found: i64,
}
impl Solver<'_> {
    fn solve(mut self) -> Res<Vec<i64>> {
        let mut specs = vec![];
        for (t, a) in self.of.inputs.iter().zip(self.args) {
            let sizes = a.iter().flat_map(|a| a.shape.iter().zip(&t.shape).enumerate());
            for (i, (n, size)) in sizes.filter(|(_, (_, s))| s.expr.number().is_none()) {
                specs.push(SizeSpec { place: format!("{}.shape[{i}]", t.name), size, found: *n as i64 });
            }
        }
        let mut pending: Vec<&SizeSpec> = specs.iter().collect();
        loop {
            let before = pending.len();
            let mut left = vec![];
            for s in pending {
                if !self.step(s)? {
                    left.push(s);
                }
            }
            pending = left;
            if pending.is_empty() || pending.len() == before {
                break;
            }
        }
        let unknown: Vec<String> = (0..self.values.len())
            .filter(|v| self.values[*v].is_none())
            .map(|v| format!("'{}'", self.of.variables[v].0))
            .collect();
        if !unknown.is_empty() {
            let rest: Vec<String> =
                pending.iter().map(|s| format!("'{}' for dimension size {}", s.size.text, s.place)).collect();
            return value_err(format!(
                "Cannot solve for values of dimension variables {{{}}}. We can only solve linear uni-variate constraints. \
                 Using the following polymorphic shapes specifications: {}. Unprocessed specifications: {}.",
                unknown.join(", "),
                self.specifications(),
                rest.join(", ")
            ));
        }
        for s in &specs {
            let v = s.size.expr.value(&self.values)?;
            if v != s.found {
                return self.fail(&format!(
                    "Found inconsistency between dimension size {} (= {}) and the specification '{}' (= {v}).",
                    s.place, s.found, s.size.text
                ));
            }
        }
        for c in &self.of.constraints {
            let v = c.difference.expr.value(&self.values)?;
            let broken = if c.equal { v != 0 } else { v < 0 };
            if broken {
                return value_err(format!(
                    "Input shapes do not match the symbolic shape constraint {}. Expected '{}' to be {} to 0, but found {v}. {}",
                    c.text,
                    c.difference.text,
                    if c.equal { "equal" } else { "greater or equal" },
                    self.context()
                ));
            }
        }
        Ok(self.values.into_iter().flatten().collect())
    }
    /// Whether a size determines no further variable; determines the one unknown variable in it.
    fn step(&mut self, s: &SizeSpec) -> Res<bool> {
        let mut names = vec![];
        s.size.expr.names(&mut names);
        names.retain(|v| self.values[*v].is_none());
        names.sort_unstable();
        names.dedup();
        let v = match names[..] {
            [] => return Ok(true),
            [v] => v,
            _ => return Ok(false),
        };
        let Some((a, c)) = s.size.expr.linear(v, &self.values).filter(|(a, _)| *a != 0) else { return Ok(false) };
        let name = &self.of.variables[v].0;
        let Some(rest) = s.found.checked_sub(c) else { return Ok(false) };
        match (rest.checked_div_euclid(a), rest.checked_rem_euclid(a)) {
            (Some(n), Some(0)) => {
                self.values[v] = Some(n);
                self.obtained += &format!(
                    "'{name}' = {n} from specification '{}' for dimension {} (= {}), ",
                    s.size.text, s.place, s.found
                );
                if n < 1 {
                    return self.fail(&format!("Expected value >= 1 for dimension variable '{name}'."));
                }
                Ok(true)
            }
            (_, r) => self.fail(&format!(
                "Division had remainder {} when computing the value of '{name}'.",
                r.unwrap_or_default()
            )),
        }
    }
    fn specifications(&self) -> String {
        let symbolic = self.of.inputs.iter().filter(|t| t.shape.iter().any(|s| s.expr.number().is_none()));
        symbolic.map(|t| format!("{}.shape = {}", t.name, t.shape_text())).collect::<Vec<_>>().join(",")
    }
    fn context(&self) -> String {
        format!(
            "Using the following polymorphic shapes specifications: {}. Obtained dimension variables: {}.",
            self.specifications(),
            self.obtained
        )
    }
    fn fail<T>(&self, what: &str) -> Res<T> {
        value_err(format!("Input shapes do not match the polymorphic shapes specification. {what} {}", self.context()))
    }
}
