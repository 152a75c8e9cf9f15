//! A kernel as a task: one pass, or several for large reductions.
//!
//! ```text
//!     invocation t:  for each of its consecutive elements i:  coordinates of i; nodes in order; stores
//! ```
mod alike;
pub mod epilogue;
mod numbers;
mod reduce;
pub mod rows;
pub mod work;

use super::{Place, entry, lane, per_word, scalar, to_word, unravel};
use crate::device::pipeline::Source;
use crate::task::{Limits, Pass, Reg, Task};
use ferrax_kernel::kernel::{Affine, Kernel, Node, NodeId};
use ferrax_kernel::{DType, Dims, Error, Res};
use numbers::Numbers;
use std::fmt::Write;

pub type Lowered = Task<Source>;

/// The task of `k`, whose inputs and outputs are the task's.
///
/// # Errors
/// `Unsupported` for dtypes wider than 32 bits and for positions beyond 2^31; `Invalid` for functions a dtype does not have.
pub fn lower(k: &Kernel, limits: Limits) -> Res<Lowered> {
    let mut task = Task::default();
    if k.grid.size() == 0 {
        return Ok(task);
    }
    // One buffer is kept for the partial results of reductions, one for bundled inputs.
    let room = limits.buffers.saturating_sub(2).max(2);
    for (chunk, outs) in k.outputs.chunks(room / 2).enumerate() {
        let part = collapsed(&with_outputs(k, outs));
        check(&part)?;
        let first = chunk * (room / 2);
        let outs: Vec<Reg> = (first..first + outs.len()).map(Reg::Out).collect();
        let (reads, places) = bundle(&mut task, &part, room - outs.len());
        let to = (0..outs.len()).map(|o| Place::of(format!("out{o}"))).collect();
        Text { k: &part, places, to, limits, numbers: numbers::Numbers::of(&part) }.passes(&mut task, reads, outs)?;
    }
    Ok(task)
}

/// Statements of one workgroup for all elements of a kernel without reductions.
///
/// # Errors
/// As [`lower`].
pub fn in_workgroup(k: &Kernel, places: Vec<Place>, to: Vec<Place>, limits: Limits) -> Res<String> {
    let k = collapsed(&with_outputs(k, &k.outputs));
    check(&k)?;
    let text = Text { k: &k, places, to, limits, numbers: Numbers::default() };
    let each = text.consecutive();
    let (units, size) = (k.grid.size().div_ceil(each), limits.workgroup);
    let mut body = format!("for (var t = i32(local); t < {units}; t += {size}) {{\n");
    text.each_output(&mut body, "t", each, |text, body| text.epilogue(body, &[]))?;
    Ok(body + "}\n")
}

/// A function `name` of a position that gives the lane of the one output there, for a kernel without reductions.
///
/// # Errors
/// As [`lower`].
pub fn function(k: &Kernel, name: &str, places: Vec<Place>, limits: Limits) -> Res<String> {
    let k = collapsed(&with_outputs(k, &k.outputs));
    check(&k)?;
    let text = Text { k: &k, places, to: vec![], limits, numbers: Numbers::default() };
    let mut body = String::new();
    unravel(&mut body, "i", &k.grid, 0);
    text.epilogue(&mut body, &[])?;
    let [out] = k.outputs[..] else { return Err(Error::Invalid("a function has one result".into())) };
    Ok(format!("fn {name}(i: i32) -> {} {{\n{body}return n{out};\n}}\n", lane(k.dtype(out))))
}

pub struct Text<'a> {
    pub k: &'a Kernel,
    /// Of inputs, and of outputs.
    pub places: Vec<Place>,
    pub to: Vec<Place>,
    pub limits: Limits,
    pub numbers: Numbers,
}

