//! Simplifies a nest with facts about its integers.
//!
//! One pass over the statements rebuilds each value in the outermost block in which its operands are available, once for all equal values. Ranges
//! decide comparisons, clamps and wraps, and indices become sums whose constant goes into the address.
//!
//! INVARIANT: a value is computed from the same operands by the same functions as before; no facts about floats are used.
mod functions;
mod iterations;
mod live;
mod loops;

use super::facts::{Linear, Range, integer, lane, lane_of};
use super::{ArrayId, Def, Nest, NestOp, NestValue, Stmt};
use ferrax_kernel::DType;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

#[derive(PartialEq, Eq, Hash, Clone)]
enum Key {
    Def(Def),
    /// Of an array between two stores.
    Load(Def, u32),
    Sum(DType, Linear),
}
const NONE: NestValue = NestValue::MAX;

struct Rewriter<'a> {
    raw: &'a Nest,
    map: Vec<NestValue>,
    out: Nest,
    /// For each new value: the number of enclosing loops, and the known facts.
    levels: Vec<u16>,
    ranges: Vec<Option<Range>>,
    sums: Vec<Option<Linear>>,
    blocks: Vec<Vec<Stmt>>,
    seen: FxHashMap<Key, NestValue>,
    /// The keys that end with each block.
    keys: Vec<Vec<Key>>,
    /// For each array, how often it may have changed, and within how many loops it last changed.
    versions: Vec<(u32, u16)>,
}

pub fn simplify(raw: &Nest) -> Nest {
    let mut r = Rewriter {
        raw,
        map: vec![NONE; raw.defs.len()],
        out: Nest {
            inputs: raw.inputs.clone(),
            arrays: raw.arrays,
            lengths: raw.lengths.clone(),
            scratch: raw.scratch,
            meeting: raw.meeting.clone(),
            ..Nest::default()
        },
        levels: vec![],
        ranges: vec![],
        sums: vec![],
        blocks: vec![vec![]],
        seen: FxHashMap::default(),
        keys: vec![vec![]],
        versions: vec![(0, 0); raw.arrays as usize],
    };
    r.statements(&raw.body);
    r.out.outs = raw.outs.iter().map(|v| r.map[*v as usize]).collect();
    r.out.body = r.blocks.pop().unwrap_or_default();
    live::prune(&mut r.out);
    r.out
}

