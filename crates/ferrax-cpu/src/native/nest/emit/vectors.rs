//! Instructions on vectors: their moves, and whole numbers. Truth values are masks of the elements' width.
use super::{Emitter, NestSite, RegisterKind, V0, V1, V2};
use crate::instructions::VectorSize;
use crate::instructions::opcodes::{self, Coded, EXTRACT, LOAD, Length, Opcode, STORE, Shape, one, plain};
use crate::native::encode::{MASK, RAX, RDX, Rm, ZEROING};
use crate::nest::{Def, NestOp, NestValue};
use ferrax_kernel::DType;

impl Emitter<'_> {
    /// So many bytes further.
    fn further(&mut self, rm: Rm, bytes: i64) -> Rm {
        match rm {
            Rm::At { base, index, offset } => Rm::At { base, index, offset: self.near(offset as i64 + bytes) },
            other => other,
        }
    }
    pub(super) fn without_upper_halves(&mut self) {
        if self.has_vectors {
            self.e.without_upper_halves();
        }
    }
    /// An instruction over vectors of a shape, of one operand.
    fn moved(&mut self, row: Coded, shape: Shape, r: u8, rm: Rm) {
        self.e.vector(&shape.of(row), r, 0, rm, None);
    }
    /// A constant in all elements, or of a number.
    pub(super) fn constant(&mut self, shape: Shape, d: u8, bits: u64) {
        let from = self.e.pool(shape.wide, bits);
        self.moved(if shape.is_one() { opcodes::load_one(shape.wide) } else { LOAD }, shape, d, from);
    }
    fn nothing(&mut self, d: u8) {
        self.op(Opcode::Xor, Shape::vector(false), d, d, Rm::Reg(d));
    }
    /// Small numbers, one for each lane.
    fn numbers(&mut self, shape: Shape, d: u8, of: impl Fn(i64) -> i64) {
        let from = self.e.pattern(std::array::from_fn(|k| of(k as i64) as i8 as u8));
        self.moved(opcodes::widen_bytes(shape.wide), shape, d, from);
    }
    /// Bytes of a vector.
    fn bytes(&self, shape: Shape) -> i64 {
        let whole = self.e.size().bytes() as i64;
        if shape.length == Length::Whole { whole } else { whole / 2 }
    }
    /// A number in the first lane of the first vector in between, in all lanes.
    fn repeated(&mut self, shape: Shape, d: u8) {
        self.moved(opcodes::broadcast(shape.wide), shape, d, Rm::Reg(V0));
    }
    /// Broadcasts a number, from any location, to all lanes.
    fn splat(&mut self, v: NestValue, def: &Def, shape: Shape) {
        let (of, d) = (def.args[0], self.target(v, V0));
        match (self.site(of), def.dtype) {
            (NestSite::Bits(x), DType::Bool) => self.constant(shape, d, if x & 0xff != 0 { u64::MAX } else { 0 }),
            (NestSite::Bits(x), _) => self.constant(shape, d, x),
            (site, DType::Bool) => {
                self.copy(site, NestSite::Whole(RAX));
                self.truth_to_mask(shape.wide);
                self.repeated(shape, d);
            }
            (NestSite::Whole(r), _) => {
                self.e.vector(&opcodes::from_whole(shape.wide), V0, 0, Rm::Reg(r), None);
                self.repeated(shape, d);
            }
            _ => {
                let from = self.rm(of);
                self.moved(opcodes::broadcast(shape.wide), shape, d, from);
            }
        }
        self.done(v, d);
    }

    pub(super) fn vector(&mut self, pos: usize, v: NestValue) {
        let def = *self.nest.def(v);
        let shape = self.shape(v);
        let wide = shape.wide;
        match def.op {
            NestOp::Carry | NestOp::After | NestOp::Const(_) | NestOp::Input(_) => (),
            NestOp::Splat => self.splat(v, &def, shape),
            NestOp::Ramp(by) => {
                let first = self.whole(def.args[0], RAX);
                self.e.vector(&opcodes::from_whole(wide), V0, 0, Rm::Reg(first), None);
                self.repeated(shape, V0);
                self.numbers(shape, V1, |k| k * by as i64);
                let d = self.target(v, V0);
                self.op(Opcode::IntAdd, shape, d, V0, Rm::Reg(V1));
                self.done(v, d);
            }
            NestOp::Load(array, offset) => {
                let from = self.element(array, def.args[0], offset, def.dtype);
                let d = self.target(v, V0);
                if def.dtype == DType::Bool {
                    self.moved(plain(2, 1, 0x31 + wide as u8), shape, V0, from);
                    self.nothing(V1);
                    self.op(Opcode::IntSub, shape, d, V1, Rm::Reg(V0));
                } else {
                    self.moved(LOAD, shape, d, from);
                }
                self.done(v, d);
            }
            NestOp::LoadApart(array, offset, stride, lanes) => {
                let from = self.element(array, def.args[0], offset, def.dtype);
                let d = self.target(v, V0);
                self.load_apart(d, from, shape, stride, lanes as i32);
                self.done(v, d);
            }
            NestOp::LoadWide(array, offset, from) => {
                let place = self.element(array, def.args[0], offset, from);
                let d = self.target(v, V0);
                let row = match (from, def.dtype) {
                    (DType::F32, _) => plain(1, 0, 0x5a),
                    (_, DType::F64) => plain(1, 2, 0xe6),
                    (DType::U32, _) => plain(2, 1, 0x35),
                    _ => plain(2, 1, 0x25),
                };
                self.moved(row, shape, d, place);
                self.done(v, d);
            }
            NestOp::Blend(lanes) => {
                let others = self.float(def.args[1], V1);
                let first = self.rm(def.args[0]);
                let d = self.target(v, V0);
                let bits = (1 << lanes) - 1;
                if self.e.size() == VectorSize::Zmm {
                    self.e.bit_mask(MASK, bits, RDX);
                    self.e.chosen(shape, d, others, first, MASK);
                } else {
                    self.e.vector(&plain(3, 1, 0x0c + wide as u8), d, others, first, Some(bits as u8));
                }
                self.done(v, d);
            }
            NestOp::Bits(_) => {
                let (from, to) = (self.site(def.args[0]), self.site(v));
                self.copy(from, to);
            }
            NestOp::Call(f, n) => self.call(pos, v, f, n),
            NestOp::Vector(code) => self.instruction(v, code, shape),
            NestOp::Down(by) => {
                let a = self.float(def.args[0], V0);
                let d = self.target(v, V0);
                match by as usize * if wide { 8 } else { 4 } {
                    32 => self.op(Opcode::TurnQuarters(0x4e), shape, d, a, Rm::Reg(a)),
                    16 if self.bytes(shape) == 64 => self.op(Opcode::TurnQuarters(0xb1), shape, d, a, Rm::Reg(a)),
                    16 => self.op(Opcode::Quads(0x4e), shape, d, 0, Rm::Reg(a)),
                    8 => self.op(Opcode::Rotation(0x4e), shape, d, 0, Rm::Reg(a)),
                    _ => self.op(Opcode::Rotation(0xb1), shape, d, 0, Rm::Reg(a)),
                }
                self.done(v, d);
            }
            op => unreachable!("{op:?} is made of instructions, or of single numbers"),
        }
    }
    /// An instruction on vectors, or on the first lane.
    pub(super) fn instruction(&mut self, v: NestValue, code: Opcode, shape: Shape) {
        let def = *self.nest.def(v);
        let (args, d) = (def.args(), self.target(v, V0));
        let last = args[args.len() - 1];
        let last = match self.rm(last) {
            Rm::Reg(r) => Rm::Reg(r),
            memory if code.takes_memory() && (def.lanes > 1 || self.nest.known(last).is_some()) => memory,
            _ => Rm::Reg(self.float(last, V2)),
        };
        let first = match last {
            _ if args.len() > 1 => self.float(args[0], V1),
            // of single numbers, the other lanes are those of the first operand
            Rm::Reg(r) => r,
            _ => 0,
        };
        if code.is_fused() {
            // the product's second factor becomes the result
            let d = if d == first || last == Rm::Reg(d) { V0 } else { d };
            match self.float(args[1], d) {
                r if r == d => (),
                r => self.moved(opcodes::COPY, shape, d, Rm::Reg(r)),
            }
            self.op(code, shape, d, first, last);
            return self.done(v, d);
        }
        let mask = if code == Opcode::Blend { self.float(args[1], V0) } else { 0 };
        self.e.op(code, shape, d, first, last, mask);
        self.done(v, d);
    }
    /// The first lane as a number.
    pub(super) fn first(&mut self, v: NestValue, of: NestValue) {
        let r = self.float(of, V0);
        // instructions on single numbers name the first sixteen registers only
        let near = if r < 16 { r } else { V0 };
        self.copy(NestSite::Vector(r), NestSite::Vector(near));
        let to = self.site(v);
        if self.kind(v) == RegisterKind::Whole(false) {
            // without the second lane, which would be the number's upper half
            self.e.vector(&opcodes::to_whole(false), near, 0, Rm::Reg(RAX), None);
            return self.copy(NestSite::Whole(RAX), to);
        }
        self.copy(NestSite::Float(near), to);
    }
    /// The first `lanes` of a vector: elements that are `stride` apart, one by one; the other lanes are zero.
    fn load_apart(&mut self, d: u8, from: Rm, shape: Shape, stride: i32, lanes: i32) {
        let wide = shape.wide;
        let size = if wide { 8i64 } else { 4 };
        if stride == -1 && lanes as i64 * size == self.bytes(shape) {
            let first = self.further(from, size - self.bytes(shape));
            return self.turned(d, first, shape);
        }
        if stride == 1 && self.e.size() == VectorSize::Zmm {
            self.e.bit_mask(MASK, (1 << lanes) - 1, RDX);
            let row = Coded { prefix: wide as u8, ..LOAD.wide(wide) };
            return self.e.masked(&shape.of(row), d, 0, from, None, ZEROING | MASK);
        }
        if stride == 1 {
            self.numbers(shape, V1, |k| if k < lanes as i64 { -1 } else { 0 });
            return self.e.vector(&plain(2, 1, 0x2c + wide as u8), d, V1, from, None);
        }
        let places = self.places(from, lanes, stride as i64 * size);
        self.e.gather(shape, [V0, V1], places.len(), |_, k| places[k]);
        self.copy(NestSite::Vector(V0), NestSite::Vector(d));
    }
    /// The other way round.
    fn turned(&mut self, d: u8, from: Rm, shape: Shape) {
        if shape.wide && self.bytes(shape) == 32 {
            return self.op(Opcode::Quads(0x1b), shape, d, 0, from);
        }
        let last = self.bytes(shape) / if shape.wide { 8 } else { 4 } - 1;
        self.numbers(shape, V2, |k| last - k);
        self.e.vector(&shape.of(plain(2, 1, 0x16).wide(shape.wide)), d, V2, from, None);
    }
    pub(super) fn store_vector(
        &mut self,
        (array, index, offset): (u32, NestValue, i32),
        value: NestValue,
        dtype: DType,
        stride: i32,
    ) {
        let shape = self.shape(value);
        let (wide, long) = (shape.wide, self.e.size() == VectorSize::Zmm);
        let x = self.float(value, V0);
        let to = self.element(array, index, offset, dtype);
        let size = if wide { 8i64 } else { 4 };
        if dtype == DType::Bool && long {
            self.op(Opcode::Shr(if wide { 63 } else { 31 }), shape, V1, 0, Rm::Reg(x));
            return self.moved(plain(2, 2, if wide { 0x32 } else { 0x31 }), shape, V1, to);
        }
        if dtype == DType::Bool {
            self.e.vector(&plain(1, wide as u8, 0x50), RDX, 0, Rm::Reg(x), None);
            let bytes = self.e.pool(true, 0x0101_0101_0101_0101);
            self.e.vector(&one(2, 3, 0xf5).wide(true), RDX, RDX, bytes, None);
            return self.e.whole(!wide, &[0x89], RDX, to, &[]);
        }
        if wide && dtype.size() == 4 {
            // numbers of half the width
            match dtype {
                DType::F32 => self.moved(Coded { w_long: true, ..plain(1, 1, 0x5a) }, shape, V1, Rm::Reg(x)),
                _ if long => self.moved(plain(2, 2, 0x35), shape, x, Rm::Reg(V1)),
                _ => {
                    self.e.vector(&EXTRACT, x, 0, Rm::Reg(V1), Some(1));
                    self.op(Opcode::Evens, Shape::vector(false), V1, x, Rm::Reg(V1));
                }
            }
            let length = if shape.length == Length::Whole { Length::Half } else { Length::Quarter };
            return self.e.vector(&Coded { length, ..STORE }, V1, 0, to, None);
        }
        match stride {
            1 => self.moved(STORE, shape, x, to),
            -1 => {
                self.turned(V1, Rm::Reg(x), shape);
                let first = self.further(to, size - self.bytes(shape));
                self.moved(STORE, shape, V1, first);
            }
            _ => {
                let places = self.places(to, (self.bytes(shape) / size) as i32, stride as i64 * size);
                self.e.scatter(shape, [x, V1], places.len(), |_, k| places[k]);
            }
        }
    }
    /// So many places, so many bytes apart.
    fn places(&mut self, first: Rm, n: i32, bytes: i64) -> Vec<Rm> {
        (0..n as i64).map(|k| self.further(first, k * bytes)).collect()
    }
}