impl Text<'_> {
    fn passes(&self, task: &mut Lowered, reads: Vec<Reg>, outs: Vec<Reg>) -> Res<()> {
        let reductions = reduce::of(self.k);
        if reductions.is_empty() || self.k.rdims.size() == 0 {
            let constants: Vec<(NodeId, String)> = reductions.iter().map(|r| (r.node, r.of_nothing())).collect();
            let mut body = String::new();
            self.each_output(&mut body, "t", self.consecutive(), |text, body| text.epilogue(body, &constants))?;
            let (size, each) = (self.k.grid.size(), self.consecutive());
            let groups = self.limits.groups_for(size.div_ceil(each));
            let body = format!("if (t * {each} >= {}) {{ return; }}\n{body}", self.numbers.size(size));
            let wgsl = entry(reads.len(), outs.len(), self.limits.workgroup, &body);
            let work = work::of_element(self.k).saturating_mul(size as u64);
            task.run_with(wgsl, reads, outs, groups, self.numbers.words(), work);
            return Ok(());
        }
        reduce::passes(self, task, &reductions, reads, outs)
    }

    /// How many consecutive elements an invocation does, so that it writes whole words.
    pub fn consecutive(&self) -> usize {
        self.k.output_dtypes().map(per_word).max().unwrap_or(1)
    }

    /// Text that runs `f` for the consecutive elements `i` of group number `first`, and stores the
    /// results.
    pub fn each_output(
        &self,
        body: &mut String,
        first: &str,
        n: usize,
        f: impl Fn(&Self, &mut String) -> Res<()>,
    ) -> Res<()> {
        if n == 1 {
            let _ = writeln!(body, "let i = {first};");
            unravel(body, "i", &self.k.grid, 0);
            f(self, body)?;
            return self.stores(body);
        }
        let end = self.numbers.size(self.k.grid.size());
        self.each_until(body, &format!("{first} * {n}"), n, &end, f)
    }
    /// The same for at most `n` elements from `at` on, of those before `end`.
    fn each_until(
        &self,
        body: &mut String,
        at: &str,
        n: usize,
        end: &str,
        f: impl Fn(&Self, &mut String) -> Res<()>,
    ) -> Res<()> {
        for o in self.narrow_outputs() {
            let _ = writeln!(body, "var w{o}: u32 = 0u;");
        }
        let _ = writeln!(body, "for (var j = 0; j < {n}; j++) {{\nlet i = {at} + j;\nif (i >= {end}) {{ break; }}");
        unravel(body, "i", &self.k.grid, 0);
        f(self, body)?;
        self.stores(body)?;
        body.push_str("}\n");
        Ok(())
    }

    fn narrow_outputs(&self) -> impl Iterator<Item = usize> {
        self.k.output_dtypes().enumerate().filter(|(_, d)| per_word(*d) > 1).map(|(o, _)| o)
    }

    fn stores(&self, body: &mut String) -> Res<()> {
        for (o, id) in self.k.outputs.iter().enumerate() {
            let d = self.k.dtype(*id);
            let (word, in_word, to) = (to_word(d, &format!("n{id}")), per_word(d), &self.to[o]);
            let _ = if in_word == 1 {
                writeln!(body, "{} = {word};", to.word("i"))
            } else {
                let (last, bits) = (in_word - 1, 32 / in_word);
                writeln!(
                    body,
                    "w{o} |= {word} << (u32(i & {last}) * {bits}u);\nif ((i & {last}) == {last} || i == {} - 1) {{ {} = w{o}; w{o} = 0u; }}",
                    self.numbers.size(self.k.grid.size()),
                    to.word(&format!("i / {in_word}"))
                )
            };
        }
        Ok(())
    }

    /// The nodes that outputs need, once the reductions are known as `reduced`.
    pub fn epilogue(&self, body: &mut String, reduced: &[(NodeId, String)]) -> Res<()> {
        for (node, value) in reduced {
            let _ = writeln!(body, "let n{node} = {value};");
        }
        self.nodes(body, &self.k.needed(self.k.outputs.iter().copied()))
    }

    /// A `let` for each requested node but reductions, over coordinates that are in scope.
    pub fn nodes(&self, body: &mut String, wanted: &[bool]) -> Res<()> {
        let alike = alike::of(self.k);
        for (id, (d, node)) in self.k.nodes.iter().enumerate().filter(|(id, _)| wanted[*id]) {
            let n = |o: &NodeId| format!("n{o}");
            let of = |o: &NodeId| self.k.dtype(*o);
            let value = match node {
                Node::Reduce { .. } => continue,
                Node::Load(a) if !a.guards.is_empty() => {
                    let passes: Vec<String> = a.guards.iter().map(|g| self.numbers.guard(g)).collect();
                    // one place that no guard lets through is still validated
                    let still = a.at.strides.iter().all(|s| *s == 0) && a.at.offset < 0;
                    let at = if still { "0".to_string() } else { self.numbers.affine(&a.at) };
                    let _ = writeln!(
                        body,
                        "var n{id} = {};\nif ({}) {{ n{id} = {}; }}",
                        self.numbers.constant(a.fill),
                        passes.join(" && "),
                        self.places[a.input as usize].load(*d, &at)
                    );
                    continue;
                }
                Node::Load(a) => self.places[a.input as usize].load(*d, &self.numbers.affine(&a.at)),
                Node::Const(s) => self.numbers.constant(*s),
                Node::Index(a) => known(*d, scalar::convert(DType::I32, *d, &format!("({})", self.numbers.affine(a)))),
                Node::Un(f, x) => scalar::un(*f, of(x), &n(x))?,
                Node::Bin(f, x, y)
                    if of(x).is_float() && !f.is_comparison() && alike[*x as usize] == alike[*y as usize] =>
                {
                    scalar::bin(*f, of(x), &n(x), &format!("again({})", n(y)))?
                }
                Node::Bin(f, x, y) => scalar::bin(*f, of(x), &n(x), &n(y))?,
                Node::Select { p, t, f } => format!("select({}, {}, {})", n(f), n(t), n(p)),
                Node::Convert(x) if !of(x).is_float() => known(*d, scalar::convert(of(x), *d, &n(x))),
                Node::Convert(x) => scalar::convert(of(x), *d, &n(x)),
                Node::Bitcast(x) => known(*d, super::from_word(*d, &format!("({})", to_word(of(x), &n(x))))),
                Node::Round { of: x, exponent, mantissa } => scalar::round(*d, &n(x), *exponent, *mantissa),
            };
            let _ = writeln!(body, "let n{id} = {value};");
        }
        Ok(())
    }
}

