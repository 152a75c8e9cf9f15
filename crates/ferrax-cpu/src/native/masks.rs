//! Mask registers of 512-bit code: which masks stay in k registers, and which become vectors.
//!
//! A comparison gives a mask register, and a blend takes one; converting between mask register and vector costs more than either. So a mask
//! that is only used by blends and by logical operations on masks stays in one of k2..k7, as long as one is free:
//!
//! ```text
//!     m = x < y;  n = m | (x != x);  d = n ? x : y      ->      vcmpps k2, x, y;  vcmpps k3, x, x;  korw k2, k2, k3;  vpblendmd d{k2}, y, x
//! ```
//!
//! INVARIANT: an instruction finds each mask operand in the form that it reads: in a vector if `is_vector` of its definition holds,
//! else in its k register until the last reader.
use super::asm::{Emitted, MaskForm};
use super::encode::ROW_MASK;
use crate::instructions::VectorSize;
use crate::instructions::opcodes::{Opcode, Site, VecInst};

const FIRST: u8 = 2;
const END: u8 = 8;

#[derive(Clone, Copy, Default)]
struct Made {
    /// The instructions that compute the operands of this one: a, b, and the mask of a blend.
    from: [Option<usize>; 3],
    is_mask: bool,
    wants_mask: bool,
    wants_vector: bool,
    last: usize,
    k: Option<u8>,
}

fn compares(code: Opcode) -> bool {
    matches!(code, Opcode::Compare(_) | Opcode::IntEq | Opcode::IntGt)
}
fn combines(code: Opcode) -> bool {
    matches!(code, Opcode::And | Opcode::Or | Opcode::Xor | Opcode::AndNot)
}
/// Whether a place holds a constant of ones.
fn is_ones(f: &Emitted, b: Site) -> bool {
    let constant = match b {
        Site::Pool(c) => Some(c),
        Site::Reg(r) => f.constants.iter().find(|c| c.0 == r).map(|c| c.1),
        _ => None,
    };
    let ones = if f.wide { u64::MAX } else { u32::MAX as u64 };
    constant.is_some_and(|c| f.pool[c as usize] & ones == ones)
}

