//! Every instruction, move, loop and frame, written by the encoder and read by the decoder.
use super::*;

/// Each width of elements in each size of vectors.
const SHAPES: [(bool, VectorSize); 4] =
    [(false, VectorSize::Ymm), (true, VectorSize::Ymm), (false, VectorSize::Zmm), (true, VectorSize::Zmm)];

#[test]
fn every_instruction_is_written_as_it_is_meant() {
    let operands: Vec<MemoryElement> =
        (0..12).map(|k| if k % 4 == 3 { MemoryElement::Bool } else { MemoryElement::Lane }).collect();
    for (wide, vector) in SHAPES {
        for (code, narrow, wider) in names() {
            let of_the_other = match vector {
                VectorSize::Zmm => is_short(code) || matches!(code, Opcode::Halves(_)),
                VectorSize::Ymm => matches!(code, Opcode::TurnQuarters(_) | Opcode::Scale),
            };
            if (if wide { wider } else { narrow }).is_none() || of_the_other {
                continue;
            }
            let mut body = vec![];
            let all = vector.registers();
            for n in 0..all {
                let [d, a, m] = [n, (n * 7 + 3) % all, (n * 5 + 9) % all];
                let mut places = vec![Site::Reg((n as u32 * 11 + 6) as u8 % all)];
                if code.takes_memory() {
                    let k = [0, 1, 2, 4, 5, 6, 8, 9, 10][n as usize % 9];
                    places.extend([Site::Pool(n as u32 % 3), Site::Stack(n as u32 * 7), Site::At(k)]);
                }
                body.extend(places.into_iter().map(|b| VecInst::Op { code, d, a, b, m }));
            }
            let pool = [1, 0x8000_0000_7fc0_0000, u64::MAX];
            check(&Emitted { operands: &operands, frame: 230, pool: &pool, ..Emitted::new(wide, vector, &body) });
        }
    }
}
#[test]
fn every_fused_instruction_is_written_as_it_is_meant() {
    let operands = [MemoryElement::Lane; 12];
    for (wide, vector) in SHAPES {
        let mut body = vec![];
        let all = vector.registers();
        for n in 0..all {
            let places = [
                Site::Reg((n as u32 * 11 + 6) as u8 % all),
                Site::Pool(0),
                Site::Stack(n as u32),
                Site::At(n as u32 % 12),
            ];
            for (code, _) in FUSED {
                for (grows, b) in [false, true].into_iter().flat_map(|g| places.map(|b| (g, b))) {
                    body.push(VecInst::Fused { code, grows, d: n, a: (n * 7 + 3) % all, b });
                }
            }
        }
        check(&Emitted { operands: &operands, frame: 32, pool: &[7], ..Emitted::new(wide, vector, &body) });
    }
}
#[test]
fn every_move_is_written_as_it_is_meant() {
    let operand = |k: usize, wide: bool| match k {
        _ if k.is_multiple_of(2) => MemoryElement::Lane,
        _ if wide => MemoryElement::Bool,
        _ => [
            MemoryElement::Bool,
            MemoryElement::U8,
            MemoryElement::I8,
            MemoryElement::U16,
            MemoryElement::I16,
            MemoryElement::Bf16,
        ][k / 2],
    };
    for (wide, vector) in SHAPES {
        let operands: Vec<MemoryElement> = (0..12).map(|k| operand(k, wide)).collect();
        let mut body = vec![];
        let all = vector.registers();
        for n in 0..all {
            let slot = n as u32 * 9;
            let (lanes, bytes) = (Site::At(n as u32 % 6 * 2), Site::At(n as u32 % 6 * 2 + 1));
            body.extend([
                VecInst::Load { d: n, from: lanes },
                VecInst::Load { d: n, from: Site::Pool(0) },
                VecInst::Load { d: n, from: Site::Stack(slot) },
                VecInst::Load { d: n, from: Site::Reg(all - 1 - n) },
                VecInst::LoadNarrow { d: n, from: bytes },
                VecInst::Store { from: n, to: lanes },
                VecInst::Store { from: n, to: Site::Stack(slot) },
                VecInst::StoreNarrow { from: n, to: bytes },
            ]);
        }
        check(&Emitted { operands: &operands, frame: 280, pool: &[7], ..Emitted::new(wide, vector, &body) });
    }
}
#[test]
fn a_function_keeps_what_it_must_and_lays_out_its_frame() {
    let f = Emitted {
        operands: &[MemoryElement::Lane, MemoryElement::Bool, MemoryElement::Lane],
        still: &[(1, 0, Kept::Vector), (2, 1, Kept::One)].map(|(operand, slot, from)| KeptOperand {
            operand,
            slot,
            from,
        }),
        frame: 2,
        pool: &[5, 7],
        constants: &[(9, 1), (15, 0)],
        rows: Some(&[64, 0, 4]),
        ..Emitted::new(
            false,
            VectorSize::Ymm,
            &[VecInst::Load { d: 3, from: Site::Stack(1) }, VecInst::Store { from: 3, to: Site::At(0) }],
        )
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
        "mov rcx,[rdi]",
        "mov r8,[rdi+8]",
        "mov r9,[rdi+10h]",
    ];
    let kept: Vec<String> = kept.iter().map(|s| s.to_string()).collect();
    let plain = |s: &String| s.replace("ymmword ptr ", "").replace("qword ptr ", "").replace("dword ptr ", "");
    assert_eq!(all[8..14].iter().map(plain).collect::<Vec<_>>(), kept.iter().map(plain).collect::<Vec<_>>());
    let r = read(&f);
    for (i, (register, constant)) in r.all[14..].iter().zip(f.constants) {
        assert_eq!((i.mnemonic(), i.op0_register()), (Mnemonic::Vmovups, vector(&f, *register, false)), "{i}");
        is_at(&r, &f, i, 1, Site::Pool(*constant), false);
    }
    // a row begins
    let one = ["mov rax,[rdi+10h]", "vbroadcastss ymm0,[rax]", "vmovups [rsp+20h],ymm0", "xor edx,edx"];
    assert_eq!(all[16..20].iter().map(plain).collect::<Vec<_>>(), one);
}
#[test]
fn a_function_keeps_operands_of_any_width() {
    let still = [(0, 0, Kept::Vector), (1, 1, Kept::Vector), (2, 2, Kept::One)];
    let still = still.map(|(operand, slot, from)| KeptOperand { operand, slot, from });
    for (wide, vector) in SHAPES {
        let f = Emitted {
            operands: &[MemoryElement::Lane, MemoryElement::Bool, MemoryElement::Lane],
            still: &still,
            frame: 3,
            pool: &[5, 7],
            constants: &[(vector.registers() - 1, 1)],
            ..Emitted::new(wide, vector, &[])
        };
        check(&f);
        let (r, frame, first, second) = match vector {
            VectorSize::Ymm => ("ymm0", ["sub rsp,60h", "and rsp,0FFFFFFFFFFFFFFE0h"], "20h", "40h"),
            VectorSize::Zmm => ("zmm0", ["sub rsp,0C0h", "and rsp,0FFFFFFFFFFFFFFC0h"], "40h", "80h"),
        };
        let (widened, spread) = if wide { ("vpmovsxbq", "vbroadcastsd") } else { ("vpmovsxbd", "vbroadcastss") };
        let all: Vec<String> = read(&f).all.iter().map(|i| i.to_string()).collect();
        assert_eq!(all[6..8], frame);
        let kept = [
            "mov rax,[rdi]".into(),
            format!("vmovups {r},[rax]"),
            format!("vmovups [rsp],{r}"),
            "mov rax,[rdi+8]".into(),
            format!("{widened} {r},[rax]"),
            format!("vmovups [rsp+{first}],{r}"),
            "mov rax,[rdi+10h]".into(),
            format!("{spread} {r},[rax]"),
            format!("vmovups [rsp+{second}],{r}"),
        ];
        let plain = |s: &String| {
            ["zmmword", "ymmword", "xmmword", "qword", "dword"]
                .iter()
                .fold(s.clone(), |s, w| s.replace(&format!("{w} ptr "), ""))
        };
        // at the start of a row: code for a single element
        let row = all.iter().position(|i| i == "xor edx,edx").expect("the position starts at 0") - 3;
        let both = all[8..14].iter().chain(&all[row..row + 3]);
        assert_eq!(both.map(plain).collect::<Vec<_>>(), kept);
    }
}
/// The body of a function of long vectors as it is read.
fn body_text(body: &[VecInst]) -> Vec<String> {
    let f = Emitted { pool: &[u32::MAX as u64], ..Emitted::new(false, VectorSize::Zmm, body) };
    let all: Vec<String> = read(&f).all.iter().map(|i| i.to_string()).collect();
    let at = |s: &str| all.iter().position(|i| i.starts_with(s)).unwrap();
    all[at("xor edx") + 1..at("add rdx")].to_vec()
}
#[test]
fn masks_that_only_choose_stay_masks_of_bits() {
    let op = |code, d, a, b, m| VecInst::Op { code, d, a, b: Site::Reg(b), m };
    let body = [
        op(Opcode::Compare(1), 4, 0, 1, 0),
        op(Opcode::Compare(4), 5, 0, 0, 0),
        op(Opcode::Or, 5, 4, 5, 0),
        op(Opcode::Blend, 6, 1, 0, 5),
        op(Opcode::And, 7, 4, 6, 0),
        op(Opcode::AndNot, 8, 4, 7, 0),
        VecInst::Op { code: Opcode::Xor, d: 4, a: 4, b: Site::Pool(0), m: 0 },
        op(Opcode::Blend, 9, 7, 8, 4),
        // a vector operand as well
        op(Opcode::IntEq, 10, 0, 1, 0),
        op(Opcode::Blend, 11, 0, 1, 10),
        op(Opcode::IntAdd, 12, 10, 11, 0),
    ];
    let expected = [
        "vcmpltps k2,zmm0,zmm1",
        "vcmpneqps k3,zmm0,zmm0",
        "korw k3,k2,k3",
        "vpblendmd zmm6{k3},zmm1,zmm0",
        "vmovups zmm7{k2}{z},zmm6",
        "knotw k1,k2",
        "vmovups zmm8{k1}{z},zmm7",
        "knotw k2,k2",
        "vpblendmd zmm9{k2},zmm7,zmm8",
        "vpcmpeqd k2,zmm0,zmm1",
        "vpmovm2d zmm10,k2",
        "vpblendmd zmm11{k2},zmm0,zmm1",
        "vpaddd zmm12,zmm10,zmm11",
    ];
    assert_eq!(body_text(&body), expected);
    // more at one time than there are: the seventh is a vector
    let many: Vec<VecInst> = (0..7)
        .map(|n| op(Opcode::Compare(1), 8 + n, n, 7, 0))
        .chain((0..7).map(|n| op(Opcode::Blend, 16 + n, 0, 1, 8 + n)))
        .collect();
    let text = body_text(&many);
    assert_eq!(text[6..8], ["vcmpltps k1,zmm6,zmm7", "vpmovm2d zmm14,k1"]);
    assert_eq!(text[14..], ["vpmovd2m k1,zmm14", "vpblendmd zmm22{k1},zmm0,zmm1"]);
}
/// Rows of five: memory of the row is touched under its mask, which other masks are narrowed to.
#[test]
fn a_row_that_is_a_part_of_a_vector_is_masked() {
    let text = |wide| {
        let (at, op) = (Site::At(0), |code, d, a, b, m| VecInst::Op { code, d, a, b, m });
        let body = [
            VecInst::Load { d: 0, from: at },
            op(Opcode::Add, 1, 0, at, 0),
            VecInst::Fused { code: FUSED[0].0, grows: true, d: 1, a: 0, b: at },
            op(Opcode::Compare(1), 2, 0, at, 0),
            op(Opcode::Blend, 3, 0, at, 2),
            op(Opcode::And, 4, 2, at, 0),
            op(Opcode::Mul, 4, 4, Site::Pool(0), 0),
            VecInst::Store { from: 4, to: Site::Stack(0) },
            VecInst::Store { from: 4, to: at },
            VecInst::LoadNarrow { d: 5, from: Site::At(1) },
            VecInst::StoreNarrow { from: 5, to: Site::At(1) },
        ];
        let f = Emitted {
            operands: &[MemoryElement::Lane, MemoryElement::Bool],
            frame: 1,
            pool: &[7],
            rows: Some(&[40, 5]),
            masked: Some(5),
            ..Emitted::new(wide, VectorSize::Zmm, &body)
        };
        let all: Vec<String> = read(&f).all.iter().map(|i| i.to_string()).collect();
        let row = all.iter().position(|i| i == "xor edx,edx").unwrap();
        assert_eq!(all[row - 2..row], ["mov eax,1Fh", "kmovw k7,eax"]);
        let end = all.iter().position(|i| i.starts_with("add rdx")).unwrap();
        all[row + 1..end].join("\n")
    };
    let wide = [
        "vmovupd zmm0{k7}{z},[rcx+rdx*8]",
        "vaddpd zmm1{k7}{z},zmm0,[rcx+rdx*8]",
        "vfmadd231pd zmm1{k7}{z},zmm0,[rcx+rdx*8]",
        "vcmpltpd k2{k7},zmm0,[rcx+rdx*8]",
        "kandw k1,k2,k7",
        "vpblendmq zmm3{k1},zmm0,[rcx+rdx*8]",
        "kandw k1,k2,k7",
        "vmovupd zmm4{k1}{z},[rcx+rdx*8]",
        "vmulpd zmm4,zmm4,[100h]",
        "vmovupd [rsp],zmm4",
        "vmovupd [rcx+rdx*8]{k7},zmm4",
        "vpmovsxbq zmm5{k7}{z},[r8+rdx]",
        "vpmovqb [r8+rdx]{k7},zmm5",
    ]
    .join("\n");
    assert_eq!(text(true), wide);
    let narrow = [("pd ", "ps "), ("pblendmq", "pblendmd"), ("*8", "*4"), ("sxbq", "sxbd"), ("movqb", "movdb")];
    assert_eq!(text(false), narrow.iter().fold(wide, |s, (from, to)| s.replace(from, to)));
}
/// Strided elements of rows: gathered before the body, scattered when stored.
#[test]
fn strided_rows_are_gathered_and_scattered() {
    let text = |wide, n| {
        let still = [(0, 0, Kept::Strided(24)), (1, 1, Kept::Result(-16))];
        let f = Emitted {
            operands: &[MemoryElement::Lane, MemoryElement::Lane],
            still: &still.map(|(operand, slot, from)| KeptOperand { operand, slot, from }),
            frame: 2,
            rows: Some(&[40, 5]),
            masked: Some(n),
            ..Emitted::new(
                wide,
                VectorSize::Zmm,
                &[VecInst::Load { d: 5, from: Site::Stack(0) }, VecInst::Store { from: 5, to: Site::At(1) }],
            )
        };
        let all: Vec<String> = read(&f).all.iter().map(|i| i.to_string()).collect();
        let row = all.iter().position(|i| i.starts_with("kmovw k7")).unwrap();
        let end = all.iter().position(|i| i.starts_with("mov rax,rdx")).unwrap();
        assert_eq!(all[end - 4..end - 2], ["add rcx,28h", "add r8,5"]);
        all[row + 1..end - 7].iter().map(|s| s.replace(",FFFFFFFFFFFFFFF0h", "")).collect::<Vec<_>>()
    };
    let wide = [
        "vmovsd xmm0,[rcx]",
        "vmovhpd xmm0,xmm0,[rcx+18h]",
        "vmovsd xmm1,[rcx+30h]",
        "vinsertf32x4 zmm0,zmm0,xmm1,1",
        "vmovupd [rsp],zmm0",
        "xor edx,edx",
        "vmovupd zmm5,[rsp]",
        "vextractf32x4 xmm31,zmm5,0",
        "vmovsd [r8],xmm31",
        "vmovhpd [r8-10h],xmm31",
        "vextractf32x4 xmm31,zmm5,1",
        "vmovsd [r8-20h],xmm31",
    ];
    assert_eq!(text(true, 3), wide);
    let narrow = [
        "vmovss xmm0,[rcx]",
        "vinsertps xmm0,xmm0,[rcx+18h],10h",
        "vinsertps xmm0,xmm0,[rcx+30h],20h",
        "vinsertps xmm0,xmm0,[rcx+48h],30h",
        "vmovss xmm1,[rcx+60h]",
        "vinsertf32x4 zmm0,zmm0,xmm1,1",
        "vmovups [rsp],zmm0",
        "xor edx,edx",
        "vmovups zmm5,[rsp]",
        "vextractf32x4 xmm31,zmm5,0",
        "vextractps [r8],xmm31,0",
        "vextractps [r8-10h],xmm31,1",
        "vextractps [r8-20h],xmm31,2",
        "vextractps [r8-30h],xmm31,3",
        "vextractf32x4 xmm31,zmm5,1",
        "vextractps [r8-40h],xmm31,0",
    ];
    assert_eq!(text(false, 5), narrow);
}

