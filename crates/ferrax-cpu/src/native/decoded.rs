//! Tests of the encoder: an independent decoder reads its output.
mod tests;

use super::asm::{Emitted, Kept, KeptOperand, TABLE, assemble};
use super::masks;
use crate::instructions::VectorSize;
use crate::instructions::opcodes::{MemoryElement, Opcode, Site, VecInst};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

const BASES: [Register; 9] = [
    Register::RCX,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
    Register::RBX,
    Register::R12,
    Register::R14,
    Register::R15,
];

/// Every opcode, with its mnemonic for each width; none where there is no such instruction.
fn names() -> Vec<(Opcode, Option<Mnemonic>, Option<Mnemonic>)> {
    use Mnemonic as M;
    use Opcode::*;
    let both = |c, n, w| (c, Some(n), Some(w));
    let narrow = |c, n| (c, Some(n), None);
    let mut all = vec![
        both(Add, M::Vaddps, M::Vaddpd),
        both(Sub, M::Vsubps, M::Vsubpd),
        both(Mul, M::Vmulps, M::Vmulpd),
        both(Div, M::Vdivps, M::Vdivpd),
        both(Min, M::Vminps, M::Vminpd),
        both(Max, M::Vmaxps, M::Vmaxpd),
        both(Sqrt, M::Vsqrtps, M::Vsqrtpd),
        both(And, M::Vandps, M::Vandpd),
        both(AndNot, M::Vandnps, M::Vandnpd),
        both(Or, M::Vorps, M::Vorpd),
        both(Xor, M::Vxorps, M::Vxorpd),
        both(IntAdd, M::Vpaddd, M::Vpaddq),
        both(IntSub, M::Vpsubd, M::Vpsubq),
        narrow(IntMul, M::Vpmulld),
        both(IntEq, M::Vpcmpeqd, M::Vpcmpeqq),
        both(IntGt, M::Vpcmpgtd, M::Vpcmpgtq),
        narrow(MaxSigned, M::Vpmaxsd),
        narrow(MaxUnsigned, M::Vpmaxud),
        narrow(MinSigned, M::Vpminsd),
        narrow(MinUnsigned, M::Vpminud),
        narrow(IntAbs, M::Vpabsd),
        both(ShlBy, M::Vpsllvd, M::Vpsllvq),
        both(ShrBy, M::Vpsrlvd, M::Vpsrlvq),
        narrow(SarBy, M::Vpsravd),
        both(Blend, M::Vblendvps, M::Vblendvpd),
        narrow(FromI32, M::Vcvtdq2ps),
        narrow(ToI32, M::Vcvttps2dq),
        narrow(ToHalf, M::Vcvtps2ph),
        narrow(FromHalf, M::Vcvtph2ps),
        both(High, M::Vextracti128, M::Vextracti128),
        both(Pack16, M::Vpackusdw, M::Vpackusdw),
        both(Pack8, M::Vpackuswb, M::Vpackuswb),
        both(Evens, M::Vshufps, M::Vshufps),
        narrow(Sar(13), M::Vpsrad),
        narrow(MulEvens, M::Vpmuldq),
        both(MulEvensUnsigned, M::Vpmuludq, M::Vpmuludq),
        narrow(OddsDown, M::Vpsrlq),
        narrow(Odds, M::Vpblendd),
        both(Rotation(0xb1), M::Vpermilps, M::Vpermilps),
        both(TurnQuarters(0x4e), M::Vshuff32x4, M::Vshuff64x2),
        both(Halves(0x31), M::Vperm2f128, M::Vperm2f128),
        both(UnpackLow, M::Vunpcklps, M::Vunpcklpd),
        both(UnpackHigh, M::Vunpckhps, M::Vunpckhpd),
        narrow(Shuffle(0xdd), M::Vshufps),
        both(Quads(0xd8), M::Vpermpd, M::Vpermpd),
        both(Scale, M::Vscalefps, M::Vscalefpd),
    ];
    all.extend([0, 1, 2, 3].map(|to| both(Round(to), M::Vroundps, M::Vroundpd)));
    all.extend([0, 3, 4, 0x11, 0x12].map(|p| both(Compare(p), M::Vcmpps, M::Vcmppd)));
    all.extend([1, 23, 31].map(|n| both(Shl(n), M::Vpslld, M::Vpsllq)));
    all.extend([1, 23, 31].map(|n| both(Shr(n), M::Vpsrld, M::Vpsrlq)));
    all
}
/// Fused multiply-adds, where the result replaces a factor and where it replaces the addend.
const FUSED: [(Opcode, [[Mnemonic; 2]; 2]); 3] = {
    use Mnemonic as M;
    [
        (Opcode::MulAdd, [[M::Vfmadd213ps, M::Vfmadd231ps], [M::Vfmadd213pd, M::Vfmadd231pd]]),
        (Opcode::MulSub, [[M::Vfmsub213ps, M::Vfmsub231ps], [M::Vfmsub213pd, M::Vfmsub231pd]]),
        (Opcode::SubFrom, [[M::Vfnmadd213ps, M::Vfnmadd231ps], [M::Vfnmadd213pd, M::Vfnmadd231pd]]),
    ]
};
/// The opcode that texts of nests have so.
pub fn named(text: &str) -> Option<Opcode> {
    let all = names().into_iter().map(|n| n.0).chain(FUSED.map(|f| f.0));
    all.chain((0..64).flat_map(|n| [Opcode::Shl(n), Opcode::Shr(n), Opcode::Sar(n)])).find(|code| code.text() == text)
}
fn immediate(code: Opcode, m: u8) -> Option<u8> {
    match code {
        Opcode::Round(to) => Some(to | 8),
        Opcode::Compare(n) | Opcode::Shl(n) | Opcode::Shr(n) | Opcode::Sar(n) => Some(n),
        Opcode::ToHalf => Some(0),
        Opcode::High => Some(1),
        Opcode::Rotation(from) | Opcode::TurnQuarters(from) | Opcode::Halves(from) => Some(from),
        Opcode::Shuffle(from) | Opcode::Quads(from) => Some(from),
        Opcode::Evens => Some(0x88),
        Opcode::OddsDown => Some(32),
        Opcode::Odds => Some(0xaa),
        Opcode::Blend => Some(m << 4),
        _ => None,
    }
}
fn vector(f: &Emitted, n: u8, short: bool) -> Register {
    let first = match f.vector {
        _ if short => Register::XMM0,
        VectorSize::Ymm => Register::YMM0,
        VectorSize::Zmm => Register::ZMM0,
    };
    first + n as u32
}
/// Opcodes that exist for 256 bits only: bytes are assembled from halves.
fn is_short(code: Opcode) -> bool {
    matches!(code, Opcode::High | Opcode::Pack16 | Opcode::Pack8 | Opcode::Evens)
}
/// An operation on 512 bits that goes by way of a mask of bits.
fn is_masked<'a>(
    r: &Read,
    f: &Emitted,
    code: Opcode,
    [d, a, m]: [u8; 3],
    b: Site,
    first: &Instruction,
    next: &'a Instruction,
    body: &mut impl Iterator<Item = &'a Instruction>,
) {
    let by_width = |narrow, wide| if f.wide { wide } else { narrow };
    let chosen = |i: &Instruction| {
        assert_eq!(i.mnemonic(), by_width(Mnemonic::Vpblendmd, Mnemonic::Vpblendmq), "{i}");
        assert_eq!((i.op0_register(), i.op1_register()), (vector(f, d, false), vector(f, a, false)), "{i}");
        assert_eq!((i.op_mask(), i.zeroing_masking()), (Register::K1, false), "{i}");
        is_at(r, f, i, 2, b, false);
    };
    match code {
        Opcode::Blend => {
            assert_eq!(first.mnemonic(), by_width(Mnemonic::Vpmovd2m, Mnemonic::Vpmovq2m), "{first}");
            assert_eq!((first.op0_register(), first.op1_register()), (Register::K1, vector(f, m, false)), "{first}");
            chosen(next);
        }
        Opcode::Odds => {
            assert_eq!([first.to_string(), next.to_string()], ["mov eax,0AAAAh", "kmovw k1,eax"]);
            let i = body.next().unwrap();
            chosen(pointed(b, i, body));
        }
        _ => {
            let (_, narrow, wide) = *names().iter().find(|n| n.0 == code).unwrap();
            assert_eq!(Some(first.mnemonic()), if f.wide { wide } else { narrow }, "{first}");
            assert_eq!((first.op0_register(), first.op1_register()), (Register::K1, vector(f, a, false)), "{first}");
            is_at(r, f, first, 2, b, false);
            assert_eq!(immediate(code, m).unwrap_or(0), if first.op_count() == 4 { first.immediate8() } else { 0 });
            assert_eq!(next.mnemonic(), by_width(Mnemonic::Vpmovm2d, Mnemonic::Vpmovm2q), "{next}");
            assert_eq!((next.op0_register(), next.op1_register()), (vector(f, d, false), Register::K1), "{next}");
        }
    }
}

