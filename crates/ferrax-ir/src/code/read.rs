//! From bytes to programs.
use super::{MAX_DEPTH, of_whole};
use crate::aval::{Aval, Lit, same_avals};
use crate::dtype::Dtype;
use crate::error::{Error, Res, value_err};
use crate::op::Op;
use crate::param::{Param, ParamMap};
use crate::program::{Atom, Eqn, Program};
use crate::vary::Vary;
use ferrax_kernel::Dims;
use std::sync::Arc;

/// Reads the output of an encoder.
pub struct Decoder<'a> {
    rest: &'a [u8],
    names: Vec<Arc<str>>,
    programs: Vec<Arc<Program>>,
    /// The values of the expressions.
    sizes: &'a [i64],
    /// Those of them that are the bits of doubles, for constants; sizes beyond its end are not.
    fractions: &'a [bool],
    depth: usize,
}

/// A size as encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SizeRead {
    Known(i64),
    /// The expression of that number.
    Expression(usize),
}

fn damaged<T>(what: &str) -> Res<T> {
    value_err(format!("the program is damaged: {what}"))
}

impl<'a> Decoder<'a> {
    /// `sizes`: the values of the expressions for sizes.
    pub fn new(bytes: &'a [u8], sizes: &'a [i64]) -> Decoder<'a> {
        Decoder { rest: bytes, names: vec![], programs: vec![], sizes, fractions: &[], depth: 0 }
    }
    /// As `new`; `fractions`: which of the sizes are the bits of doubles.
    pub fn with_fractions(bytes: &'a [u8], sizes: &'a [i64], fractions: &'a [bool]) -> Decoder<'a> {
        Decoder { fractions, ..Decoder::new(bytes, sizes) }
    }
    fn is_fraction(&self, k: usize) -> bool {
        self.fractions.get(k).copied().unwrap_or_default()
    }
    /// An error unless all was read.
    pub fn end(&self) -> Res<()> {
        if self.rest.is_empty() { Ok(()) } else { damaged("something comes after its end") }
    }
    fn take(&mut self, n: usize) -> Res<&'a [u8]> {
        match self.rest.split_at_checked(n) {
            Some((head, rest)) => {
                self.rest = rest;
                Ok(head)
            }
            None => damaged("it ends too early"),
        }
    }
    fn varint(&mut self) -> Res<u64> {
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let b = self.take(1)?[0];
            n |= u64::from(b & 0x7f) << shift;
            if b < 0x80 {
                return if shift == 63 && b > 1 { damaged("a number is too large") } else { Ok(n) };
            }
        }
        damaged("a number is too large")
    }
    /// The length of a sequence, each element of which takes at least a byte.
    pub fn count(&mut self) -> Res<usize> {
        let n = self.varint()?;
        match usize::try_from(n) {
            Ok(n) if n <= self.rest.len() => Ok(n),
            _ => damaged("a count exceeds the data"),
        }
    }
    /// A number that counts nothing.
    fn choice(&mut self) -> Res<u64> {
        self.varint()
    }
    pub fn name(&mut self) -> Res<Arc<str>> {
        match self.varint()? {
            0 => {
                let n = self.count()?;
                let Ok(s) = std::str::from_utf8(self.take(n)?) else { return damaged("a name is not valid UTF-8") };
                self.names.push(s.into());
                Ok(s.into())
            }
            n => match usize::try_from(n - 1).ok().and_then(|n| self.names.get(n)) {
                Some(s) => Ok(s.clone()),
                None => damaged("it refers to a name that does not exist"),
            },
        }
    }
    fn size(&mut self) -> Res<SizeRead> {
        Ok(match self.varint()? {
            0 => {
                let n = self.varint()?;
                SizeRead::Known((n >> 1) as i64 ^ -((n & 1) as i64))
            }
            n => SizeRead::Expression(usize::try_from(n - 1).unwrap_or(usize::MAX)),
        })
    }
    fn value(&self, s: SizeRead) -> Res<i64> {
        match s {
            SizeRead::Known(n) => Ok(n),
            SizeRead::Expression(k) => match self.sizes.get(k) {
                Some(n) if !self.is_fraction(k) => Ok(*n),
                _ => damaged("it refers to a size that does not exist"),
            },
        }
    }
    fn dtype(&mut self) -> Res<Dtype> {
        let name = self.name()?;
        Dtype::from_short(&name).map_or_else(|| damaged(&format!("there is no dtype {name}")), Ok)
    }
    /// A type whose sizes may be expressions.
    pub fn open_aval(&mut self) -> Res<(Aval, Vec<SizeRead>)> {
        let flags = self.choice()?;
        let dtype = self.dtype()?;
        let rank = self.count()?;
        let sizes = (0..rank).map(|_| self.size()).collect::<Res<Vec<_>>>()?;
        let (varies, Ok(tape)) = (flags >> 9 & 1 == 1, u8::try_from(flags >> 1 & !(1 << 8))) else {
            return damaged("a type is not valid");
        };
        let axes = if varies { self.count()? } else { 0 };
        let vary = Vary::of((0..axes).map(|_| self.name()).collect::<Res<Vec<_>>>()?);
        Ok((Aval { weak: flags & 1 == 1, tape, vary, ..Aval::scalar(dtype) }, sizes))
    }
    pub fn aval(&mut self) -> Res<Aval> {
        let (a, sizes) = self.open_aval()?;
        let mut shape = Dims::default();
        for s in sizes {
            let n = self.value(s)?;
            match usize::try_from(n) {
                Ok(n) => shape.push(n),
                Err(_) => return value_err(format!("a size of the program is negative: {n}")),
            }
        }
        shape.checked(a.dtype.size())?;
        Ok(a.with_shape(shape))
    }
    fn literal(&mut self) -> Res<Lit> {
        let (dtype, weak) = (self.dtype()?, self.choice()? == 1);
        match self.varint()? {
            0 => {
                let b = self.take(8)?;
                let bits = u64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]);
                Lit::from_bits(dtype, bits, weak).map_or_else(|| damaged("a literal is not valid"), Ok)
            }
            n => {
                let k = usize::try_from(n - 1).unwrap_or(usize::MAX);
                if let Some(bits) = self.sizes.get(k)
                    && self.is_fraction(k)
                {
                    if !dtype.is_float() {
                        return damaged("a literal is not valid");
                    }
                    let mut l = Lit::from_f64(dtype, f64::from_bits(*bits as u64));
                    l.weak = weak;
                    return Ok(l);
                }
                let n = self.value(SizeRead::Expression(k))?;
                if dtype.num().is_none() { damaged("a literal is not valid") } else { Ok(of_whole(dtype, weak, n)) }
            }
        }
    }
    fn atom(&mut self, defined: usize) -> Res<Atom> {
        match self.choice()? {
            0 => self.literal().map(Atom::Lit),
            n => match u32::try_from(n - 1) {
                Ok(v) if (v as usize) < defined => Ok(Atom::Var(v)),
                _ => damaged("a variable is used before it is defined"),
            },
        }
    }
    /// A program, each of whose equations fits its operands and results.
    pub fn program(&mut self) -> Res<Arc<Program>> {
        let n = self.choice()?;
        if n > 0 {
            return match usize::try_from(n - 1).ok().and_then(|n| self.programs.get(n)) {
                Some(p) => Ok(p.clone()),
                None => damaged("it refers to a program that does not exist"),
            };
        }
        if self.depth == MAX_DEPTH {
            return damaged("programs are nested too deep");
        }
        self.depth += 1;
        let p = Arc::new(self.program_here()?);
        self.depth -= 1;
        self.programs.push(p.clone());
        Ok(p)
    }
    fn program_here(&mut self) -> Res<Program> {
        let (n_consts, n_ins, n_eqns, n_outs) = (self.count()?, self.count()?, self.count()?, self.count()?);
        let mut avals = (0..n_ins).map(|_| self.aval()).collect::<Res<Vec<_>>>()?;
        let mut eqns = vec![];
        for _ in 0..n_eqns {
            eqns.push(self.equation(&mut avals)?);
        }
        let outs = (0..n_outs).map(|_| self.atom(avals.len())).collect::<Res<Vec<_>>>()?;
        Program::new(n_consts, n_ins, avals, eqns, outs, vec![])
    }
    fn equation(&mut self, avals: &mut Vec<Aval>) -> Res<Eqn> {
        let name = self.name()?;
        let n = self.count()?;
        let params = (0..n).map(|_| Ok((self.name()?.to_string(), self.param(0)?))).collect::<Res<Vec<_>>>()?;
        let mut params = ParamMap::new(params);
        let n_out = self.count()?;
        let outs = (0..n_out).map(|_| self.aval()).collect::<Res<Vec<_>>>()?;
        let n_args = self.count()?;
        let args = (0..n_args).map(|_| self.atom(avals.len())).collect::<Res<_>>()?;
        params.outs.clone_from(&outs);
        let eqn = Eqn { op: Op::from_name(&name, params)?, args, n_out: n_out as u32 };
        let aval = |a: &Atom| match a {
            Atom::Var(v) => avals[*v as usize].clone(),
            Atom::Lit(l) => l.aval(),
        };
        let found = eqn.op.results(&eqn.args.iter().map(aval).collect::<Vec<_>>())?;
        if !same_avals(&found, &outs) {
            return Err(Error::value(format!("{name} returns {found:?}, not {outs:?}")));
        }
        avals.extend(outs);
        Ok(eqn)
    }
    fn param(&mut self, depth: usize) -> Res<Param> {
        if depth == MAX_DEPTH {
            return damaged("parameters are nested too deep");
        }
        Ok(match self.choice()? {
            0 => Param::None,
            1 => Param::Bool(self.choice()? == 1),
            2 => {
                let n = self.size()?;
                Param::Int(self.value(n)?)
            }
            3 => {
                let b = self.take(8)?;
                Param::Float(f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]))
            }
            4 => Param::Str(self.name()?),
            5 => Param::Dtype(self.dtype()?),
            6 => Param::Enum("", self.name()?),
            k @ (7 | 8) => {
                let n = self.count()?;
                let v = (0..n).map(|_| self.param(depth + 1)).collect::<Res<_>>()?;
                if k == 7 { Param::Tuple(v) } else { Param::List(v) }
            }
            9 => {
                let n = self.count()?;
                Param::Struct("", (0..n).map(|_| Ok(("", self.param(depth + 1)?))).collect::<Res<_>>()?)
            }
            10 => Param::Prog(self.program()?),
            11 => Param::Aval(self.aval()?),
            _ => return damaged("a parameter is missing"),
        })
    }
}
