//! `Gather`: each element of the output computes its source position.
use super::index;
use super::operands::{Argument, Lanes, Reads};
use crate::task::{Limits, Reg};
use crate::wgsl::{self, Lowered};
use ferrax_kernel::routine::{Gather, OutOfBounds};
use ferrax_kernel::{Dims, Res};
use std::fmt::Write;

pub fn lower(g: &Gather, operands: &[Argument], limits: Limits) -> Res<Lowered> {
    let mut reads = Reads::default();
    let x = reads.operand(&operands[0], g.dtype, limits)?;
    let indices = operands[1..].iter().map(|o| reads.operand(o, g.index_dtype, limits)).collect::<Res<Vec<_>>>()?;
    let (text, groups) = wgsl::each(reads.head(1, limits)?, g.dtype, g.out.size(), limits, |body| {
        wgsl::unravel(body, "i", &g.out, 0);
        let positions: Vec<usize> = (0..g.out.len()).filter(|k| !g.offset_dims.contains(k)).collect();
        let starts = Starts {
            indices: &g.indices,
            dtype: g.index_dtype,
            arrays: &indices,
            apart: g.apart,
            positions: &positions,
            map: &g.start_index_map,
            batch: &g.operand_batching_dims,
            index_batch: &g.start_indices_batching_dims,
        };
        let left_out = |axis: usize| g.collapsed_slice_dims.contains(&axis) || g.operand_batching_dims.contains(&axis);
        let window =
            SliceWindow { operand: &g.operand, sizes: &g.slice_sizes, axes: &g.offset_dims, left_out: &left_out };
        window.position(body, &starts);
        let value = x.at("at");
        let fill = wgsl::constant(g.fill);
        if g.mode != OutOfBounds::FillOrDrop {
            return value;
        }
        let _ = writeln!(body, "var value = {fill};\nif (inside) {{ value = {value}; }}");
        "value".into()
    });
    let mut task = Lowered::default();
    task.run(text, reads.regs, vec![Reg::Out(0)], groups);
    Ok(task)
}

/// The starts of windows: index vectors on the last axis of `indices`, one for each position along
/// the axes `positions` (numbers of coordinates).
pub struct Starts<'a> {
    pub indices: &'a Dims,
    pub dtype: ferrax_kernel::DType,
    /// The operand that holds them, or those that hold a component each.
    pub arrays: &'a [Lanes],
    pub apart: bool,
    pub positions: &'a [usize],
    pub map: &'a Dims,
    pub batch: &'a Dims,
    pub index_batch: &'a Dims,
}

impl Starts<'_> {
    /// The start along operand axis `axis`, and whether it is data.
    fn along(&self, axis: usize) -> (String, bool) {
        if let Some(j) = self.map.iter().position(|a| *a == axis) {
            let (array, at) = if self.apart { (j, "vector".into()) } else { (0, format!("vector + {j}")) };
            return (index(self.dtype, &self.arrays[array].at(&at)), true);
        }
        match self.batch.iter().position(|a| *a == axis) {
            Some(j) => (format!("c{}", self.positions[self.index_batch[j]]), false),
            None => ("0".into(), false),
        }
    }
    /// A statement for `vector`, the position of the index vector's first component.
    fn vector(&self) -> String {
        let of = &self.indices[..self.indices.len() - 1];
        let at = self.positions.iter().zip(of).fold("0".to_string(), |at, (c, n)| format!("({at} * {n} + c{c})"));
        let length = if self.apart { 1 } else { self.indices[self.indices.len() - 1] };
        format!("let vector = {at} * {length};\n")
    }
}

/// A window of an operand: its sizes along all axes, and the coordinates that run within it, along those not left out.
pub struct SliceWindow<'a> {
    pub operand: &'a Dims,
    pub sizes: &'a Dims,
    pub axes: &'a Dims,
    pub left_out: &'a dyn Fn(usize) -> bool,
}

impl SliceWindow<'_> {
    /// Statements for `at`, the position in the operand with starts moved inside, and `inside`: whether none had to be moved.
    pub fn position(&self, body: &mut String, starts: &Starts) {
        body.push_str(&starts.vector());
        body.push_str("var inside = true;\nvar at = 0;\n");
        let mut within = self.axes.iter();
        for axis in 0..self.operand.len() {
            let (start, data) = starts.along(axis);
            let within =
                if (self.left_out)(axis) { "0".into() } else { within.next().map_or("0".into(), |c| format!("c{c}")) };
            let n = self.operand[axis];
            let last = n.saturating_sub(self.sizes[axis]);
            if data {
                let _ = writeln!(
                    body,
                    "let s{axis} = {start};\nlet m{axis} = clamp(s{axis}, 0, {last});\ninside = inside && m{axis} == s{axis};"
                );
                let _ = writeln!(body, "at = at * {n} + m{axis} + {within};");
            } else {
                let _ = writeln!(body, "at = at * {n} + {start} + {within};");
            }
        }
    }
}
