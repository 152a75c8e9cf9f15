//! Convolutions: the axes of the operands and of the result become those of [`Conv`], in memory
//! order, so that operands in the usual layouts are not copied.
//!
//! ```text
//! NHWC, HWIO: rows (n, h, w), terms (h', w', i), columns o: read where they lie, written where they belong
//! NCHW, OIHW: batch n, rows (h, w), terms (i, h', w'), columns o, of which rows lie side by side
//! ```
use super::graph::{Graph, TensorId, scaled};
use ferrax_kernel::kernel::Guard;
use ferrax_kernel::routine::{Conv, Routine};
use ferrax_kernel::{Affine, Bin, Dims, ReduceKind, Scalar};

/// A convolution of operands without holes. Axes are (batch, features, space..), (output features, input features, window..).
pub struct Convolution<'a> {
    pub lhs: &'a Dims,
    pub rhs: &'a Dims,
    pub out: &'a Dims,
    /// Zeros in front of each axis of space; as many follow as the result needs.
    pub low: Vec<i64>,
    pub strides: Dims,
    pub dilation: Dims,
    pub feature_groups: usize,
    pub batch_groups: usize,
}

/// The role of an axis of the loops.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    Batch,
    Group,
    /// Input or output features of one group.
    Features,
    Space(usize),
}

/// Terms that are multiplied and added one by one, where each group has one channel and one feature.
const FEW: usize = 32;

impl Convolution<'_> {
    fn groups(&self) -> usize {
        self.feature_groups.max(self.batch_groups)
    }
    /// The roles of the axes of a spec, in memory order.
    fn roles(spec: &Dims) -> Vec<Role> {
        let role = |axis: usize| match spec.iter().position(|a| *a == axis) {
            Some(0) => Role::Batch,
            Some(1) => Role::Features,
            k => Role::Space(k.unwrap_or(2) - 2),
        };
        (0..spec.len()).map(role).collect()
    }
}

impl Graph {
    /// `out` has the shape of the result.
    pub fn convolution(&mut self, c: &Convolution, l: TensorId, r: TensorId, out: &Dims) -> TensorId {
        let dtype = self.dtype(l);
        let (ls, rs) = (self.shape(l), self.shape(r));
        if ls.contains(&0) || rs.contains(&0) || out.contains(&0) {
            return self.constant(Scalar::zero(dtype), out.clone());
        }
        let groups = c.groups();
        let (ci, co) = (rs[c.rhs[1]], rs[c.rhs[0]] / groups);
        let ldense: Vec<i64> = ls.strides().iter().map(|s| *s as i64).collect();
        let size = |role: Role| match role {
            Role::Batch => out[c.out[0]],
            Role::Group => groups,
            Role::Features => co,
            Role::Space(k) => out[c.out[2 + k]],
        };
        // terms as they lie in the array
        let terms: Vec<Role> = Convolution::roles(c.lhs).into_iter().filter(|r| *r != Role::Batch).collect();
        let term_size = |role: Role| if let Role::Space(k) = role { rs[c.rhs[2 + k]] } else { ci };
        // the result's axes before its features, and after them
        let order = Convolution::roles(c.out);
        let at = order.iter().position(|r| *r == Role::Features).unwrap_or(0);
        let last = at + 1 == order.len();
        let (mut batch, rows) =
            if last { (vec![], order[..at].to_vec()) } else { (order[..at].to_vec(), order[at + 1..].to_vec()) };
        if groups > 1 {
            batch.push(Role::Group);
        }
        if groups > 1 && ci == 1 && co == 1 {
            return self.by_element(c, l, r, out, &order);
        }
        let step = |role: Role| match role {
            Role::Batch => ldense[c.lhs[0]],
            Role::Group if c.feature_groups > 1 => ci as i64 * ldense[c.lhs[1]],
            Role::Group => (ls[c.lhs[0]] / groups) as i64 * ldense[c.lhs[0]],
            Role::Features => ldense[c.lhs[1]],
            Role::Space(k) => c.strides[k] as i64 * ldense[c.lhs[2 + k]],
        };
        let term_step = |role: Role| match role {
            Role::Space(k) => c.dilation[k] as i64 * ldense[c.lhs[2 + k]],
            _ => ldense[c.lhs[1]],
        };
        let outer: Vec<Role> = batch.iter().chain(&rows).copied().collect();
        let strides = outer.iter().map(|r| step(*r)).chain(terms.iter().map(|r| term_step(*r)));
        let offset = -(0..c.low.len()).map(|k| c.low[k] * ldense[c.lhs[2 + k]]).sum::<i64>();
        let at = Affine::new(offset, strides);
        let mut guards = vec![];
        for k in 0..c.low.len() {
            let n = ls[c.lhs[2 + k]] as i64;
            let reach = (rs[c.rhs[2 + k]] as i64 - 1) * c.dilation[k] as i64
                + (size(Role::Space(k)) as i64 - 1) * c.strides[k] as i64
                - c.low[k];
            if c.low[k] > 0 || reach >= n {
                let here = |roles: &[Role], by: usize| -> Vec<i64> {
                    roles.iter().map(|r| if *r == Role::Space(k) { by as i64 } else { 0 }).collect()
                };
                let along = [here(&outer, c.strides[k]), here(&terms, c.dilation[k])].concat();
                guards.push(Guard { at: Affine::new(-c.low[k], along), lo: 0, hi: n });
            }
        }
        let n_terms: usize = terms.iter().map(|r| term_size(*r)).product();
        // the kernel: terms in one run, features before or behind them
        let axis = |role: Role| if let Role::Space(k) = role { c.rhs[2 + k] } else { c.rhs[1] };
        let wanted: Vec<usize> = terms.iter().map(|r| axis(*r)).collect();
        let features = c.rhs[0];
        let lies: Vec<usize> = (0..rs.len()).filter(|a| *a != features).collect();
        let behind = features + 1 == rs.len() || features != 0 || last || lies != wanted;
        let r = if lies == wanted && (features + 1 == rs.len() || !behind) {
            r
        } else {
            let order: Vec<usize> = wanted.iter().copied().chain([features]).collect();
            self.transpose(r, &order)
        };
        let (term, column) = if behind { (co * groups, 1) } else { (1, n_terms) };
        let y = batch.iter().map(|r| if *r == Role::Group { co * column } else { 0 }).chain([term, column]).collect();
        // the result: dense, its features of a group beside those of the next
        let odense = out.strides();
        let place = |role: Role| match role {
            Role::Batch => odense[c.out[0]] as usize,
            Role::Group => co * odense[c.out[1]] as usize,
            Role::Features => odense[c.out[1]] as usize,
            Role::Space(k) => odense[c.out[2 + k]] as usize,
        };
        let row = if last { co * groups } else { 1 };
        let to = batch.iter().map(|r| place(*r)).chain([row, place(Role::Features)]).collect();
        let conv = Conv {
            batch: batch.iter().map(|r| size(*r)).collect(),
            rows: rows.iter().map(|r| size(*r)).collect(),
            terms: terms.iter().map(|r| term_size(*r)).collect(),
            columns: co,
            x: ls.size(),
            at,
            guards,
            y,
            out: to,
            dtype,
        };
        self.routine(Routine::Conv(Box::new(conv)), &[l, r], &[out.clone()])[0]
    }

