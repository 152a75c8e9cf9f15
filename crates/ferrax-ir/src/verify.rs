//! The verifier: every equation's operands are defined before it, and its outputs are what `infer` says of them.
use crate::aval::{Aval, same_avals};
use crate::error::{Error, Res};
use crate::program::{Atom, Program};

pub fn verify(p: &Program) -> Res<()> {
    let mut n = p.first_var();
    let known = |a: &Atom, n: usize| !matches!(a, Atom::Var(v) if *v as usize >= n);
    for (i, e) in p.eqns().iter().enumerate() {
        let at = |m: String| Error::value(format!("equation {i} ({}): {m}", e.op.name()));
        if !e.args.iter().all(|a| known(a, n)) {
            return Err(at("an operand is used before it is defined".into()));
        }
        let ins: Vec<Aval> = e.args.iter().map(|a| p.atom_aval(a)).collect();
        let out = e.op.rules().infer(&ins).map_err(|e| at(e.to_string()))?;
        let declared = &p.avals()[n..n + e.n_out as usize];
        if !same_avals(&out, declared) {
            return Err(at(format!("gives {out:?}, declared {declared:?}")));
        }
        n += e.n_out as usize;
        e.op.bodies().into_iter().try_for_each(|b| verify(b))?;
    }
    if n != p.avals().len() || !p.outs().iter().all(|a| known(a, n)) {
        return Err(Error::value("the program's variables are not dense"));
    }
    Ok(())
}
