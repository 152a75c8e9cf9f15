//! What the encoder writes, read by a decoder that knows nothing of it.
use super::asm::{Emitted, Opcode, Site, VecInst, assemble};
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

/// Every code, with what it is called in each width; none where there is no such instruction.
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
        both(High, M::Vextracti128, M::Vextracti128),
        both(Pack16, M::Vpackusdw, M::Vpackusdw),
        both(Pack8, M::Vpackuswb, M::Vpackuswb),
        both(Evens, M::Vshufps, M::Vshufps),
        narrow(Sar(13), M::Vpsrad),
    ];
    all.extend([0, 1, 2, 3].map(|to| both(Round(to), M::Vroundps, M::Vroundpd)));
    all.extend([0, 3, 4, 0x11, 0x12].map(|p| both(Compare(p), M::Vcmpps, M::Vcmppd)));
    all.extend([1, 23, 31].map(|n| both(Shl(n), M::Vpslld, M::Vpsllq)));
    all.extend([1, 23, 31].map(|n| both(Shr(n), M::Vpsrld, M::Vpsrlq)));
    all
}
/// What is fused, where the result replaces a factor and where it replaces the sum.
const FUSED: [(Opcode, [[Mnemonic; 2]; 2]); 3] = {
    use Mnemonic as M;
    [
        (Opcode::MulAdd, [[M::Vfmadd213ps, M::Vfmadd231ps], [M::Vfmadd213pd, M::Vfmadd231pd]]),
        (Opcode::MulSub, [[M::Vfmsub213ps, M::Vfmsub231ps], [M::Vfmsub213pd, M::Vfmsub231pd]]),
        (Opcode::SubFrom, [[M::Vfnmadd213ps, M::Vfnmadd231ps], [M::Vfnmadd213pd, M::Vfnmadd231pd]]),
    ]
};
fn immediate(code: Opcode, m: u8) -> Option<u8> {
    match code {
        Opcode::Round(to) => Some(to | 8),
        Opcode::Compare(n) | Opcode::Shl(n) | Opcode::Shr(n) | Opcode::Sar(n) => Some(n),
        Opcode::High => Some(1),
        Opcode::Evens => Some(0x88),
        Opcode::Blend => Some(m << 4),
        _ => None,
    }
}
fn vector(n: u8, short: bool) -> Register {
    (if short { Register::XMM0 } else { Register::YMM0 }) + n as u32
}

