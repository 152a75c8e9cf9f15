//! A nest from its text: the tests of passes are texts.
//!
//! INVARIANT: it accepts the texts that [`super::print`] writes, with comments from `#` on.
use super::FunctionNames;
use crate::nest::facts::lane_of;
use crate::nest::{Def, LoopKind, Nest, NestCarry, NestLoop, NestOp, NestTrip, NestValue, RowCall, Stmt, lane};
use ferrax_kernel::{Bin, DType, Un};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Parses the text of a nest. An error names the wrong line.
pub fn parse(text: &str, names: &FunctionNames) -> Result<Nest, String> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')).collect();
    let mut p = Parser { nest: Nest::default(), names, numbers: FxHashMap::default(), constants: FxHashMap::default() };
    let mut at = 0;
    if let Some(head) = lines.first().filter(|l| !l.contains(['=', '{']) && !l.starts_with("out ")) {
        p.head(head).ok_or_else(|| format!("not a head: {head}"))?;
        at = 1;
    }
    let body = p.block(&lines, &mut at)?.0;
    p.nest.body = body;
    if let Some(outs) = lines.get(at).and_then(|l| l.strip_prefix("out ")) {
        p.nest.outs = p.values(outs).ok_or_else(|| format!("no values: {outs}"))?;
        at += 1;
    }
    match lines.get(at) {
        None => {
            let mut constants: Vec<NestValue> = p.constants.into_values().collect();
            constants.sort_unstable();
            p.nest.body.splice(0..0, constants.into_iter().map(Stmt::Let));
            Ok(p.nest)
        }
        Some(line) => Err(format!("after the end: {line}")),
    }
}