    /// Groups of one channel and one feature: elements times weights, side by side over the groups.
    fn by_element(&mut self, c: &Convolution, l: TensorId, r: TensorId, out: &Dims, order: &[Role]) -> TensorId {
        let (ls, rs) = (self.shape(l), self.shape(r));
        let axis = |role: Role| order.iter().position(|r| *r == role).unwrap_or(0);
        let window: Vec<usize> = (0..c.low.len()).collect();
        let sizes: Dims = window.iter().map(|k| rs[c.rhs[2 + k]]).collect();
        let per = ls[c.lhs[0]] / c.batch_groups;
        // positions in both, for a place of the result and an index of the window; `tail` of the indices are the window's
        let maps = |at: &dyn Fn(usize) -> Affine| {
            let group = scaled(axis(Role::Features), 0, 1);
            let mut x = vec![Affine::constant(0); ls.len()];
            let mut guards = vec![];
            x[c.lhs[0]] = scaled(axis(Role::Batch), 0, 1);
            match c.batch_groups {
                1 => x[c.lhs[1]] = group.clone(),
                _ => {
                    let batch = &mut x[c.lhs[0]];
                    batch.strides.resize(order.len(), 0);
                    batch.strides[axis(Role::Features)] += per as i64;
                }
            }
            let mut w = vec![Affine::constant(0); rs.len()];
            w[c.rhs[0]] = group;
            for k in &window {
                let mut p = at(*k);
                w[c.rhs[2 + k]] = p.clone();
                p.strides.iter_mut().for_each(|s| *s *= c.dilation[*k] as i64);
                p.offset = p.offset * c.dilation[*k] as i64 - c.low[*k];
                let here = axis(Role::Space(*k));
                p.strides.resize(p.strides.len().max(here + 1), 0);
                p.strides[here] += c.strides[*k] as i64;
                guards.push(Guard { at: p.clone(), lo: 0, hi: ls[c.lhs[2 + k]] as i64 });
                x[c.lhs[2 + k]] = p;
            }
            (x, guards, w)
        };
        let product = |g: &mut Graph, shape: &Dims, at: &dyn Fn(usize) -> Affine| {
            let (x, guards, w) = maps(at);
            let (x, w) = (g.guarded(l, shape.clone(), &x, &guards, None), g.view(r, shape.clone(), &w));
            g.bin(Bin::Mul, x, w)
        };
        if sizes.size() <= FEW {
            let mut sum = None;
            for i in 0..sizes.size() {
                let i = sizes.unravel(i);
                let y = product(self, out, &|k| Affine::constant(i[k] as i64));
                sum = Some(sum.map_or(y, |s| self.bin(Bin::Add, s, y)));
            }
            return sum.expect("a window has elements");
        }
        let rank = out.len();
        let y = product(self, &out.concat(&sizes), &|k| scaled(rank + k, 0, 1));
        let axes: Vec<usize> = (rank..rank + sizes.len()).collect();
        self.reduce(ReduceKind::Sum, y, &axes)
    }
}
