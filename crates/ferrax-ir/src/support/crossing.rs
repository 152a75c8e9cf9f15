//! Supports across the border of a body: selectors are operands of its derivative behind all others, and results behind all others.
use super::{Leaf, Pick, Selector, Support};
use crate::aval::Aval;
use crate::cx::{Cx, Tan, truth};
use crate::error::Res;
use crate::program::Program;
use crate::value::{Value, Values};
use std::sync::Arc;

/// The position of a selector in a program made from a body: among its inputs, or among its outputs
/// after the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    In(usize),
    Out(usize),
}
/// A body's derivative with supports of tangents beside them: selectors are operands behind all others, and results behind all others.
pub struct Crossing {
    pub program: Arc<Program>,
    /// For each result that may have a tangent: its support, if it has one.
    pub outs: Vec<Option<Support<Place>>>,
}
/// Tangents without their supports, and those supports with the types of their selectors, which become operands.
pub struct Bared {
    pub values: Vec<Value>,
    pub supports: Vec<Option<Support<Aval>>>,
    pub selectors: Vec<Value>,
}
impl Bared {
    pub fn of(cx: &dyn Cx, t: &[Tan]) -> Res<Bared> {
        let mut all = Bared { values: vec![], supports: vec![], selectors: vec![] };
        for t in t {
            let Some(t) = t else {
                all.supports.push(None);
                continue;
            };
            let (v, s) = cx.bare(t);
            all.values.push(v);
            let typed = s.map(&mut |l: &Leaf| {
                let which = l.which.value(cx)?;
                all.selectors.push(which.clone());
                Ok(Leaf { which: which.aval(), axes: l.axes.clone() })
            })?;
            all.supports.push(Some(typed));
        }
        Ok(all)
    }
}
impl Crossing {
    /// The tangents among the results of the program: `x` were its operands, `y` are its results
    /// after the primal values.
    pub fn tangents(&self, cx: &dyn Cx, x: &[Value], y: &[Value]) -> Res<Vec<Tan>> {
        let (values, selectors) = y.split_at(self.outs.iter().flatten().count());
        let mut values = values.iter();
        let at = |p: &Place| match p {
            Place::In(i) => &x[*i],
            Place::Out(k) => &selectors[*k],
        };
        let one = |s: &Option<Support<Place>>| {
            let Some(s) = s else { return Ok(None) };
            let Some(v) = values.next() else { return Ok(None) };
            let s = s.map(&mut |l| Ok(Leaf { which: Selector::Known(at(&l.which).clone()), axes: l.axes.clone() }))?;
            cx.supported(v.clone(), s).map(Some)
        };
        self.outs.iter().map(one).collect()
    }
}

impl Support<Place> {
    fn equals(&self, o: &Support<Place>) -> bool {
        let same = |(p, q): (&Pick<Place>, &Pick<Place>)| match (p, q) {
            (Pick::Case { which: a, case: i, of: m, clean: c }, Pick::Case { which: b, case: j, of: n, clean: d }) => {
                (i, m, c, a.which) == (j, n, d, b.which) && a.axes == b.axes && matches!(a.which, Place::In(_))
            }
            _ => false,
        };
        self.0.len() == o.0.len() && self.0.iter().zip(&o.0).all(same)
    }
}
impl Crossing {
    /// The results of the program for `x`: those that are no tangents, the tangents with their supports, and the selectors it made.
    pub fn results(&self, cx: &dyn Cx, x: &[Value], n_plain: usize) -> Res<Results> {
        let y = cx.inline(&self.program, x)?;
        let n = n_plain + self.outs.iter().flatten().count();
        let at = |p: &Place| match p {
            Place::In(i) => &x[*i],
            Place::Out(k) => &y[n + k],
        };
        let mut values = y[n_plain..n].iter();
        let one = |s: &Option<Support<Place>>| {
            let Some((s, v)) = s.as_ref().zip(if s.is_some() { values.next() } else { None }) else { return Ok(None) };
            let s = s.map(&mut |l| Ok(Leaf { which: Selector::Known(at(&l.which).clone()), axes: l.axes.clone() }))?;
            Ok(Some((v.clone(), s)))
        };
        let tangents = self.outs.iter().map(one).collect::<Res<_>>()?;
        Ok((y[..n_plain].to_vec(), tangents, y[n..].to_vec()))
    }
}
/// The result of [`Crossing::results`].
type Results = (Vec<Value>, Vec<Option<(Value, Support)>>, Vec<Value>);
/// The derivatives of several branches, only one of which runs, brought to the same results: a
/// tangent that any branch has, all return; a support that differs between them becomes a mask.
/// `outs` are the types of the tangents, `n_plain` is the number of results before them.
pub fn agreed(
    cx: &dyn Cx,
    made: &[Arc<Crossing>],
    ins: &[Aval],
    outs: &[Aval],
    n_plain: usize,
) -> Res<(Vec<Arc<Program>>, Vec<Option<Support<Place>>>)> {
    let mut all: Vec<Option<Support<Place>>> = vec![];
    let mut masked = vec![];
    for k in 0..outs.len() {
        let each: Vec<Option<&Support<Place>>> = made.iter().map(|c| c.outs[k].as_ref()).collect();
        let first = each.iter().flatten().next();
        let same = |s: &Option<&Support<Place>>| s.is_some_and(|s| first.is_some_and(|f| f.equals(s)));
        all.push(match first {
            None => None,
            Some(f) if each.iter().all(same) => Some((*f).clone()),
            Some(_) if each.iter().flatten().all(|s| s.is_everywhere()) => Some(Support::everywhere()),
            Some(_) => {
                masked.push(k);
                Some(Support::of_mask(Place::Out(masked.len() - 1), outs[k].rank()))
            }
        });
    }
    let n = n_plain + all.iter().flatten().count();
    let fits =
        |c: &Arc<Crossing>| c.program.n_outs() == n && c.outs.iter().zip(&all).all(|(a, b)| a.is_some() == b.is_some());
    if masked.is_empty() && made.iter().all(fits) {
        return Ok((made.iter().map(|c| c.program.clone()).collect(), all));
    }
    let wrap = |c: &Arc<Crossing>| -> Res<Arc<Program>> {
        let (p, consts) = cx.recur().stage(ins, &|cx, x| {
            let (mut flat, tangents, _) = c.results(cx, x, n_plain)?;
            let mut masks = vec![];
            for (k, a) in outs.iter().enumerate().filter(|(k, _)| all[*k].is_some()) {
                flat.push(tangents[k].as_ref().map_or_else(|| cx.zeros(a), |t| Ok(t.0.clone()))?);
                if masked.contains(&k) {
                    let mask = tangents[k].as_ref().map_or_else(|| Ok(truth(false)), |t| t.1.mask(cx, &a.shape))?;
                    masks.push(cx.stretch(&mask, &a.shape)?);
                }
            }
            flat.extend(masks);
            Ok(Values::from(flat))
        })?;
        Ok(if consts.is_empty() { p } else { Arc::new(p.with_consts(0).hold(consts)) })
    };
    Ok((made.iter().map(wrap).collect::<Res<_>>()?, all))
}
