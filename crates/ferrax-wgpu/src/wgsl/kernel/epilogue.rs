//! What is computed of each result of a product, in the pass that has its sums or that adds parts of them.
//!
//! ```text
//!     relu(x @ w + b):   max(s + load b[n], 0)          s = the sum at (m, n)
//! ```
//! A product and what is computed of it are a kernel of one reduction. A pass of tiles has its own way to take that: it needs the nodes behind the
//! reduction, the epilogue. Sums that lie in memory instead are loaded there.
//!
//! INVARIANT: an epilogue sees a sum rounded as the product's result is, and no operation is contracted with the last of its additions.
use super::super::{Place, lane, per_word};
use super::numbers::Numbers;
use super::{Text, check, collapsed, with_outputs, work};
use crate::task::{Limits, Reg};
use ferrax_kernel::kernel::{Access, Affine, Kernel, Node, NodeId};
use ferrax_kernel::{DType, Dims, Error, ReduceKind, Res, Scalar};

/// The nodes behind the one reduction of a kernel.
pub struct Epilogue {
    /// Its reduction is of a constant.
    kernel: Kernel,
    sum: NodeId,
}

impl Epilogue {
    /// # Errors
    /// As [`super::lower`]; `Invalid` for a kernel that has not one reduction.
    pub fn of(k: &Kernel) -> Res<Epilogue> {
        let (id, _) = reduction(k)?;
        let d = k.dtype(id);
        let mut nodes = k.nodes.clone();
        // in place of what it reduces: nodes are in order of definition, and this has no operands
        nodes.insert(0, (d, Node::Const(Scalar::zero(d))));
        nodes[1..].iter_mut().for_each(|(_, n)| n.map_operands(|o| o + 1));
        nodes[id as usize + 1].1 = Node::Reduce { kind: ReduceKind::Sum, of: 0 };
        let outputs: Vec<NodeId> = k.outputs.iter().map(|o| o + 1).collect();
        let all = Kernel { grid: k.grid.clone(), inputs: k.inputs.clone(), nodes, outputs, rdims: Dims::default() };
        let kernel = collapsed(&with_outputs(&all, &all.outputs));
        check(&kernel)?;
        let (sum, _) = reduction(&kernel)?;
        Ok(Epilogue { kernel, sum })
    }
    /// The sums themselves.
    ///
    /// # Errors
    /// As [`Epilogue::of`].
    pub fn none(d: DType, len: usize) -> Res<Epilogue> {
        let nodes = vec![(d, Node::Const(Scalar::zero(d))), (d, Node::Reduce { kind: ReduceKind::Sum, of: 0 })];
        Epilogue::of(&Kernel { grid: [len].into(), nodes, outputs: vec![1], ..Kernel::default() })
    }
    /// Rows of the result must be so many elements, or a multiple.
    pub fn per_word(&self) -> usize {
        self.kernel.output_dtypes().map(per_word).max().unwrap_or(1)
    }
    /// Scalar operations for an element.
    pub fn work(&self) -> u64 {
        work::of_element(&self.kernel)
    }
    /// The inputs that it loads.
    fn inputs(&self) -> impl Iterator<Item = usize> {
        let input = |n: &Node| if let Node::Load(a) = n { Some(a.input as usize) } else { None };
        self.kernel.nodes.iter().filter_map(move |(_, n)| input(n))
    }
    /// Adds the inputs that it loads, of `ins`, to what a pass reads. Gives where each input is.
    pub fn reads(&self, reads: &mut Vec<Reg>, ins: &[Reg]) -> Vec<Place> {
        let mut places = vec![Place::default(); self.kernel.inputs.len()];
        for input in self.inputs() {
            places[input] = Place::of(format!("in{}", crate::task::bound(reads, ins[input])));
        }
        places
    }
    /// Statements that compute and store at most four elements from position `at` on, of those before `end`. Their sums are the components of the
    /// vector `sums`, their outputs those of the pass from number `first` on.
    ///
    /// # Errors
    /// As [`super::lower`].
    pub fn store(&self, places: Vec<Place>, first: usize, limits: Limits) -> Res<String> {
        let to = (0..self.kernel.outputs.len()).map(|o| Place::of(format!("out{}", first + o))).collect();
        let text = Text { k: &self.kernel, places, to, limits, numbers: Numbers::default() };
        let is_float = lane(self.kernel.dtype(self.sum)) == "f32";
        let sum = if is_float { "opaque(sums[j])" } else { "sums[j]" };
        let mut body = String::new();
        text.each_until(&mut body, "at", 4, "end", |text, body| text.epilogue(body, &[(self.sum, sum.into())]))?;
        Ok(body)
    }
}

/// The one reduction of a kernel, and its dtype.
fn reduction(k: &Kernel) -> Res<(NodeId, DType)> {
    let mut all = k.nodes.iter().enumerate().filter(|(_, (_, n))| matches!(n, Node::Reduce { .. }));
    match (all.next(), all.next()) {
        (Some((id, (d, _))), None) => Ok((id as NodeId, *d)),
        _ => Err(Error::Invalid("an epilogue is of one reduction".into())),
    }
}

/// Sums in memory, in parts that are to be added.
pub struct Partial {
    pub parts: usize,
    /// Where a sum is, over `dims` and the parts. The grid of the kernel is `dims` or divides them.
    pub at: Affine,
    pub dims: Dims,
}

impl Partial {
    /// The kernel whose one reduction adds these, which its last input has.
    ///
    /// # Errors
    /// `Invalid` for a kernel that has not one reduction.
    pub fn kernel(&self, k: &Kernel) -> Res<Kernel> {
        let (id, d) = reduction(k)?;
        let mut at = refined(&self.at, &self.dims, &k.grid);
        let (mut rdims, mut sum) = (Dims::default(), Node::Convert(0));
        if self.parts > 1 {
            at.strides.push(self.at.stride(self.dims.len()));
            (rdims, sum) = ([self.parts].into(), Node::Reduce { kind: ReduceKind::Sum, of: 0 });
        }
        let input = k.inputs.len() as u32;
        let load = Access { input, at, guards: vec![].into(), fill: Scalar::zero(d) };
        let mut nodes = k.nodes.clone();
        nodes.insert(0, (d, Node::Load(Box::new(load))));
        nodes[1..].iter_mut().for_each(|(_, n)| n.map_operands(|o| o + 1));
        nodes[id as usize + 1].1 = sum;
        let mut inputs = k.inputs.clone();
        inputs.push((d, self.parts * k.grid.size()));
        let outputs = k.outputs.iter().map(|o| o + 1).collect();
        Ok(Kernel { grid: k.grid.clone(), rdims, inputs, nodes, outputs })
    }
}

/// A form over `dims` as one over dimensions that divide these.
pub fn refined(a: &Affine, dims: &[usize], fine: &[usize]) -> Affine {
    let mut ranges = vec![];
    let mut below = 1;
    for (k, d) in dims.iter().enumerate().rev() {
        ranges.push((below, below * d, a.stride(k)));
        below *= d;
    }
    let mut strides = vec![];
    let mut behind = 1;
    for d in fine.iter().rev() {
        let of = ranges.iter().find(|(from, to, _)| *from <= behind && behind < *to);
        strides.push(of.map_or(0, |(from, _, stride)| stride * (behind / from) as i64));
        behind *= d;
    }
    strides.reverse();
    Affine::new(a.offset, strides)
}