#[test]
fn pairs_are_read_and_written_at_twice_the_position() {
    for (wide, vector) in SHAPES {
        let operands = [MemoryElement::Lane, MemoryElement::Pair, MemoryElement::Pair];
        let body = [false, true].map(|second| {
            let (from, to) = (Site::PairAt(1, second), Site::PairAt(2, second));
            [
                VecInst::Load { d: 3, from },
                VecInst::Op { code: Opcode::Add, d: 4, a: 3, b: from, m: 0 },
                VecInst::Store { from: 4, to },
            ]
        });
        let body = body.concat();
        let f = Emitted { operands: &operands, ..Emitted::new(wide, vector, &body) };
        let r = read(&f);
        let text: Vec<String> = r.all.iter().map(|i| i.to_string()).collect();
        for line in ["push r13", "xor r13d,r13d", "lea r13,[rdx+rdx]", "pop r13"] {
            assert_eq!(text.iter().filter(|t| *t == line).count(), 1, "{line} in {text:?}");
        }
        let moves = r.all.iter().filter(|i| i.memory_index() == Register::R13);
        let sites = body.iter().map(|i| match *i {
            VecInst::Load { from, .. } => (from, 1),
            VecInst::Store { to, .. } => (to, 0),
            VecInst::Op { b, .. } => (b, 2),
            _ => unreachable!("no other is there"),
        });
        assert_eq!(moves.clone().count(), body.len());
        moves.zip(sites).for_each(|(i, (site, j))| is_at(&r, &f, i, j, site, false));
    }
}