impl Rewriter<'_> {
    fn level(&self) -> u16 {
        self.blocks.len() as u16 - 1
    }
    fn fresh(&mut self, op: NestOp, dtype: DType, args: &[NestValue], level: u16) -> NestValue {
        let v = self.out.add(op, dtype, args);
        self.levels.push(level);
        self.ranges.push(Range::of(dtype));
        self.sums.push(None);
        v
    }
    fn range(&self, v: NestValue) -> Option<Range> {
        self.ranges[v as usize]
    }
    fn sum(&self, v: NestValue) -> Linear {
        self.sums[v as usize].clone().unwrap_or_else(|| Linear::of(v))
    }
    fn constant(&mut self, dtype: DType, bits: u64) -> NestValue {
        let def = Def { op: NestOp::Const(bits), dtype, args: [0; 3], lanes: 1, wide: false, is_exact: false };
        if let Some(v) = self.seen.get(&Key::Def(def)) {
            return *v;
        }
        let v = self.fresh(def.op, dtype, &[], 0);
        if let Some(all) = Range::of(dtype) {
            let x = integer(dtype, bits);
            self.ranges[v as usize] = Some(Range::one(x).meet(all));
            self.sums[v as usize] = i64::try_from(x).ok().map(Linear::constant);
        }
        self.blocks[0].push(Stmt::Let(v));
        self.seen.insert(Key::Def(def), v);
        v
    }
    fn integer(&mut self, dtype: DType, x: i128) -> NestValue {
        self.constant(dtype, lane_of(dtype, x))
    }
    /// The range of `a - b`, by their terms.
    fn difference(&self, a: NestValue, b: NestValue) -> Option<Range> {
        let (x, y) = (self.range(a)?, self.range(b)?);
        let plain = x.minus(y);
        let terms = self.sum(a).plus(&self.sum(b), -1).map(|d| self.range_of(&d));
        Some(terms.map_or(plain, |t| t.meet(plain)))
    }
    fn range_of(&self, sum: &Linear) -> Range {
        sum.range(|v| self.range(v).unwrap_or(Range { lo: i64::MIN as i128, hi: i64::MAX as i128 }))
    }
    /// A value with these facts, as an equal one that is there, or a new one.
    fn place(&mut self, def: Def, range: Option<Range>, sum: Option<Linear>) -> NestValue {
        let mut range = range;
        if let (Some(sum), Some(r)) = (&sum, range) {
            range = Some(r.meet(self.range_of(sum)));
        }
        if let Some(x) = range.and_then(Range::is_one) {
            return self.integer(def.dtype, x);
        }
        if let Some(Linear { constant: 0, terms }) = &sum
            && let [(v, 1)] = terms[..]
            && lane(self.out.dtype(v)) == lane(def.dtype)
        {
            return v;
        }
        let key = match (&sum, def.op) {
            (Some(sum), _) => Key::Sum(def.dtype, sum.clone()),
            (None, NestOp::Load(array, _)) => Key::Load(def, self.versions[array as usize].0),
            _ => Key::Def(def),
        };
        if let Some(v) = self.seen.get(&key) {
            return *v;
        }
        let mut level = def.args().iter().map(|a| self.levels[*a as usize]).max().unwrap_or(0);
        if let NestOp::Load(array, _) = def.op {
            level = level.max(self.versions[array as usize].1);
        }
        let v = self.fresh(def.op, def.dtype, def.args(), level);
        self.ranges[v as usize] = range;
        self.out.defs[v as usize].is_exact = sum.is_some();
        self.sums[v as usize] = sum;
        self.blocks[level as usize].push(Stmt::Let(v));
        self.seen.insert(key.clone(), v);
        self.keys[level as usize].push(key);
        v
    }

    // ---- statements ----

    fn mapped(&self, v: NestValue) -> NestValue {
        self.map[v as usize]
    }
    fn statements(&mut self, all: &[Stmt]) {
        for s in all {
            match s {
                Stmt::Let(v) => {
                    let def = *self.raw.def(*v);
                    let args: SmallVec<[NestValue; 3]> = def.args().iter().map(|a| self.mapped(*a)).collect();
                    self.map[*v as usize] = match def.op {
                        NestOp::Load(array, offset) => {
                            let (index, more) = self.address(args[0]);
                            let op = NestOp::Load(array, offset + more as i32);
                            self.emit(op, def.dtype, &[index])
                        }
                        op => self.emit(op, def.dtype, &args),
                    };
                }
                Stmt::Store { array, index, offset, value, dtype, .. } => {
                    let index = self.mapped(*index);
                    let (index, more) = self.address(index);
                    let (value, offset) = (self.mapped(*value), offset + more as i32);
                    let block = self.blocks.last_mut().expect("a block");
                    block.push(Stmt::Store { array: *array, index, offset, value, dtype: *dtype, stride: 1 });
                    self.changed(*array, self.level());
                    if dtype.size() >= 4 || *dtype == DType::Bool {
                        // a load of an element that was just stored gives the stored value
                        let (op, args) = (NestOp::Load(*array, offset), [index, 0, 0]);
                        let def = Def { op, dtype: *dtype, args, lanes: 1, wide: false, is_exact: false };
                        let key = Key::Load(def, self.versions[*array as usize].0);
                        self.seen.insert(key.clone(), value);
                        self.keys[self.blocks.len() - 1].push(key);
                    }
                }
                Stmt::ExitUnless(p) => {
                    let p = self.mapped(*p);
                    self.blocks.last_mut().expect("a block").push(Stmt::ExitUnless(p));
                }
                Stmt::Loop(l) => self.nested(l),
                Stmt::CallRow(_) => unreachable!("rows are called where loops are vectors"),
            }
        }
    }
    fn changed(&mut self, array: ArrayId, level: u16) {
        let version = &mut self.versions[array as usize];
        *version = (version.0 + 1, level);
    }
}

/// Removes unused values.
pub(super) fn prune(nest: &mut Nest) {
    live::prune(nest);
}