struct Parser<'a> {
    nest: Nest,
    names: &'a FunctionNames,
    numbers: FxHashMap<String, NestValue>,
    constants: FxHashMap<(DType, u64), NestValue>,
}
impl Parser<'_> {
    fn head(&mut self, line: &str) -> Option<()> {
        for part in line.split(", ") {
            let (what, rest) = part.split_once(' ')?;
            let all = rest.split(' ');
            match what {
                "arrays" => self.nest.lengths = all.map(|n| n.parse().ok()).collect::<Option<_>>()?,
                "scratch" => self.nest.scratch = Some((self.nest.lengths.len() as u32, rest.parse().ok()?)),
                "inputs" => self.nest.inputs = all.map(DType::from_short).collect::<Option<_>>()?,
                "meeting" => {
                    let pair = |s: &str| {
                        let (a, b) = s.split_once('-')?;
                        Some((a.parse().ok()?, b.parse().ok()?))
                    };
                    self.nest.meeting = all.map(pair).collect::<Option<_>>()?;
                }
                _ => return None,
            }
        }
        self.nest.arrays = self.nest.lengths.len() as u32 + u32::from(self.nest.scratch.is_some());
        Some(())
    }
    /// The statements up to the end of a block, and the values that it passes on.
    fn block(&mut self, lines: &[&str], at: &mut usize) -> Result<(Vec<Stmt>, Vec<NestValue>), String> {
        let (mut body, mut nexts) = (vec![], vec![]);
        while let Some(line) = lines.get(*at) {
            if *line == "}" || line.starts_with("out ") {
                break;
            }
            *at += 1;
            let wrong = || format!("not a statement: {line}");
            if let Some(rest) = line.strip_prefix("loop ") {
                let mut l = self.loop_head(rest.strip_suffix(" {").ok_or_else(wrong)?).ok_or_else(wrong)?;
                while let Some(carry) = lines.get(*at).and_then(|l| l.strip_prefix("carry ")) {
                    l.carries.push(self.carry(carry).ok_or_else(|| format!("not a carry: {carry}"))?);
                    *at += 1;
                }
                let (inner, nexts) = self.block(lines, at)?;
                if lines.get(*at) != Some(&"}") || nexts.len() != l.carries.len() {
                    return Err(format!("a loop of {} carries ends with {} values", l.carries.len(), nexts.len()));
                }
                *at += 1;
                l.body = inner;
                l.carries.iter_mut().zip(nexts).for_each(|(c, next)| c.next = next);
                body.push(Stmt::Loop(Box::new(l)));
            } else if let Some(rest) = line.strip_prefix("next ") {
                nexts = self.values(rest).ok_or_else(wrong)?;
            } else {
                body.push(self.statement(line).ok_or_else(wrong)?);
            }
        }
        Ok((body, nexts))
    }
    fn loop_head(&mut self, s: &str) -> Option<NestLoop> {
        let (trip, kind) = s.split_once(' ').unwrap_or((s, ""));
        let kind = match kind {
            "" => LoopKind::Sequential,
            "independent" => LoopKind::Independent,
            "free" => LoopKind::Free,
            "fold" => LoopKind::Fold,
            _ => return None,
        };
        let trip = match trip.parse() {
            Ok(n) => NestTrip::Static(n),
            Err(_) if trip == "forever" => NestTrip::Forever,
            Err(_) => NestTrip::Dyn(self.value(trip)?),
        };
        Some(NestLoop { kind, trip, carries: vec![], body: vec![] })
    }
    fn carry(&mut self, s: &str) -> Option<NestCarry> {
        let (slot, rest) = s.split_once(": ")?;
        let (dtype, rest) = rest.split_once(" = ")?;
        let (init, after) = rest.split_once(" -> ")?;
        let (dtype, lanes, wide) = typed(dtype)?;
        let init = self.value(init)?;
        let [slot, after] = [(slot, NestOp::Carry), (after, NestOp::After)].map(|(name, op)| {
            let v = self.nest.add(op, dtype, &[]);
            (self.nest.defs[v as usize].lanes, self.nest.defs[v as usize].wide) = (lanes, wide);
            self.numbers.insert(name.to_string(), v);
            v
        });
        Some(NestCarry { init, slot, next: slot, after })
    }
    fn statement(&mut self, line: &str) -> Option<Stmt> {
        if let Some(p) = line.strip_prefix("exit unless ") {
            return Some(Stmt::ExitUnless(self.value(p)?));
        }
        if let Some(rest) = line.strip_prefix("rows ") {
            return self.row_call(rest);
        }
        if line.starts_with(['a', 'w']) {
            let (place, rest) = line.split_once("]: ")?;
            let (dtype, value) = rest.split_once(" = ")?;
            let dtype = DType::from_short(dtype)?;
            let (place, stride) = match place.split_once(" by ") {
                Some((place, by)) => (place, by.parse().ok()?),
                None => (place, 1),
            };
            let (array, index, offset) = self.place(place)?;
            return Some(Stmt::Store { array, index, offset, value: self.value(value)?, dtype, stride });
        }
        let (name, rest) = line.split_once(": ")?;
        let (dtype, what) = rest.split_once(" = ")?;
        let (dtype, lanes, wide) = typed(dtype)?;
        let (is_exact, what) = what.strip_prefix("exact ").map_or((false, what), |w| (true, w));
        let (op, args) = self.expression(what)?;
        let v = self.nest.add(op, dtype, &args);
        let def = &mut self.nest.defs[v as usize];
        (def.lanes, def.wide, def.is_exact) = (lanes, wide, is_exact);
        self.numbers.insert(name.to_string(), v);
        Some(Stmt::Let(v))
    }
    fn row_call(&mut self, s: &str) -> Option<Stmt> {
        let (rest, name) = s.split_once(" = ")?;
        let mut words = rest.split(' ');
        let elements = words.next()?.parse().ok()?;
        let to = words.nth(1)?.parse().ok()?;
        let all: Vec<i32> = words.skip(1).map(|w| w.parse().ok()).collect::<Option<_>>()?;
        let mut from = [0; 2];
        from.get_mut(..all.len())?.copy_from_slice(&all);
        let callee = (self.names.function)(name)?;
        Some(Stmt::CallRow(RowCall { callee, to, from, operands: all.len() as u8, elements }))
    }
    /// `a0[v1 + 3`.
    fn place(&mut self, s: &str) -> Option<(u32, NestValue, i32)> {
        let (array, index) = s.split_once('[')?;
        let array = match array.strip_prefix('a') {
            Some(n) => n.parse().ok()?,
            None => self.nest.scratch?.0,
        };
        let mut words = index.split(' ');
        let index = self.value(words.next()?)?;
        let offset = match words.next() {
            None => 0,
            Some(sign) => i32::try_from(words.next()?.parse::<i64>().ok()? * if sign == "-" { -1 } else { 1 }).ok()?,
        };
        Some((array, index, offset))
    }
    fn expression(&mut self, s: &str) -> Option<(NestOp, SmallVec<[NestValue; 3]>)> {
        let (name, rest) = s.split_once(' ').unwrap_or((s, ""));
        if name == "load" {
            let rest = rest.strip_suffix(']')?;
            let (op, place) = if let Some((place, from)) = rest.split_once(" as ") {
                (NestOp::LoadWide(0, 0, DType::from_short(from)?), place)
            } else if let Some((place, by)) = rest.split_once(" by ") {
                let (by, lanes) = by.split_once(" of ")?;
                (NestOp::LoadApart(0, 0, by.parse().ok()?, lanes.parse().ok()?), place)
            } else {
                (NestOp::Load(0, 0), rest)
            };
            let (array, index, offset) = self.place(place)?;
            let op = match op {
                NestOp::LoadWide(_, _, from) => NestOp::LoadWide(array, offset, from),
                NestOp::LoadApart(_, _, by, lanes) => NestOp::LoadApart(array, offset, by, lanes),
                _ => NestOp::Load(array, offset),
            };
            return Some((op, SmallVec::from_slice(&[index])));
        }
        // the words before the operands
        let (word, args) = rest.split_once(' ').unwrap_or((rest, ""));
        let (op, args) = match name {
            "input" => (NestOp::Input(rest.parse().ok()?), ""),
            "select" => (NestOp::Select, rest),
            "wrap" => (NestOp::Wrap, rest),
            "settle" => (NestOp::Settle, rest),
            "splat" => (NestOp::Splat, rest),
            "first" => (NestOp::First, rest),
            "convert" => (NestOp::Convert(DType::from_short(word)?), args),
            "bits" => (NestOp::Bits(DType::from_short(word)?), args),
            "ramp" => (NestOp::Ramp(word.parse().ok()?), args),
            "down" => (NestOp::Down(word.parse().ok()?), args),
            "blend" => (NestOp::Blend(word.parse().ok()?), args),
            "call" => (NestOp::Call((self.names.function)(word)?, args.split(", ").count() as u8), args),
            name if let Some(code) = (self.names.instruction)(name) => (NestOp::Vector(code), rest),
            name => match (rest.matches(", ").count(), Un::from_name(name), Bin::from_name(name)) {
                (0, Some(f), _) => (NestOp::Un(f), rest),
                (1, _, Some(f)) => (NestOp::Bin(f), rest),
                _ => return None,
            },
        };
        let args = if args.is_empty() { vec![] } else { self.values(args)? };
        (args.len() == op.operands()).then(|| (op, SmallVec::from_vec(args)))
    }
    fn values(&mut self, s: &str) -> Option<Vec<NestValue>> {
        s.split(", ").map(|v| self.value(v)).collect()
    }
    /// A value by its name, or a constant.
    fn value(&mut self, s: &str) -> Option<NestValue> {
        if let Some(v) = self.numbers.get(s) {
            return Some(*v);
        }
        let ends = DType::ALL.iter().filter_map(|d| Some((*d, s.strip_suffix(d.short())?)));
        let (d, number) = ends.min_by_key(|(_, number)| number.len())?;
        let bits = match number.strip_prefix('#') {
            Some(hex) => u64::from_str_radix(hex, 16).ok()?,
            None => match lane(d) {
                DType::F32 => number.parse::<f32>().ok()?.to_bits() as u64,
                DType::F64 => number.parse::<f64>().ok()?.to_bits(),
                _ => lane_of(d, number.parse().ok()?),
            },
        };
        let next = self.nest.defs.len() as NestValue;
        let v = *self.constants.entry((d, bits)).or_insert(next);
        if v == next {
            let def = Def { op: NestOp::Const(bits), dtype: d, args: [0; 3], lanes: 1, wide: false, is_exact: false };
            self.nest.defs.push(def);
        }
        Some(v)
    }
}
/// A dtype, the lanes, and whether those of a vector have 8 bytes.
fn typed(s: &str) -> Option<(DType, u8, bool)> {
    let Some((d, lanes)) = s.split_once('x') else { return Some((DType::from_short(s)?, 1, false)) };
    let (dtype, wide) = match d {
        "mask32" => (DType::Bool, false),
        "mask64" => (DType::Bool, true),
        d => DType::from_short(d).map(|d| (d, d.size() == 8))?,
    };
    Some((dtype, lanes.parse().ok()?, wide))
}
