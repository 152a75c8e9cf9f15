//! The verifier: every equation's operands are defined before it, and its outputs have the types that `infer` gives.
use crate::aval::{Aval, same_avals};
use crate::cut::Lenient;
use crate::error::{Error, ErrorKind, Res};
use crate::program::{Atom, Program};
use crate::text::{letters, print};

pub fn verify(p: &Program) -> Res<()> {
    let _typed = Lenient::enter();
    let mut n = p.first_var();
    let wrong = |m: String| Error::new(ErrorKind::JaxprType, m);
    let known = |a: &Atom, n: usize| !matches!(a, Atom::Var(v) if *v as usize >= n);
    for (i, e) in p.eqns().iter().enumerate() {
        let at = |m: String| {
            wrong(format!("{m}\n\nin equation {i}: {}\n\nwhile checking jaxpr:\n\n{}", e.op.name(), print(p)))
        };
        if let Some(Atom::Var(v)) = e.args.iter().find(|a| !known(a, n)) {
            return Err(at(format!("Variable '{}' not defined", letters(*v as usize))));
        }
        let ins: Vec<Aval> = e.args.iter().map(|a| p.atom_aval(a)).collect();
        let out = e.op.results(&ins).map_err(|e| at(e.to_string()))?;
        let declared = &p.avals()[n..n + e.n_out as usize];
        if !same_avals(&out, declared) {
            let k = (0..declared.len().min(out.len())).find(|k| !same_avals(&out[*k..=*k], &declared[*k..=*k]));
            return Err(at(match k {
                Some(k) => format!(
                    "Value for variable '{}' inconsistently typed as {} for let-binder of type {}",
                    letters(n + k),
                    out[k],
                    declared[k]
                ),
                None => format!("{} outputs are declared, but there are {}", declared.len(), out.len()),
            }));
        }
        n += e.n_out as usize;
        e.op.bodies().into_iter().try_for_each(|b| verify(b))?;
    }
    if n != p.avals().len() || !p.outs().iter().all(|a| known(a, n)) {
        return Err(wrong("the program's variables are not dense".into()));
    }
    Ok(())
}
