//! Random nests of operations that move elements, as programs: planned without refusal, fused and apart, and evaluated by the reference they give
//! what each operation gives by itself, written out element by element. `SEEDS=from..to` chooses.
use ferrax_ir::lower::{lower, unfused};
use ferrax_ir::text::parse;
use ferrax_kernel::VerifiedPlan;
use ferrax_kernel::backend::{Backend, RunArg, RunCx};
use ferrax_kernel::reference::ReferenceBackend;
use ferrax_testkit::rng::{Rng, seeds};
use std::fmt::Write;
use std::sync::atomic::AtomicBool;

/// An array in row-major order.
#[derive(Clone)]
struct Array {
    shape: Vec<usize>,
    data: Vec<i32>,
}
impl Array {
    fn by(shape: &[usize], mut f: impl FnMut(&[usize]) -> i32) -> Array {
        let n: usize = shape.iter().product();
        let mut index = vec![0; shape.len()];
        let data = (0..n).map(|_| {
            let x = f(&index);
            for k in (0..shape.len()).rev() {
                index[k] += 1;
                if index[k] < shape[k] {
                    break;
                }
                index[k] = 0;
            }
            x
        });
        Array { data: data.collect(), shape: shape.to_vec() }
    }
    fn at(&self, index: &[usize]) -> i32 {
        self.data[index.iter().zip(&self.shape).fold(0, |p, (i, n)| p * n + i)]
    }
    fn ty(&self) -> String {
        let sizes: Vec<String> = self.shape.iter().map(usize::to_string).collect();
        format!("i32[{}]", sizes.join(","))
    }
}
fn tuple(x: impl IntoIterator<Item = impl std::fmt::Display>) -> String {
    let all: String = x.into_iter().map(|x| format!("{x}, ")).collect();
    format!("({})", all.trim_end())
}

/// A growing program, and the arrays of its variables.
struct Nest {
    rng: Rng,
    vars: Vec<Array>,
    lines: String,
}
type Made = (String, Array);
const MAX_ELEMENTS: usize = 48;
const MAX_RANK: usize = 4;