/// A lane of `d` computed from integers or bools, which may be visible to the driver; a float is
/// made opaque.
fn known(d: DType, value: String) -> String {
    if d.is_float() { format!("opaque({value})") } else { value }
}

/// The kernel of some of the outputs: the nodes they need, and the inputs those load.
pub fn with_outputs(k: &Kernel, outputs: &[NodeId]) -> Kernel {
    let mut live = vec![false; k.nodes.len()];
    outputs.iter().for_each(|o| live[*o as usize] = true);
    for id in (0..k.nodes.len()).rev() {
        if live[id] {
            k.nodes[id].1.operands().iter().for_each(|o| live[*o as usize] = true);
        }
    }
    let mut out =
        Kernel { grid: k.grid.clone(), rdims: k.rdims.clone(), inputs: k.inputs.clone(), ..Kernel::default() };
    let mut at = vec![0; k.nodes.len()];
    for (id, (d, node)) in k.nodes.iter().enumerate().filter(|(id, _)| live[*id]) {
        let mut node = node.clone();
        node.map_operands(|o| at[o as usize]);
        at[id] = out.nodes.len() as NodeId;
        out.nodes.push((*d, node));
    }
    out.outputs = outputs.iter().map(|o| at[*o as usize]).collect();
    out
}
/// The same kernel with neighbouring dimensions that every affine form steps through alike made one, and those of size 1 dropped.
fn collapsed(k: &Kernel) -> Kernel {
    let mut k = k.clone();
    let rank = k.grid.len();
    let mut dims: Vec<usize> = k.domain().to_vec();
    let mut of_grid: Vec<bool> = (0..dims.len()).map(|d| d < rank).collect();
    let mut d = 0;
    while d < dims.len() {
        let merges = d + 1 < dims.len()
            && of_grid[d] == of_grid[d + 1]
            && forms(&mut k).iter().all(|f| f.stride(d) == f.stride(d + 1).saturating_mul(dims[d + 1] as i64));
        let drop = dims[d] == 1 || merges;
        if !drop {
            d += 1;
            continue;
        }
        if merges && dims[d] != 1 {
            dims[d + 1] *= dims[d];
        }
        dims.remove(d);
        of_grid.remove(d);
        for f in forms(&mut k) {
            if d < f.strides.len() {
                f.strides.remove(d);
            }
        }
        d = d.saturating_sub(1);
    }
    let n_grid = of_grid.iter().filter(|g| **g).count();
    k.grid = Dims::new(&dims[..n_grid]);
    // A nonzero rank marks a reduction; its size determines the loop.
    k.rdims = Dims::new(&dims[n_grid..]);
    k
}
/// All affine forms of the kernel.
fn forms(k: &mut Kernel) -> Vec<&mut Affine> {
    let mut all = vec![];
    for (_, n) in &mut k.nodes {
        match n {
            Node::Index(a) => all.push(a),
            Node::Load(a) => {
                all.push(&mut a.at);
                all.extend(a.guards.iter_mut().map(|g| &mut g.at));
            }
            _ => (),
        }
    }
    all
}

