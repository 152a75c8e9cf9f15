//! Programs by rows: pointers to operands read in place, loads and stores with strides, index values.
//!
//! INVARIANT: the elements touched are those that the kernel names for the positions, which `Kernel::verify` proved to exist.
use super::{Frame, Indices, Loads, Op, Stores, TileProgram};
use crate::kernels::moves;
use smallvec::SmallVec;

impl TileProgram {
    /// Sets the pointers of buffers used in place and of loads to position `pos`, by the row it is
    /// in; returns how many rows from this one on follow at a constant stride.
    #[inline]
    pub(super) fn point_to_row(&self, frame: &mut Frame, pos: usize) -> usize {
        let last = self.dims.len() - 1;
        let (mut row, j) = if last == 0 { (0, pos) } else { (pos / self.dims[last], pos % self.dims[last]) };
        let mut ix: SmallVec<[usize; 4]> = SmallVec::from_elem(0, last);
        for k in (0..last).rev() {
            ix[k] = if k == 0 { row } else { row % self.dims[k] };
            row /= self.dims[k];
        }
        let at = |strides: &[i64]| {
            (j as i64 * strides[last] + ix.iter().zip(strides).map(|(i, s)| *i as i64 * s).sum::<i64>()) as isize
        };
        for (k, d) in self.directs.iter().enumerate() {
            frame.p[self.n_regs + k] = frame.base[k].wrapping_offset(at(&d.strides) * d.size as isize);
        }
        for (p, l) in frame.p[self.n_regs + self.directs.len()..].iter_mut().zip(&self.loads) {
            *p = frame.bases.of(l.buf).wrapping_offset((l.offset as isize + at(&l.strides)) * l.size as isize);
        }
        for (p, s) in frame.p[self.n_regs + self.directs.len() + self.loads.len()..].iter_mut().zip(&self.stores) {
            *p = frame.bases.output(s.output).wrapping_offset((s.offset as isize + at(&s.strides)) * s.size as isize);
        }
        if last == 0 { 1 } else { self.dims[last - 1] - ix[last - 1] }
    }
    #[inline]
    pub(super) fn point_to_next_row(&self, frame: &mut Frame) {
        let outer = self.dims.len() - 2;
        let directs = self.directs.iter().map(|d| (d.size, d.strides[outer]));
        let loads = self.loads.iter().map(|l| (l.size, l.strides[outer]));
        let stores = self.stores.iter().map(|s| (s.size, s.strides[outer]));
        for (p, (size, stride)) in frame.p[self.n_regs..].iter_mut().zip(directs.chain(loads).chain(stores)) {
            *p = p.wrapping_offset(stride as isize * size as isize);
        }
    }
    /// # Safety
    /// As `eval`.
    pub(super) unsafe fn load(&self, load: u32, d: Op, frame: &mut Frame, pos: usize, mut n: usize) {
        let l = &self.loads[load as usize];
        if self.by_rows && l.guards.is_empty() {
            let from = frame.p[self.n_regs + self.directs.len() + load as usize];
            if l.in_place {
                frame.p[d as usize] = from;
            } else {
                // SAFETY: the row's elements, which the kernel names; the register has room for them.
                unsafe { (l.f)(frame.p[d as usize], from, 1, 0, n, l.strides[l.strides.len() - 1] as isize) }
            }
            return;
        }
        // SAFETY: the elements read are those the kernel names for the positions, inside the input by `Kernel::verify`.
        unsafe {
            let src = frame.bases.of(l.buf);
            let at = |off: i64| src.cast_const().wrapping_offset(off as isize * l.size as isize);
            let last = self.dims.len() - 1;
            let (width, stride) = (self.dims[last], l.strides[last]);
            let mut j = pos % width;
            let mut ix: SmallVec<[usize; 8]> = SmallVec::from_elem(0, last);
            let mut rest = pos / width;
            let mut off = l.offset;
            for k in (0..last).rev() {
                ix[k] = rest % self.dims[k];
                rest /= self.dims[k];
                off += ix[k] as i64 * l.strides[k];
            }
            if l.in_place && j + n <= width && stride == 1 {
                frame.p[d as usize] = at(off + j as i64).cast_mut();
                return;
            }
            let mut out = if l.in_place { self.own_register(frame, d) } else { frame.p[d as usize] };
            while n > 0 {
                let mut rows = 1;
                let len = (width - j).min(n);
                if !l.guards.is_empty() {
                    self.guarded(l, &ix, at(off), out, j, len);
                } else if len == width && last > 0 {
                    rows = (n / width).min(self.dims[last - 1] - ix[last - 1]);
                    (l.f)(out, at(off), rows, l.strides[last - 1] as isize, width, stride as isize);
                } else {
                    (l.f)(out, at(off + j as i64 * stride), 1, 0, len, stride as isize);
                }
                let done = if rows > 1 { rows * width } else { len };
                out = out.add(done * l.lane_bytes);
                n -= done;
                j = 0;
                // Next row.
                let mut k = last;
                let mut step = rows;
                while k > 0 && step > 0 {
                    k -= 1;
                    ix[k] += step;
                    off += step as i64 * l.strides[k];
                    step = 0;
                    if ix[k] == self.dims[k] {
                        off -= ix[k] as i64 * l.strides[k];
                        ix[k] = 0;
                        step = 1;
                    }
                }
            }
        }
    }
    /// # Safety
    /// As `eval`; `v` holds n lanes.
    pub(super) unsafe fn store(&self, s: &Stores, mut v: *const u8, frame: &Frame, pos: usize, mut n: usize) {
        let last = self.dims.len() - 1;
        let (width, stride) = (self.dims[last], s.strides[last] as isize);
        let (mut row, mut j) = (pos / width, pos % width);
        let to = frame.bases.output(s.output);
        while n > 0 {
            let (mut rest, mut at) = (row, s.offset + j as i64 * s.strides[last]);
            let mut rows = n / width; // whole ones, up to where the loop outside them begins again
            for k in (0..last).rev() {
                let i = rest % self.dims[k];
                at += i as i64 * s.strides[k];
                rest /= self.dims[k];
                if k + 1 == last {
                    rows = rows.min(self.dims[k] - i);
                }
            }
            let (rows, len) = if j == 0 && rows > 1 && last > 0 { (rows, width) } else { (1, (width - j).min(n)) };
            let row_stride = if last > 0 { s.strides[last - 1] as isize } else { 0 };
            // SAFETY: the elements of these positions belong to this thread and lie inside the
            // output; the lanes are computed.
            unsafe {
                (s.f)(to.wrapping_offset(at as isize * s.size as isize), v, rows, row_stride, len, stride);
                v = v.add(rows * len * s.lane_bytes);
            }
            n -= rows * len;
            row += rows;
            j = 0;
        }
    }
    /// A register whose table entry an earlier tile may have pointed at a row in place.
    pub(super) fn own_register(&self, frame: &mut Frame, d: Op) -> *mut u8 {
        // The registers are contiguous behind the table, and the frame's slices span both.
        let regs =
            frame.p.as_ptr().cast::<u8>().wrapping_add(((frame.p.len() + frame.base.len()) * 8).next_multiple_of(64));
        let own = regs.wrapping_add(d as usize * self.reg_bytes).cast_mut();
        frame.p[d as usize] = own;
        own
    }
    /// A part of a row: the fill before the elements, the elements, the fill behind them.
    ///
    /// # Safety
    /// As `load`; `row` is the (possibly imaginary) element at inner index 0.
    pub(super) unsafe fn guarded(&self, l: &Loads, ix: &[usize], row: *const u8, out: *mut u8, j: usize, len: usize) {
        let last = self.dims.len() - 1;
        let (mut lo, mut hi) = (j as i64, (j + len) as i64);
        for g in &l.guards {
            let fixed: i64 = g.offset + ix.iter().zip(&g.strides).map(|(i, s)| *i as i64 * s).sum::<i64>();
            let s = g.strides[last];
            // g.lo <= fixed + s i < g.hi
            let (a, b) = (g.lo - fixed, g.hi - 1 - fixed);
            let (first, end) = match s {
                0 if a <= 0 && b >= 0 => continue,
                0 => (0, 0),
                s if s > 0 => (-(-a).div_euclid(s), b.div_euclid(s) + 1),
                s => (-b.div_euclid(-s), (-a).div_euclid(-s) + 1),
            };
            lo = lo.max(first);
            hi = hi.min(end);
        }
        let (start, end) = (j as i64, (j + len) as i64);
        let lo = lo.clamp(start, end);
        let hi = hi.clamp(lo, end);
        let (before, inside, after) = ((lo - start) as usize, (hi - lo) as usize, (end - hi) as usize);
        // SAFETY: before + inside + after = len lanes; the guards let exactly `inside` elements through, which exist.
        unsafe {
            moves::fill(out, l.lane_bytes, l.fill, before);
            let stride = l.strides[last] as isize;
            if inside > 0 {
                (l.f)(
                    out.add(before * l.lane_bytes),
                    row.wrapping_offset(lo as isize * stride * l.size as isize),
                    1,
                    0,
                    inside,
                    stride,
                );
            }
            moves::fill(out.add((before + inside) * l.lane_bytes), l.lane_bytes, l.fill, after);
        }
    }
    /// # Safety
    /// `out` holds n lanes.
    pub(super) unsafe fn index(&self, x: &Indices, mut out: *mut u8, mut pos: usize, mut n: usize) {
        let last = self.dims.len() - 1;
        let width = self.dims[last];
        while n > 0 {
            let j = pos % width;
            let len = (width - j).min(n);
            let mut rest = pos / width;
            let mut at = x.offset.wrapping_add((j as i64).wrapping_mul(x.strides[last]));
            for k in (0..last).rev() {
                at = at.wrapping_add(((rest % self.dims[k]) as i64).wrapping_mul(x.strides[k]));
                rest /= self.dims[k];
            }
            // SAFETY: lanes out .. out + len of n.
            unsafe {
                (x.f)(out, at, x.strides[last], len);
                out = out.add(len * x.lane_bytes);
            }
            pos += len;
            n -= len;
        }
    }
}