struct Read {
    all: Vec<Instruction>,
    bytes: Vec<u8>,
}
fn read(f: &Emitted) -> Read {
    let bytes = assemble(f, &masks::forms(f));
    let mut all = vec![];
    for i in &mut Decoder::with_ip(64, &bytes, 0, DecoderOptions::NONE) {
        all.push(i);
        if i.mnemonic() == Mnemonic::Ret {
            break;
        }
    }
    Read { all, bytes }
}
/// That operand `j` of the instruction is this place.
fn element(f: &Emitted, at: Site) -> MemoryElement {
    let Site::At(k) = at else { panic!("operands alone are narrow") };
    f.operands[k as usize]
}
fn is_at(r: &Read, f: &Emitted, i: &Instruction, j: u32, place: Site, short: bool) {
    match place {
        Site::Reg(n) => assert_eq!(i.op_register(j), vector(f, n, short), "{i}"),
        Site::Pool(c) => {
            assert!(i.op_kind(j) == OpKind::Memory && i.is_ip_rel_memory_operand(), "{i}");
            let at = i.ip_rel_memory_address() as usize;
            let size = if f.wide { 8 } else { 4 };
            let vector = f.vector.bytes();
            assert_eq!(at % vector, 0);
            for e in r.bytes[at..at + vector].chunks(size) {
                assert_eq!(e, &f.pool[c as usize].to_le_bytes()[..size]);
            }
        }
        Site::Stack(slot) => {
            assert_eq!((i.memory_base(), i.memory_index()), (Register::RSP, Register::None), "{i}");
            assert_eq!(i.memory_displacement64(), (f.vector.bytes() * slot as usize) as u64);
        }
        Site::At(k) => {
            let base = BASES.get(k as usize).copied().unwrap_or(Register::RAX);
            let scale = f.operands[k as usize].bytes(if f.wide { 8 } else { 4 }) as u32;
            assert_eq!((i.memory_base(), i.memory_index()), (base, Register::RDX), "{i}");
            assert_eq!((i.memory_index_scale(), i.memory_displacement64()), (scale, 0), "{i}");
        }
        Site::PairAt(k, second) => {
            let base = BASES.get(k as usize).copied().unwrap_or(Register::RAX);
            assert_eq!((i.memory_base(), i.memory_index()), (base, Register::R13), "{i}");
            let at = if second { f.vector.bytes() as u64 } else { 0 };
            assert_eq!((i.memory_index_scale(), i.memory_displacement64()), (if f.wide { 8 } else { 4 }, at), "{i}");
        }
    }
}
/// Skips the load of the pointer of an operand that has no register for it, and returns the next
/// instruction.
fn pointed<'a>(at: Site, i: &'a Instruction, body: &mut impl Iterator<Item = &'a Instruction>) -> &'a Instruction {
    let Site::At(k @ 9..) = at else { return i };
    assert_eq!((i.mnemonic(), i.memory_base(), i.op0_register()), (Mnemonic::Mov, Register::RDI, Register::RAX), "{i}");
    assert_eq!(i.memory_displacement64(), 8 * k as u64);
    body.next().unwrap()
}
/// Asserts that a body is encoded as its instructions say, and is placed correctly in the loop.
/// The code after a row, where there are several.
fn rows_text(f: &Emitted, r: &Read) -> Vec<String> {
    let Some(strides) = f.rows else { return vec![] };
    let mut text = vec![];
    for (k, by) in strides.iter().enumerate().filter(|s| *s.1 != 0) {
        let is_still = f.still.iter().any(|s| s.operand as usize == k && s.from.stride().is_none());
        text.push(match BASES.get(k).filter(|_| !is_still) {
            Some(base) => format!("add {base:?},{}", hex(*by)).to_lowercase(),
            None => format!("add qword ptr [rdi+{}],{}", hex(8 * k as i32), hex(*by)),
        });
    }
    let first_one =
        f.still.iter().find(|s| s.from == Kept::One).map(|s| format!("mov rax,[rdi+{}]", hex(8 * s.operand as i32)));
    let begin = first_one.unwrap_or("xor edx,edx".into());
    let row = r.all.iter().rfind(|i| i.to_string() == begin).expect("a row begins").ip();
    text.push(format!("dec qword ptr [rdi+{}]", hex(8 * TABLE as i32)));
    text.push(format!("jne {row:016X}h"));
    text
}
/// As the decoder writes numbers.
fn hex(n: i32) -> String {
    match n {
        ..10 => n.to_string(),
        n if format!("{n:X}").starts_with(|c: char| c.is_alphabetic()) => format!("0{n:X}h"),
        n => format!("{n:X}h"),
    }
}
fn check(f: &Emitted) {
    let r = read(f);
    let start = r.all.iter().position(|i| i.to_string() == "xor edx,edx").expect("the position starts at 0") + 1;
    let mut body = r.all[start..].iter();
    for inst in f.body {
        let mut i = body.next().unwrap();
        let at = match *inst {
            VecInst::Op { b: at, .. } | VecInst::Fused { b: at, .. } => at,
            VecInst::Load { from, .. } | VecInst::LoadNarrow { from, .. } => from,
            VecInst::Store { to, .. } | VecInst::StoreNarrow { to, .. } | VecInst::StoreHalf { to, .. } => to,
        };
        if f.vector == VectorSize::Ymm || !matches!(*inst, VecInst::Op { code: Opcode::Odds, .. }) {
            i = pointed(at, i, &mut body);
        }
        match *inst {
            VecInst::Op { code, d, a, b, m }
                if f.vector == VectorSize::Zmm
                    && matches!(
                        code,
                        Opcode::Blend | Opcode::Odds | Opcode::Compare(_) | Opcode::IntEq | Opcode::IntGt
                    ) =>
            {
                let next = body.next().unwrap();
                is_masked(&r, f, code, [d, a, m], b, i, next, &mut body);
            }
            VecInst::Op { code: code @ (Opcode::ToHalf | Opcode::FromHalf), d, b: Site::Reg(b), .. } => {
                let half = |n| if f.vector == VectorSize::Zmm { Register::YMM0 + n as u32 } else { vector(f, n, true) };
                let (name, to, from) = match code {
                    Opcode::ToHalf => (Mnemonic::Vcvtps2ph, half(d), vector(f, b, false)),
                    _ => (Mnemonic::Vcvtph2ps, vector(f, d, false), half(b)),
                };
                assert_eq!((i.mnemonic(), i.op0_register(), i.op1_register()), (name, to, from), "{i}");
                assert_eq!(i.op_count() == 3, code == Opcode::ToHalf, "{i}");
            }
            VecInst::Op { code, d, a, b, m } => {
                let (_, narrow, wide) = *names().iter().find(|n| n.0 == code).unwrap();
                let name = match (code, f.vector) {
                    (Opcode::Round(_), VectorSize::Zmm) if f.wide => Some(Mnemonic::Vrndscalepd),
                    (Opcode::Round(_), VectorSize::Zmm) => Some(Mnemonic::Vrndscaleps),
                    _ if f.wide => wide,
                    _ => narrow,
                };
                assert_eq!(Some(i.mnemonic()), name, "{i}");
                let short = is_short(code) && code != Opcode::High;
                assert_eq!(i.op0_register(), vector(f, d, short || code == Opcode::High), "{i}");
                let last = if code.is_binary() {
                    assert_eq!(i.op_register(1), vector(f, a, short), "{i}");
                    2
                } else {
                    1
                };
                is_at(&r, f, i, last, b, short);
                match immediate(code, m) {
                    Some(_) if code == Opcode::Blend => assert_eq!(i.op_register(3), vector(f, m, false), "{i}"),
                    Some(n) => assert_eq!(i.immediate8(), n, "{i}"),
                    None => assert_eq!(i.op_count(), last + 1, "{i}"),
                }
            }
            VecInst::Fused { code, grows, d, a, b } => {
                let (_, names) = FUSED.iter().find(|n| n.0 == code).unwrap();
                assert_eq!(i.mnemonic(), names[f.wide as usize][grows as usize], "{i}");
                assert_eq!((i.op0_register(), i.op1_register()), (vector(f, d, false), vector(f, a, false)), "{i}");
                assert_eq!(i.op_count(), 3, "{i}");
                is_at(&r, f, i, 2, b, false);
            }
            VecInst::Load { d, from } => {
                let moves = if matches!(from, Site::Reg(_)) { Mnemonic::Vmovaps } else { Mnemonic::Vmovups };
                assert_eq!((i.mnemonic(), i.op0_register()), (moves, vector(f, d, false)));
                is_at(&r, f, i, 1, from, false);
            }
            VecInst::LoadNarrow { d, from } => {
                let widens = match element(f, from) {
                    _ if f.wide => Mnemonic::Vpmovsxbq,
                    MemoryElement::U8 => Mnemonic::Vpmovzxbd,
                    MemoryElement::I16 | MemoryElement::F16 => Mnemonic::Vpmovsxwd,
                    MemoryElement::U16 | MemoryElement::Bf16 => Mnemonic::Vpmovzxwd,
                    _ => Mnemonic::Vpmovsxbd,
                };
                assert_eq!((i.mnemonic(), i.op0_register()), (widens, vector(f, d, false)));
                is_at(&r, f, i, 1, from, false);
            }
            VecInst::Store { from, to } => {
                assert_eq!((i.mnemonic(), i.op1_register()), (Mnemonic::Vmovups, vector(f, from, false)));
                is_at(&r, f, i, 0, to, false);
            }
            VecInst::StoreNarrow { from, to } => {
                let long = f.vector == VectorSize::Zmm;
                let is_half = element(f, to).bytes(4) == 2;
                let lowest = match (long, f.wide) {
                    (true, true) => Mnemonic::Vpmovqb,
                    (true, false) if is_half => Mnemonic::Vpmovdw,
                    (true, false) => Mnemonic::Vpmovdb,
                    (false, true) => Mnemonic::Vmovd,
                    (false, false) if is_half => Mnemonic::Vmovups,
                    (false, false) => Mnemonic::Vmovq,
                };
                assert_eq!((i.mnemonic(), i.op1_register()), (lowest, vector(f, from, !long)));
                is_at(&r, f, i, 0, to, true);
            }
            VecInst::StoreHalf { from, to } => {
                assert_eq!((i.mnemonic(), i.op1_register()), (Mnemonic::Vcvtps2ph, vector(f, from, false)));
                assert_eq!(i.immediate8(), 0, "{i}");
                is_at(&r, f, i, 0, to, true);
            }
        }
    }
    let rest: Vec<String> = body.map(|i| i.to_string()).collect();
    let jump = format!("jb {:016X}h", r.all[start].ip());
    let positions = f.vector.bytes() / if f.wide { 8 } else { 4 };
    let step = format!("add rdx,{}", if positions == 16 { "10h".into() } else { positions.to_string() });
    let end = [
        "mov rax,rdx",
        "lea rsp,[rbp-20h]",
        "pop r15",
        "pop r14",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "vzeroupper",
        "ret",
    ];
    let turn = [step.as_str(), "cmp rdx,rsi", &jump];
    let rows = rows_text(f, &r);
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    assert_eq!(rest, [&turn[..], &rows, &end].concat());
}