/// Positions are `i32` in shaders, elements at most 32 bits wide.
fn check(k: &Kernel) -> Res<()> {
    let wide = k.nodes.iter().map(|n| n.0).find(|d| d.size() > 4);
    if let Some(d) = wide {
        return Err(Error::Unsupported(format!("{} has no place on this device, which computes in 32 bits", d.long())));
    }
    let domain = k.domain();
    let reach = i32::MAX as i64 - (1 << 24);
    let fits = |a: &Affine| a.range(&domain).is_none_or(|(lo, hi)| lo >= -reach && hi <= reach);
    let mut copy = k.clone();
    let fits = forms(&mut copy).into_iter().all(|a| fits(a))
        && [k.grid.size(), k.rdims.size()].iter().all(|n| *n as i64 <= reach);
    if fits {
        Ok(())
    } else {
        Err(Error::Unsupported(format!("a kernel over {} by {} has positions beyond 2^31", k.grid, k.rdims)))
    }
}

/// The bindings with which at most `room` buffers are read, and the position of each input: those
/// beyond the limit are copied into one buffer.
fn bundle(task: &mut Lowered, k: &Kernel, room: usize) -> (Vec<Reg>, Vec<Place>) {
    let mut used: Vec<usize> =
        k.nodes.iter().filter_map(|(_, n)| if let Node::Load(a) = n { Some(a.input as usize) } else { None }).collect();
    used.sort_unstable();
    used.dedup();
    let mut places = vec![Place::default(); k.inputs.len()];
    let alone = if used.len() <= room { used.len() } else { room.max(1) - 1 };
    let mut reads = vec![];
    for input in &used[..alone] {
        places[*input] = Place::of(format!("in{}", reads.len()));
        reads.push(Reg::In(*input));
    }
    if alone < used.len() {
        let words = |i: usize| (k.inputs[i].0.size() * k.inputs[i].1).div_ceil(4);
        let bundle = task.add_scratch(used[alone..].iter().map(|i| 4 * words(*i)).sum());
        let mut at = 0;
        for input in &used[alone..] {
            places[*input] = Place { base: at, ..Place::of(format!("in{}", reads.len())) };
            let bytes = k.inputs[*input].0.size() * k.inputs[*input].1;
            task.passes.push(Pass::Copy { from: Reg::In(*input), from_at: 0, to: bundle, to_at: 4 * at, bytes });
            at += words(*input);
        }
        reads.push(bundle);
    }
    (reads, places)
}