struct Read {
    all: Vec<Instruction>,
    bytes: Vec<u8>,
}
fn read(f: &Emitted) -> Read {
    let bytes = assemble(f);
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
fn is_at(r: &Read, f: &Emitted, i: &Instruction, j: u32, place: Site, short: bool) {
    match place {
        Site::Reg(n) => assert_eq!(i.op_register(j), vector(n, short), "{i}"),
        Site::Pool(c) => {
            assert!(i.op_kind(j) == OpKind::Memory && i.is_ip_rel_memory_operand(), "{i}");
            let at = i.ip_rel_memory_address() as usize;
            let size = if f.wide { 8 } else { 4 };
            assert_eq!(at % 32, 0);
            for e in r.bytes[at..at + 32].chunks(size) {
                assert_eq!(e, &f.pool[c as usize].to_le_bytes()[..size]);
            }
        }
        Site::Stack(slot) => {
            assert_eq!((i.memory_base(), i.memory_index()), (Register::RSP, Register::None), "{i}");
            assert_eq!(i.memory_displacement64(), 32 * slot as u64);
        }
        Site::At(k) => {
            let base = BASES.get(k as usize).copied().unwrap_or(Register::RAX);
            let scale = match (f.operands[k as usize], f.wide) {
                (true, _) => 1,
                (_, false) => 4,
                (_, true) => 8,
            };
            assert_eq!((i.memory_base(), i.memory_index()), (base, Register::RDX), "{i}");
            assert_eq!((i.memory_index_scale(), i.memory_displacement64()), (scale, 0), "{i}");
        }
    }
}
/// That a body was written as it was meant, and stands in the loop as it should.
fn check(f: &Emitted) {
    let r = read(f);
    let is_pointer = |i: &Instruction| i.mnemonic() == Mnemonic::Mov && i.memory_base() == Register::RDI;
    let start = r.all.iter().position(|i| i.to_string() == "xor edx,edx").expect("the position starts at 0") + 1;
    let mut body = r.all[start..].iter();
    for inst in f.body {
        let mut i = body.next().unwrap();
        let at = match *inst {
            VecInst::Op { b: at, .. } | VecInst::Fused { b: at, .. } => at,
            VecInst::Load { from, .. } | VecInst::LoadBytes { from, .. } => from,
            VecInst::Store { to, .. } | VecInst::StoreBytes { to, .. } => to,
        };
        if let Site::At(k @ 9..) = at {
            assert!(is_pointer(i) && i.op0_register() == Register::RAX, "{i}");
            assert_eq!(i.memory_displacement64(), 8 * k as u64);
            i = body.next().unwrap();
        }
        match *inst {
            VecInst::Op { code, d, a, b, m } => {
                let (_, narrow, wide) = *names().iter().find(|n| n.0 == code).unwrap();
                assert_eq!(Some(i.mnemonic()), if f.wide { wide } else { narrow }, "{i}");
                let short = matches!(code, Opcode::Pack16 | Opcode::Pack8 | Opcode::Evens);
                assert_eq!(i.op0_register(), vector(d, short || code == Opcode::High), "{i}");
                let last = if code.is_binary() {
                    assert_eq!(i.op_register(1), vector(a, short), "{i}");
                    2
                } else {
                    1
                };
                is_at(&r, f, i, last, b, short);
                match immediate(code, m) {
                    Some(_) if code == Opcode::Blend => assert_eq!(i.op_register(3), vector(m, false), "{i}"),
                    Some(n) => assert_eq!(i.immediate8(), n, "{i}"),
                    None => assert_eq!(i.op_count(), last + 1, "{i}"),
                }
            }
            VecInst::Fused { code, grows, d, a, b } => {
                let (_, names) = FUSED.iter().find(|n| n.0 == code).unwrap();
                assert_eq!(i.mnemonic(), names[f.wide as usize][grows as usize], "{i}");
                assert_eq!((i.op0_register(), i.op1_register()), (vector(d, false), vector(a, false)), "{i}");
                assert_eq!(i.op_count(), 3, "{i}");
                is_at(&r, f, i, 2, b, false);
            }
            VecInst::Load { d, from } => {
                let moves = if matches!(from, Site::Reg(_)) { Mnemonic::Vmovaps } else { Mnemonic::Vmovups };
                assert_eq!((i.mnemonic(), i.op0_register()), (moves, vector(d, false)));
                is_at(&r, f, i, 1, from, false);
            }
            VecInst::LoadBytes { d, from } => {
                let widens = if f.wide { Mnemonic::Vpmovsxbq } else { Mnemonic::Vpmovsxbd };
                assert_eq!((i.mnemonic(), i.op0_register()), (widens, vector(d, false)));
                is_at(&r, f, i, 1, from, false);
            }
            VecInst::Store { from, to } => {
                assert_eq!((i.mnemonic(), i.op1_register()), (Mnemonic::Vmovups, vector(from, false)));
                is_at(&r, f, i, 0, to, false);
            }
            VecInst::StoreBytes { from, to } => {
                let lowest = if f.wide { Mnemonic::Vmovd } else { Mnemonic::Vmovq };
                assert_eq!((i.mnemonic(), i.op1_register()), (lowest, vector(from, true)));
                is_at(&r, f, i, 0, to, true);
            }
        }
    }
    let rest: Vec<String> = body.map(|i| i.to_string()).collect();
    let jump = format!("jb {:016X}h", r.all[start].ip());
    let step = if f.wide { "add rdx,4" } else { "add rdx,8" };
    let end = ["lea rsp,[rbp-20h]", "pop r15", "pop r14", "pop r12", "pop rbx", "pop rbp", "vzeroupper", "ret"];
    assert_eq!(rest, [&[step, "cmp rdx,rsi", &jump][..], &end].concat());
}

#[test]
fn every_instruction_is_written_as_it_is_meant() {
    let operands: Vec<bool> = (0..12).map(|k| k % 4 == 3).collect();
    for wide in [false, true] {
        for (code, narrow, wider) in names() {
            if (if wide { wider } else { narrow }).is_none() {
                continue;
            }
            let mut body = vec![];
            for n in 0..16u8 {
                let [d, a, m] = [n, (n * 7 + 3) % 16, (n * 5 + 9) % 16];
                let mut places = vec![Site::Reg((n * 11 + 6) % 16)];
                if code.takes_memory() {
                    let k = [0, 1, 2, 4, 5, 6, 8, 9, 10][n as usize % 9];
                    places.extend([Site::Pool(n as u32 % 3), Site::Stack(n as u32 * 7), Site::At(k)]);
                }
                body.extend(places.into_iter().map(|b| VecInst::Op { code, d, a, b, m }));
            }
            let pool = [1, 0x8000_0000_7fc0_0000, u64::MAX];
            check(&Emitted {
                wide,
                operands: &operands,
                still: &[],
                body: &body,
                frame: 106,
                pool: &pool,
                constants: &[],
            });
        }
    }
}
#[test]
fn every_fused_instruction_is_written_as_it_is_meant() {
    let operands = [false; 12];
    for wide in [false, true] {
        let mut body = vec![];
        for n in 0..16u8 {
            let places = [Site::Reg((n * 11 + 6) % 16), Site::Pool(0), Site::Stack(n as u32), Site::At(n as u32 % 12)];
            for (code, _) in FUSED {
                for (grows, b) in [false, true].into_iter().flat_map(|g| places.map(|b| (g, b))) {
                    body.push(VecInst::Fused { code, grows, d: n, a: (n * 7 + 3) % 16, b });
                }
            }
        }
        check(&Emitted { wide, operands: &operands, still: &[], body: &body, frame: 16, pool: &[7], constants: &[] });
    }
}
#[test]
fn every_move_is_written_as_it_is_meant() {
    let operands: Vec<bool> = (0..12).map(|k| k % 2 == 1).collect();
    for wide in [false, true] {
        let mut body = vec![];
        for n in 0..16u8 {
            let slot = n as u32 * 9;
            let (lanes, bytes) = (Site::At(n as u32 % 6 * 2), Site::At(n as u32 % 6 * 2 + 1));
            body.extend([
                VecInst::Load { d: n, from: lanes },
                VecInst::Load { d: n, from: Site::Pool(0) },
                VecInst::Load { d: n, from: Site::Stack(slot) },
                VecInst::Load { d: n, from: Site::Reg(15 - n) },
                VecInst::LoadBytes { d: n, from: bytes },
                VecInst::Store { from: n, to: lanes },
                VecInst::Store { from: n, to: Site::Stack(slot) },
                VecInst::StoreBytes { from: n, to: bytes },
            ]);
        }
        check(&Emitted { wide, operands: &operands, still: &[], body: &body, frame: 136, pool: &[7], constants: &[] });
    }
}
#[test]
fn a_function_keeps_what_it_must_and_lays_out_its_frame() {
    let f = Emitted {
        wide: false,
        operands: &[false, true, false],
        still: &[(1, 0), (2, 1)],
        body: &[VecInst::Load { d: 3, from: Site::Stack(1) }, VecInst::Store { from: 3, to: Site::At(0) }],
        frame: 2,
        pool: &[5, 7],
        constants: &[(9, 1), (15, 0)],
    };
    check(&f);
    let all: Vec<String> = read(&f).all.iter().map(|i| i.to_string()).collect();
    let begin = ["push rbp", "mov rbp,rsp", "push rbx", "push r12", "push r14", "push r15", "sub rsp,40h"];
    assert_eq!(all[..7], begin);
    assert_eq!(all[7], "and rsp,0FFFFFFFFFFFFFFE0h");
    let kept = [
        "mov rax,[rdi+8]",
        "vpmovsxbd ymm0,qword ptr [rax]",
        "vmovups [rsp],ymm0",
        "mov rax,[rdi+10h]",
        "vmovups ymm0,[rax]",
        "vmovups [rsp+20h],ymm0",
        "mov rcx,[rdi]",
        "mov r8,[rdi+8]",
        "mov r9,[rdi+10h]",
    ];
    let kept: Vec<String> = kept.iter().map(|s| s.to_string()).collect();
    let plain = |s: &String| s.replace("ymmword ptr ", "").replace("qword ptr ", "");
    assert_eq!(all[8..17].iter().map(plain).collect::<Vec<_>>(), kept.iter().map(plain).collect::<Vec<_>>());
    let r = read(&f);
    for (i, (register, constant)) in r.all[17..].iter().zip(f.constants) {
        assert_eq!((i.mnemonic(), i.op0_register()), (Mnemonic::Vmovups, vector(*register, false)), "{i}");
        is_at(&r, &f, i, 1, Site::Pool(*constant), false);
    }
    assert_eq!(all[19], "xor edx,edx");
}
