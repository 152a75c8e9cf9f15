//! From programs to tokens.
use super::{Family, MAX_DEPTH, Written};
use crate::aval::Aval;
use crate::cx::Fun;
use crate::error::{Error, Res, value_err};
use crate::op::Op;
use crate::ops::call::Call;
use crate::param::Param;
use crate::program::{Atom, Eqn, Program};
use std::collections::HashMap;
use std::sync::Arc;

/// The encoded parts.
#[derive(Default)]
pub struct Encoder {
    tokens: Vec<Written>,
    /// The programs written so far, by their address: they stay alive, so that no other gets it.
    seen: HashMap<*const Program, u64>,
    kept: Vec<Arc<Program>>,
    depth: usize,
}

impl Encoder {
    pub(super) fn into_tokens(self) -> Vec<Written> {
        self.tokens
    }
    /// The encoded bytes, if no size varies.
    pub fn bytes(self) -> Res<Vec<u8>> {
        Ok(Family::of(vec![self])?.bytes())
    }
    pub fn count(&mut self, n: usize) {
        self.tokens.push(Written::Count(n as u64));
    }
    pub fn name(&mut self, s: &str) {
        self.tokens.push(Written::Name(s.into()));
    }
    fn size(&mut self, n: i64) {
        self.tokens.push(Written::Size(n));
    }
    pub fn aval(&mut self, a: &Aval) {
        let axes = a.vary.names();
        self.count(usize::from(!axes.is_empty()) << 9 | (a.tape as usize) << 1 | a.weak as usize);
        self.name(a.dtype.short());
        self.count(a.rank());
        a.shape.iter().for_each(|n| self.size(*n as i64));
        if !axes.is_empty() {
            self.count(axes.len());
            axes.iter().for_each(|n| self.name(n));
        }
    }
    /// A program that holds no arrays.
    ///
    /// # Errors
    /// `NotImplemented` if it calls the host; `Value` if it is nested too deep.
    pub fn program(&mut self, p: &Arc<Program>) -> Res<()> {
        if let Some(n) = self.seen.get(&Arc::as_ptr(p)) {
            self.tokens.push(Written::Count(n + 1));
            return Ok(());
        }
        if !p.held().is_empty() {
            return value_err("a program that holds arrays cannot be written");
        }
        if self.depth == MAX_DEPTH {
            return value_err("programs are nested too deep");
        }
        self.depth += 1;
        self.count(0);
        for n in [p.n_consts(), p.n_ins(), p.eqns().len(), p.n_outs()] {
            self.count(n);
        }
        p.in_avals().iter().for_each(|a| self.aval(a));
        let mut first = p.first_var();
        for e in p.eqns() {
            let next = first + e.n_out as usize;
            self.equation(e, &p.avals()[..first], &p.avals()[first..next])?;
            first = next;
        }
        p.outs().iter().for_each(|a| self.atom(a));
        self.depth -= 1;
        self.seen.insert(Arc::as_ptr(p), self.kept.len() as u64);
        self.kept.push(p.clone());
        Ok(())
    }
    fn atom(&mut self, a: &Atom) {
        match a {
            Atom::Var(v) => self.count(*v as usize + 1),
            Atom::Lit(l) => {
                self.count(0);
                self.name(l.dtype().short());
                self.count(l.weak as usize);
                self.tokens.push(Written::Literal(*l));
            }
        }
    }
    fn equation(&mut self, e: &Eqn, known: &[Aval], outs: &[Aval]) -> Res<()> {
        let ins: Vec<Aval> = e
            .args
            .iter()
            .map(|a| match a {
                Atom::Var(v) => known[*v as usize].clone(),
                Atom::Lit(l) => l.aval(),
            })
            .collect();
        let op = plain(&e.op, &ins)?;
        self.name(op.name());
        let params: Vec<_> = op.params().into_iter().filter(|p| !matches!(p.1, Param::None)).collect();
        self.count(params.len());
        for (k, p, _) in &params {
            self.name(k);
            self.param(p, 0)?;
        }
        self.count(outs.len());
        outs.iter().for_each(|a| self.aval(a));
        self.count(e.args.len());
        e.args.iter().for_each(|a| self.atom(a));
        Ok(())
    }
    fn param(&mut self, p: &Param, depth: usize) -> Res<()> {
        if depth == MAX_DEPTH {
            return value_err("parameters are nested too deep");
        }
        let tag = |me: &mut Encoder, n| me.count(n);
        match p {
            Param::None => tag(self, 0),
            Param::Bool(b) => {
                tag(self, 1);
                self.count(*b as usize);
            }
            Param::Int(n) => {
                tag(self, 2);
                self.size(*n);
            }
            Param::Float(x) => {
                tag(self, 3);
                self.tokens.push(Written::Float(x.to_bits()));
            }
            Param::Str(s) => {
                tag(self, 4);
                self.name(s);
            }
            Param::Dtype(d) => {
                tag(self, 5);
                self.name(d.short());
            }
            Param::Enum(_, s) => {
                tag(self, 6);
                self.name(s);
            }
            Param::Tuple(v) | Param::List(v) => {
                tag(self, if matches!(p, Param::Tuple(_)) { 7 } else { 8 });
                self.count(v.len());
                v.iter().try_for_each(|p| self.param(p, depth + 1))?;
            }
            Param::Struct(_, fields) => {
                tag(self, 9);
                self.count(fields.len());
                fields.iter().try_for_each(|(_, p)| self.param(p, depth + 1))?;
            }
            Param::Prog(p) | Param::Fun(Fun::Prog(p)) => {
                tag(self, 10);
                self.program(p)?;
            }
            Param::Aval(a) => {
                tag(self, 11);
                self.aval(a);
            }
            Param::Policy(p) => {
                tag(self, 4);
                self.name(p.name());
            }
            Param::Fun(Fun::User(_)) | Param::Host(_) => return Err(of_the_host()),
        }
        Ok(())
    }
}
fn of_the_host() -> Error {
    Error::not_implemented("serialization of host_callbacks is not yet implemented")
}

/// The op that means the same without functions of the host language.
fn plain(op: &Op, ins: &[Aval]) -> Res<Op> {
    Ok(match op {
        Op::Foreign(f) => Call::new(f.definition.name(), f.definition.program(&f.opaque, ins)?).into(),
        op if op.params().iter().any(|p| matches!(p.1, Param::Fun(Fun::User(_)))) => match op.means() {
            Some(Fun::Prog(p)) => Call::new(op.name(), p.clone()).into(),
            _ => return Err(of_the_host()),
        },
        op => op.clone(),
    })
}