/// For each instruction of the body; none where vectors are short.
pub fn forms(f: &Emitted) -> Vec<MaskForm> {
    if f.vector == VectorSize::Ymm {
        return vec![];
    }
    let mut made = found(f);
    for i in (0..made.len()).rev() {
        let VecInst::Op { code, .. } = f.body[i] else { continue };
        let [a, b, m] = made[i].from;
        let wanted = match code {
            Opcode::Blend => [None, m],
            _ if kept(&made, f, i).is_some() || made[i].is_mask && made[i].wants_mask => [a, b],
            _ => [None; 2],
        };
        for of in wanted.into_iter().flatten() {
            made[of].wants_mask = made[of].is_mask;
        }
    }
    (0..made.len()).rev().for_each(|i| reach(&mut made, i));
    let mut until = [0; END as usize];
    for i in 0..made.len() {
        give(&mut made, &mut until, f, i);
    }
    (0..made.len()).map(|i| form(&made, f, i)).collect()
}
/// Finds the instruction that computes each operand, and the comparisons whose results can be mask
/// registers.
fn found(f: &Emitted) -> Vec<Made> {
    let mut maker: [Option<usize>; 32] = [None; 32];
    let mut made: Vec<Made> = Vec::with_capacity(f.body.len());
    for (i, inst) in f.body.iter().enumerate() {
        let of = |s: Site| if let Site::Reg(r) = s { maker[r as usize] } else { None };
        let (d, from) = match *inst {
            VecInst::Op { code, d, a, b, m } => {
                let a = if code.is_binary() { maker[a as usize] } else { None };
                (Some(d), [a, of(b), if code == Opcode::Blend { maker[m as usize] } else { None }])
            }
            VecInst::Fused { d, a, b, .. } => (Some(d), [maker[a as usize], of(b), maker[d as usize]]),
            VecInst::Load { d, from } => (Some(d), [None, of(from), None]),
            VecInst::LoadNarrow { d, .. } => (Some(d), [None; 3]),
            VecInst::Store { from, .. } | VecInst::StoreNarrow { from, .. } | VecInst::StoreHalf { from, .. } => {
                (None, [maker[from as usize], None, None])
            }
        };
        let is_mask = match *inst {
            VecInst::Op { code, .. } if compares(code) => true,
            VecInst::Op { code, b, .. } if combines(code) => {
                let mask = |of: Option<usize>| of.is_some_and(|of: usize| made[of].is_mask);
                mask(from[0]) && (mask(from[1]) || code == Opcode::Xor && is_ones(f, b))
            }
            _ => false,
        };
        made.push(Made { from, is_mask, ..Made::default() });
        if let Some(d) = d {
            maker[d as usize] = Some(i);
        }
    }
    made
}
/// For an operation that keeps elements where a mask holds: whether the mask is a.
fn kept(made: &[Made], f: &Emitted, i: usize) -> Option<bool> {
    let VecInst::Op { code: code @ (Opcode::And | Opcode::AndNot), .. } = f.body[i] else { return None };
    let mask = |of: Option<usize>| of.is_some_and(|of: usize| made[of].is_mask);
    match (mask(made[i].from[0]), mask(made[i].from[1])) {
        (true, false) => Some(false),
        (false, true) if code == Opcode::And => Some(true),
        _ => None,
    }
}
/// How far a mask's readers are.
fn reach(made: &mut [Made], i: usize) {
    for of in made[i].from.into_iter().flatten() {
        made[of].last = made[of].last.max(i);
    }
}
/// Assigns a mask register to a mask, if it is used and one is free: a register is taken until the
/// last reader. Reports values that must stay vectors.
fn give(made: &mut [Made], until: &mut [usize; END as usize], f: &Emitted, i: usize) {
    let k = |made: &[Made], of: Option<usize>| of.and_then(|of| made[of].k);
    let from = made[i].from;
    let VecInst::Op { code, .. } = f.body[i] else {
        from.into_iter().flatten().for_each(|of| made[of].wants_vector = true);
        return;
    };
    let operands = [k(made, from[0]), k(made, from[1])];
    let there = match code {
        _ if !made[i].is_mask || !made[i].wants_mask => false,
        _ if compares(code) => true,
        _ => operands[0].is_some() && (operands[1].is_some() || from[1].is_none_or(|of| !made[of].is_mask)),
    };
    let end = if f.masked.is_some() { ROW_MASK } else { END };
    made[i].k = (FIRST..end).find(|k| there && until[*k as usize] <= i);
    if let Some(k) = made[i].k {
        until[k as usize] = made[i].last;
    }
    made[i].wants_vector |= made[i].is_mask && made[i].k.is_none();
    let combined = made[i].k.is_some() && combines(code);
    let by_mask = |of: usize, j: usize| match code {
        Opcode::Blend => j == 2 && made[of].k.is_some() && ![from[0], from[1]].contains(&Some(of)),
        _ if combined => true,
        _ => kept(made, f, i).is_some_and(|of_a| of_a == (j == 1)) && made[of].k.is_some(),
    };
    let vectors: Vec<usize> = (0..3).filter_map(|j| from[j].filter(|of| !by_mask(*of, j))).collect();
    vectors.into_iter().for_each(|of| made[of].wants_vector = true);
}
fn form(made: &[Made], f: &Emitted, i: usize) -> MaskForm {
    let VecInst::Op { code, .. } = f.body[i] else { return MaskForm::None };
    let Made { from, k, wants_vector: is_vector, .. } = made[i];
    let of = |j: usize| from[j].and_then(|of| made[of].k);
    match (code, k) {
        (Opcode::Blend, _) => of(2).map_or(MaskForm::None, |by| MaskForm::Chosen { by }),
        (_, Some(k)) if compares(code) => MaskForm::Compared { k, is_vector },
        (_, Some(k)) => match (of(0), of(1)) {
            (Some(a), Some(b)) => MaskForm::Combined { k, a, b, is_vector },
            (Some(a), None) => MaskForm::Negated { k, a, is_vector },
            _ => unreachable!("a mask has a k if its operands have one"),
        },
        _ => match kept(made, f, i) {
            Some(of_a) if let Some(by) = of(usize::from(of_a)) => {
                MaskForm::Kept { by, of_a, negated: code == Opcode::AndNot }
            }
            _ => MaskForm::None,
        },
    }
}