impl Nest {
    fn any(&mut self) -> usize {
        // a recent one: nests, not bushes
        let n = self.vars.len();
        n - 1 - self.rng.below(n.min(3))
    }
    fn step(&mut self) {
        let v = self.any();
        let x = self.vars[v].clone();
        let made = match self.rng.below(13) {
            0 | 1 => self.concatenate(v, &x),
            2 | 3 => self.pad(v, &x),
            4 => self.slice(v, &x),
            5 | 6 => self.reshape(v, &x),
            7 => self.transpose(v, &x),
            8 => self.rev(v, &x),
            9 => self.broadcast(v, &x),
            10 => self.add(v, &x),
            11 => self.masked(v, &x),
            _ => Some(self.taken(v, &x)),
        };
        if let Some((call, y)) = made.filter(|(_, y)| y.data.len() <= MAX_ELEMENTS && y.shape.len() <= MAX_RANK) {
            self.push(&call, y);
        }
    }
    fn push(&mut self, call: &str, y: Array) -> usize {
        let n = self.vars.len();
        write!(self.lines, " v{n}:{} = {call};", y.ty()).unwrap();
        self.vars.push(y);
        n
    }
    fn concatenate(&mut self, v: usize, x: &Array) -> Option<Made> {
        if x.shape.is_empty() {
            return None;
        }
        let d = self.rng.below(x.shape.len());
        let alike = |y: &Array| {
            y.shape.len() == x.shape.len() && (0..y.shape.len()).all(|k| k == d || y.shape[k] == x.shape[k])
        };
        let mut parts: Vec<usize> = vec![v];
        for _ in 0..1 + self.rng.below(3) {
            let fit: Vec<usize> = (0..self.vars.len()).filter(|w| alike(&self.vars[*w])).collect();
            parts.insert(self.rng.below(parts.len() + 1), fit[self.rng.below(fit.len())]);
        }
        let mut shape = x.shape.clone();
        shape[d] = parts.iter().map(|p| self.vars[*p].shape[d]).sum();
        let y = Array::by(&shape, |i| {
            let mut i = i.to_vec();
            for p in &parts {
                let part = &self.vars[*p];
                if i[d] < part.shape[d] {
                    return part.at(&i);
                }
                i[d] -= part.shape[d];
            }
            unreachable!()
        });
        let names: Vec<String> = parts.iter().map(|p| format!("v{p}")).collect();
        Some((format!("concatenate[dimension={d}] {}", names.join(" ")), y))
    }
    fn pad(&mut self, v: usize, x: &Array) -> Option<Made> {
        let config: Vec<[i64; 3]> = x
            .shape
            .iter()
            .map(|_| match self.rng.below(4) {
                0 => [0, 0, 0],
                1 => [self.rng.within(-2, 3), self.rng.within(-2, 3), 0],
                2 => [self.rng.within(0, 3), self.rng.within(0, 3), 0],
                _ => [self.rng.within(-2, 3), self.rng.within(-2, 3), self.rng.within(0, 2)],
            })
            .collect();
        let spread = |n: usize, inner: i64| if n == 0 { 0 } else { (n as i64 - 1) * (inner + 1) + 1 };
        let sizes: Vec<i64> = x.shape.iter().zip(&config).map(|(n, [l, h, i])| l + h + spread(*n, *i)).collect();
        if sizes.iter().any(|n| *n < 0) {
            return None;
        }
        let shape: Vec<usize> = sizes.iter().map(|n| *n as usize).collect();
        let fill = self.rng.within(-9, -1) as i32;
        let y = Array::by(&shape, |i| {
            let mut from = vec![];
            for (k, [low, _, inner]) in config.iter().enumerate() {
                let p = i[k] as i64 - low;
                if p < 0 || p >= spread(x.shape[k], *inner) || p % (inner + 1) != 0 {
                    return fill;
                }
                from.push((p / (inner + 1)) as usize);
            }
            x.at(&from)
        });
        let config = tuple(config.iter().map(tuple));
        Some((format!("pad[padding_config={config}] v{v} {fill}:i32[]"), y))
    }
    fn slice(&mut self, v: usize, x: &Array) -> Option<Made> {
        let mut parts = vec![];
        for n in &x.shape {
            let start = self.rng.below(n + 1);
            let limit = start + self.rng.below(n - start + 1);
            parts.push((start, limit, 1 + self.rng.below(3)));
        }
        let shape: Vec<usize> = parts.iter().map(|(a, b, s)| (b - a).div_ceil(*s)).collect();
        let y = Array::by(&shape, |i| {
            x.at(&i.iter().zip(&parts).map(|(i, (start, _, s))| start + i * s).collect::<Vec<_>>())
        });
        let [limits, starts] = [tuple(parts.iter().map(|p| p.1)), tuple(parts.iter().map(|p| p.0))];
        let strides = tuple(parts.iter().map(|p| p.2));
        Some((format!("slice[limit_indices={limits} start_indices={starts} strides={strides}] v{v}"), y))
    }
    fn reshape(&mut self, v: usize, x: &Array) -> Option<Made> {
        let mut left = x.data.len();
        let mut shape = vec![];
        if left == 0 {
            return None;
        }
        while left > 1 && shape.len() < MAX_RANK - 1 {
            let divisors: Vec<usize> = (1..=left).filter(|d| left.is_multiple_of(*d)).collect();
            let d = divisors[self.rng.below(divisors.len())];
            shape.push(d);
            left /= d;
        }
        if left > 1 {
            shape.push(left);
        }
        let sizes = tuple(&shape);
        let call = format!("reshape[dimensions=None new_sizes={sizes} sharding=None] v{v}");
        Some((call, Array { shape, data: x.data.clone() }))
    }
    fn transpose(&mut self, v: usize, x: &Array) -> Option<Made> {
        let mut perm: Vec<usize> = (0..x.shape.len()).collect();
        for k in (1..perm.len()).rev() {
            perm.swap(k, self.rng.below(k + 1));
        }
        let shape: Vec<usize> = perm.iter().map(|p| x.shape[*p]).collect();
        let y = Array::by(&shape, |i| {
            let mut from = vec![0; i.len()];
            perm.iter().zip(i).for_each(|(p, i)| from[*p] = *i);
            x.at(&from)
        });
        Some((format!("transpose[permutation={}] v{v}", tuple(&perm)), y))
    }
    fn rev(&mut self, v: usize, x: &Array) -> Option<Made> {
        let dims: Vec<usize> = (0..x.shape.len()).filter(|_| self.rng.below(2) == 0).collect();
        let y = Array::by(&x.shape, |i| {
            let mut from = i.to_vec();
            dims.iter().for_each(|d| from[*d] = x.shape[*d] - 1 - i[*d]);
            x.at(&from)
        });
        Some((format!("rev[dimensions={}] v{v}", tuple(&dims)), y))
    }
    fn broadcast(&mut self, v: usize, x: &Array) -> Option<Made> {
        let (mut shape, mut dims) = (vec![], vec![]);
        for n in &x.shape {
            if self.rng.below(3) == 0 {
                shape.push(1 + self.rng.below(3));
            }
            dims.push(shape.len());
            shape.push(if *n == 1 { 1 + self.rng.below(3) } else { *n });
        }
        if self.rng.below(2) == 0 {
            shape.push(1 + self.rng.below(3));
        }
        let y = Array::by(&shape, |i| {
            x.at(&dims.iter().zip(&x.shape).map(|(d, n)| if *n == 1 { 0 } else { i[*d] }).collect::<Vec<_>>())
        });
        let (shape, dims) = (tuple(&shape), tuple(&dims));
        Some((format!("broadcast_in_dim[broadcast_dimensions={dims} shape={shape} sharding=None] v{v}"), y))
    }
    fn add(&mut self, v: usize, x: &Array) -> Option<Made> {
        let fit: Vec<usize> = (0..self.vars.len()).filter(|w| self.vars[*w].shape == x.shape).collect();
        let w = fit[self.rng.below(fit.len())];
        let data = x.data.iter().zip(&self.vars[w].data).map(|(a, b)| a.wrapping_add(*b)).collect();
        Some((format!("add v{v} v{w}"), Array { shape: x.shape.clone(), data }))
    }
    /// `x + iota * 1`, so that positions are values too.
    fn masked(&mut self, v: usize, x: &Array) -> Option<Made> {
        if x.shape.is_empty() {
            return None;
        }
        let d = self.rng.below(x.shape.len());
        let i = Array::by(&x.shape, |i| i[d] as i32);
        let shape = tuple(&x.shape);
        let w = self.push(&format!("iota[dimension={d} dtype=int32 shape={shape} sharding=None]"), i.clone());
        let data = x.data.iter().zip(&i.data).map(|(a, b)| a.wrapping_add(*b)).collect();
        Some((format!("add v{v} v{w}"), Array { shape: x.shape.clone(), data }))
    }
    /// A reduction, which ends its nest.
    fn taken(&mut self, v: usize, x: &Array) -> Made {
        let axes: Vec<usize> = (0..x.shape.len()).filter(|_| self.rng.below(2) == 0).collect();
        let kept: Vec<usize> = (0..x.shape.len()).filter(|k| !axes.contains(k)).collect();
        let shape: Vec<usize> = kept.iter().map(|k| x.shape[*k]).collect();
        let inner: Vec<usize> = axes.iter().map(|k| x.shape[*k]).collect();
        let y = Array::by(&shape, |i| {
            let all = Array::by(&inner, |j| {
                let mut from = vec![0; x.shape.len()];
                kept.iter().zip(i).for_each(|(k, i)| from[*k] = *i);
                axes.iter().zip(j).for_each(|(k, j)| from[*k] = *j);
                x.at(&from)
            });
            all.data.iter().fold(0i32, |a, b| a.wrapping_add(*b))
        });
        (format!("reduce_sum[axes={} out_sharding=None] v{v}", tuple(&axes)), y)
    }
}

