//! `Conv`: blocks of rows are read out of the array into scratch memory, some terms at a time, and multiplied by [`ferrax_host::panel`].
//!
//! ```text
//! for each block of rows, for each piece of the terms:
//!     packed[row, term] = x[at(batch, row, term)]       (0 where a guard refuses it; rows or terms innermost, whichever lie in runs)
//!     out[row, n] += packed[row, term] * y[term, n]
//! ```
//!
//! Strategies, in the order in which they are tried:
//!
//! | strategy | where | what is copied |
//! |---|---|---|
//! | [`groups`] | groups of few columns | cells of as many groups as fill a vector |
//! | direct | rows and terms are one stride each, and no guard refuses anything | nothing: x itself is the left side |
//! | [`lines`] | windows overlap along an axis | a line of x once for all its windows: rows of the left side overlap |
//! | [`planes`] | the result lies along its places, and so does x | a part of each plane once for all its windows |
//! | packed | anywhere | each row of the left side |
mod grouped;
mod groups;
mod interleaved;
mod lines;
mod planes;
mod reading;
mod windows;

use self::reading::ReadAxis;
use self::windows::ConvWindows;
use super::Run;
use super::dot;
use crate::threads::Cost;
use crate::tuning::Target;
use ferrax_kernel::Res;
use ferrax_kernel::routine::Conv;
use std::ops::Range;

/// The axes of rows and of terms, an axis of one index before them.
struct ConvAxes {
    rows: Vec<ReadAxis>,
    terms: Vec<ReadAxis>,
}
impl ConvAxes {
    fn of(c: &Conv) -> ConvAxes {
        let (nb, nr, nt) = (c.batch.len(), c.rows.len(), c.terms.len());
        let sizes = c.batch.concat(&c.rows).concat(&c.terms);
        let axis = |k: usize| ReadAxis {
            n: sizes[k],
            stride: c.at.stride(k),
            steps: c.guards.iter().map(|g| g.at.stride(k)).collect(),
            unit: 1,
        };
        let axes = |r: Range<usize>| std::iter::once(ReadAxis::one(c.guards.len())).chain(r.map(axis)).collect();
        ConvAxes { rows: axes(nb..nb + nr), terms: axes(nb + nr..nb + nr + nt) }
    }
}

fn cost(c: &Conv) -> Cost {
    let each = (c.batch.size() * c.rows.size()) as f64 * c.terms.size() as f64;
    Cost::of(each * (c.columns as f64 * dot::NANOS + 0.2))
}

pub fn compile(c: &Conv, target: &Target) -> Res<Run> {
    let axes = ConvAxes::of(c);
    if let Some(groups) = groups::compile(c, &axes, target) {
        return Ok(groups);
    }
    let windows = ConvWindows::new(c, &axes, target);
    if windows.are_packed()
        && let Some(planes) = planes::compile(c, &axes, target)
    {
        return Ok(planes);
    }
    Ok(Box::new(windows))
}