/// The program's text, its arguments and its results.
fn drawn(seed: u64) -> (String, Vec<Array>, Vec<Array>) {
    let mut n = Nest { rng: Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1), vars: vec![], lines: String::new() };
    (0..5).for_each(|_| {
        n.rng.below(2);
    });
    for k in 0..1 + n.rng.below(3) {
        let rank = n.rng.below(3) + (k == 0) as usize;
        let shape: Vec<usize> = (0..rank)
            .map(|_| [1, 2, 2, 3, 3, 4, 5, 0][n.rng.below(if seed.is_multiple_of(8) { 8 } else { 7 })])
            .collect();
        let mut next = 10 * (k as i32 + 1);
        n.vars.push(Array::by(&shape, |_| {
            next += 1;
            next
        }));
    }
    let ins = n.vars.clone();
    for _ in 0..3 + n.rng.below(8) {
        n.step();
    }
    let last = n.vars.len() - 1;
    let mut outs = vec![last];
    if last > ins.len() && n.rng.below(3) == 0 {
        outs.push(n.any());
    }
    let args: Vec<String> = ins.iter().enumerate().map(|(k, x)| format!("v{k}:{}", x.ty())).collect();
    let names = tuple(outs.iter().map(|o| format!("v{o}")));
    let text = format!("{{ lambda ; {}. let{} in {names} }}", args.join(" "), n.lines.trim_end_matches(';'));
    let outs = outs.into_iter().map(|o| n.vars[o].clone()).collect();
    (text, ins, outs)
}

fn run(plan: VerifiedPlan, ins: &[Array]) -> Vec<Vec<u8>> {
    let b = ReferenceBackend;
    let bytes = |x: &Array| x.data.iter().flat_map(|x| x.to_ne_bytes()).collect::<Vec<u8>>();
    let arg = |x: &Array| RunArg { buffer: b.upload(&bytes(x)).unwrap(), donated: false };
    let exe = b.compile(plan).unwrap();
    let outs = exe.run(&RunCx { cancel: &AtomicBool::new(false), world: None }, ins.iter().map(arg).collect()).unwrap();
    outs.iter().map(|o| b.download(o).unwrap()).collect()
}
fn check(seed: u64) {
    let (text, ins, outs) = drawn(seed);
    let p = parse(&text).unwrap_or_else(|e| panic!("seed {seed}: {}\n{text}", e.message()));
    let ways = [("fused", lower as fn(&_) -> _), ("apart", unfused)];
    for (way, plan) in ways.into_iter().take(if seed.is_multiple_of(4) { 2 } else { 1 }) {
        let plan = plan(&p).unwrap_or_else(|e| panic!("seed {seed}: {}\n{text}", e.message()));
        let plan = plan.verify().unwrap_or_else(|e| panic!("seed {seed}, {way}: {e}\n{text}"));
        for (k, (got, want)) in run(plan, &ins).iter().zip(&outs).enumerate() {
            let got: Vec<i32> = got.chunks(4).map(|x| i32::from_ne_bytes(x.try_into().unwrap())).collect();
            assert_eq!(got, want.data, "seed {seed}, {way}, result {k} of {text}");
        }
    }
}

#[test]
fn nests_of_moves() {
    seeds(500).for_each(check);
}
