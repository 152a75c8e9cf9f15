//! Strided loops over two buffers at once, and the functions that run along their innermost axis.
//!
//! INVARIANT: a loop touches `dst + sum i_k a_k` and `src + sum i_k b_k` for all indices of its dimensions, one element each.
use crate::kernels::address::ShiftFn;
use crate::kernels::lane::Lane;
use crate::kernels::moves;
use crate::tier::Tier;
use ferrax_kernel::DType;
use smallvec::SmallVec;

/// Handles `n` elements; strides in bytes.
pub type RunFn = unsafe fn(dst: *mut u8, src: *const u8, n: usize, dst_stride: isize, src_stride: isize);
/// Handles rows of elements: how many, and strides in bytes, of the rows and within one.
type CopyRowsFn = unsafe fn(dst: *mut u8, src: *const u8, rows: (usize, isize, isize), row: (usize, isize, isize));
/// How elements are copied.
#[derive(Clone, Copy)]
pub struct Copying {
    pub run: RunFn,
    rows: CopyRowsFn,
}

#[derive(Clone)]
pub struct StridedLoop {
    /// Size, destination and source stride in bytes; the last is the innermost.
    dims: SmallVec<[(usize, isize, isize); 4]>,
    pub elements: usize,
}

impl StridedLoop {
    /// Sizes and strides in elements of `bytes` each, outermost first.
    pub fn new(bytes: usize, dims: impl IntoIterator<Item = (usize, isize, isize)>) -> StridedLoop {
        let b = bytes as isize;
        let mut out: SmallVec<[(usize, isize, isize); 4]> = SmallVec::new();
        let mut elements = 1;
        for (n, x, y) in dims {
            elements *= n;
            if n == 1 {
                continue;
            }
            match out.last_mut() {
                Some(last) if last.1 == x * b * n as isize && last.2 == y * b * n as isize => {
                    *last = (last.0 * n, x * b, y * b)
                }
                _ => out.push((n, x * b, y * b)),
            }
        }
        if out.is_empty() {
            out.push((1, b, b));
        }
        StridedLoop { dims: out, elements }
    }
    pub fn is_single(&self) -> bool {
        self.elements == 1
    }
    /// The size of its outermost axis.
    pub fn rows(&self) -> usize {
        self.dims[0].0
    }
    /// The offsets of all elements of some rows, in order.
    pub fn offsets(&self, rows: std::ops::Range<usize>, f: &mut impl FnMut(isize, isize)) {
        fn inner(dims: &[(usize, isize, isize)], (a, b): (isize, isize), f: &mut impl FnMut(isize, isize)) {
            match dims {
                [] => f(a, b),
                [d, rest @ ..] => (0..d.0 as isize).for_each(|k| inner(rest, (a + k * d.1, b + k * d.2), f)),
            }
        }
        let (_, a, b) = self.dims[0];
        rows.for_each(|k| inner(&self.dims[1..], (k as isize * a, k as isize * b), f));
    }
    /// The bytes of a strided iteration over elements that are contiguous on both sides.
    pub fn run_of_bytes(&self, bytes: usize) -> Option<usize> {
        match self.dims[..] {
            [(n, a, b)] if a == bytes as isize && b == a => Some(n * bytes),
            _ => None,
        }
    }
    /// Copies all elements.
    ///
    /// # Safety
    /// All elements of the iteration exist in both buffers.
    #[inline]
    pub unsafe fn run(&self, dst: *mut u8, src: *const u8, f: Copying) {
        if self.elements == 0 {
            return;
        }
        // SAFETY: as promised.
        unsafe { level(&self.dims, dst, src, f) }
    }
}
unsafe fn level(dims: &[(usize, isize, isize)], mut dst: *mut u8, mut src: *const u8, f: Copying) {
    let (n, a, b) = dims[0];
    // SAFETY: as `StridedLoop::run`.
    unsafe {
        match dims {
            [_] => (f.run)(dst, src, n, a, b),
            [rows, row] => (f.rows)(dst, src, *rows, *row),
            _ => {
                for _ in 0..n {
                    level(&dims[1..], dst, src, f);
                    dst = dst.wrapping_offset(a);
                    src = src.wrapping_offset(b);
                }
            }
        }
    }
}

unsafe fn copy_run<T: Copy>(dst: *mut u8, src: *const u8, n: usize, a: isize, b: isize) {
    let size = size_of::<T>() as isize;
    // SAFETY: n elements of each, by the contract of `StridedLoop::run`.
    unsafe {
        if a == size && b == size {
            return std::ptr::copy(src, dst, n * size_of::<T>());
        }
        for i in 0..n as isize {
            *dst.wrapping_offset(i * a).cast::<T>() = *src.wrapping_offset(i * b).cast::<T>();
        }
    }
}
unsafe fn copy_rows<T: Copy>(
    dst: *mut u8,
    src: *const u8,
    rows: (usize, isize, isize),
    (n, a, b): (usize, isize, isize),
) {
    let size = size_of::<T>() as isize;
    // SAFETY: n elements of each row, by the contract of `StridedLoop::run`; each K is at least half of n, and no more than it.
    unsafe {
        match n {
            2..4 if a == size && b == size => copy_short_rows::<T, 2>(dst, src, rows, n),
            4..8 if a == size && b == size => copy_short_rows::<T, 4>(dst, src, rows, n),
            8..16 if a == size && b == size => copy_short_rows::<T, 8>(dst, src, rows, n),
            _ => each_row(dst, src, rows, |dst, src| copy_run::<T>(dst, src, n, a, b)),
        }
    }
}
/// Rows of `n` elements side by side, K <= n <= 2 K: the first K and the last K, without a call for each row.
///
/// # Safety
/// All elements of all rows exist in both buffers.
unsafe fn copy_short_rows<T: Copy, const K: usize>(
    dst: *mut u8,
    src: *const u8,
    rows: (usize, isize, isize),
    n: usize,
) {
    each_row(dst, src, rows, |dst, src| {
        let (dst, src) = (dst.cast::<T>(), src.cast::<T>());
        // SAFETY: by the contract; both parts are read before either is written.
        unsafe {
            let (begin, end) =
                (src.cast::<[T; K]>().read_unaligned(), src.add(n - K).cast::<[T; K]>().read_unaligned());
            dst.cast::<[T; K]>().write_unaligned(begin);
            dst.add(n - K).cast::<[T; K]>().write_unaligned(end);
        }
    });
}
#[inline(always)]
fn each_row(
    mut dst: *mut u8,
    mut src: *const u8,
    (n, a, b): (usize, isize, isize),
    mut f: impl FnMut(*mut u8, *const u8),
) {
    for _ in 0..n {
        f(dst, src);
        dst = dst.wrapping_offset(a);
        src = src.wrapping_offset(b);
    }
}
/// Copies elements of this size.
pub fn copy(bytes: usize) -> Copying {
    match bytes {
        1 => Copying { run: copy_run::<u8>, rows: copy_rows::<u8> },
        2 => Copying { run: copy_run::<u16>, rows: copy_rows::<u16> },
        4 => Copying { run: copy_run::<u32>, rows: copy_rows::<u32> },
        _ => Copying { run: copy_run::<u64>, rows: copy_rows::<u64> },
    }
}

/// An index as i64; a value out of its range counts as far out of bounds.
///
/// # Safety
/// `p` points at an integer of dtype `d`.
#[inline]
pub unsafe fn index_at(d: DType, p: *const u8) -> i64 {
    // SAFETY: by the contract.
    unsafe {
        match d {
            DType::I8 => p.cast::<i8>().read() as i64,
            DType::I16 => p.cast::<i16>().read() as i64,
            DType::I32 => p.cast::<i32>().read() as i64,
            DType::I64 => p.cast::<i64>().read(),
            DType::U8 | DType::Bool => p.read() as i64,
            DType::U16 => p.cast::<u16>().read() as i64,
            DType::U32 => p.cast::<u32>().read() as i64,
            _ => i64::try_from(p.cast::<u64>().read()).unwrap_or(i64::MAX),
        }
    }
}

/// Row-major strides in elements.
pub fn strides(dims: &[usize]) -> SmallVec<[isize; 6]> {
    let mut s: SmallVec<[isize; 6]> = SmallVec::from_elem(1, dims.len());
    for k in (0..dims.len().saturating_sub(1)).rev() {
        s[k] = s[k + 1] * dims[k + 1] as isize;
    }
    s
}

/// Dimensions (size and two strides), merged where one loop covers both; at most one where the iteration is even.
pub fn merged(dims: impl IntoIterator<Item = (usize, isize, isize)>) -> SmallVec<[(usize, isize, isize); 4]> {
    let mut out: SmallVec<[(usize, isize, isize); 4]> = SmallVec::new();
    for (n, a, b) in dims.into_iter().filter(|d| d.0 != 1) {
        match out.last_mut() {
            Some(last) if last.1 == a * n as isize && last.2 == b * n as isize => *last = (last.0 * n, a, b),
            _ => out.push((n, a, b)),
        }
    }
    out
}

/// An index over dimensions, with two running offsets in bytes.
pub struct Odometer<'a> {
    dims: &'a [(usize, isize, isize)],
    at: SmallVec<[usize; 6]>,
    pub a: isize,
    pub b: isize,
}
impl<'a> Odometer<'a> {
    pub fn at(dims: &'a [(usize, isize, isize)], mut position: usize) -> Odometer<'a> {
        let mut o = Odometer { dims, at: SmallVec::from_elem(0, dims.len()), a: 0, b: 0 };
        for k in (0..dims.len()).rev() {
            o.at[k] = position % dims[k].0;
            position /= dims[k].0;
            o.a += o.at[k] as isize * dims[k].1;
            o.b += o.at[k] as isize * dims[k].2;
        }
        o
    }
    #[inline]
    pub fn step(&mut self) {
        for k in (0..self.dims.len()).rev() {
            let (n, a, b) = self.dims[k];
            self.at[k] += 1;
            self.a += a;
            self.b += b;
            if self.at[k] < n {
                return;
            }
            self.at[k] = 0;
            self.a -= n as isize * a;
            self.b -= n as isize * b;
        }
    }
    /// Goes on by as many positions as there are addresses; each that is one moves by its position's first offset, or its second.
    pub fn shift<const SECOND: bool>(&mut self, shift: ShiftFn, mut at: &mut [i64]) {
        let Some(k) = self.dims.len().checked_sub(1) else { return };
        let (size, a, b) = self.dims[k];
        while !at.is_empty() {
            let n = at.len().min(size - self.at[k]);
            let (run, rest) = std::mem::take(&mut at).split_at_mut(n);
            let (start, step) = if SECOND { (self.b, b) } else { (self.a, a) };
            // SAFETY: addresses of a slice.
            unsafe { shift(run.as_mut_ptr(), n, start as i64, step as i64) };
            self.at[k] += n - 1;
            self.a += (n - 1) as isize * a;
            self.b += (n - 1) as isize * b;
            self.step();
            at = rest;
        }
    }
}

/// How elements of a dtype are combined by a scalar function, one run at a time, through lanes.
pub struct Combining {
    load: moves::LoadFn,
    f: crate::kernels::block::BlockFn,
    canonical: Option<crate::kernels::block::BlockFn>,
    store: crate::kernels::block::BlockFn,
    bytes: usize,
    lane: usize,
    /// Elements in memory are lanes.
    as_stored: bool,
}
impl Combining {
    pub fn new(f: ferrax_kernel::Bin, d: DType, tier: Tier) -> Option<Combining> {
        use crate::kernels::scalar;
        Some(Combining {
            load: moves::load(d, tier),
            f: scalar::bin(f, d, tier)?,
            canonical: scalar::canonical(d, tier),
            store: moves::store(d, tier),
            bytes: d.size(),
            lane: Lane::of(d).size(),
            as_stored: Lane::of(d).is_storage_of(d) && scalar::canonical(d, tier).is_none(),
        })
    }
    /// `dst[i] = f(dst[i], src[i])`.
    ///
    /// # Safety
    /// As a `RunFn`.
    pub unsafe fn run(&self, mut dst: *mut u8, mut src: *const u8, mut n: usize, a: isize, b: isize) {
        const CHUNK: usize = 64;
        let size = self.bytes as isize;
        if self.as_stored && a == size && b == size {
            // PERF: through a copy: a loop that overwrites its operand is not vectorized.
            let mut out = [std::mem::MaybeUninit::<u64>::uninit(); CHUNK];
            let out = out.as_mut_ptr().cast::<u8>();
            while n > 0 {
                let k = n.min(CHUNK * size_of::<u64>() / self.bytes);
                // SAFETY: n elements of each, which are lanes, and room for k.
                unsafe {
                    (self.f)(out, dst, src, src, k);
                    dst.copy_from_nonoverlapping(out, k * self.bytes);
                }
                dst = dst.wrapping_add(k * self.bytes);
                src = src.wrapping_add(k * self.bytes);
                n -= k;
            }
            return;
        }
        let mut old = [0u64; CHUNK];
        let mut new = [0u64; CHUNK];
        let mut out = [0u64; CHUNK];
        let (old, new, out) =
            (old.as_mut_ptr().cast::<u8>(), new.as_mut_ptr().cast::<u8>(), out.as_mut_ptr().cast::<u8>());
        debug_assert!(self.lane <= 8);
        // SAFETY: chunks of at most CHUNK lanes of at most 8 bytes; strides are whole elements.
        unsafe {
            while n > 0 {
                let k = n.min(CHUNK);
                (self.load)(old, dst, 1, 0, k, a / size);
                (self.load)(new, src, 1, 0, k, b / size);
                (self.f)(out, old, new, new, k);
                let result = match self.canonical {
                    Some(f) => {
                        f(old, out, out, out, k);
                        old
                    }
                    None => out,
                };
                if a == size {
                    (self.store)(dst, result, result, result, k);
                } else {
                    // Stored side by side, then spread.
                    (self.store)(new, result, result, result, k);
                    (copy(self.bytes).run)(dst, new, k, a, size);
                }
                dst = dst.wrapping_offset(k as isize * a);
                src = src.wrapping_offset(k as isize * b);
                n -= k;
            }
        }
    }
}
impl StridedLoop {
    /// # Safety
    /// As `run`.
    pub unsafe fn combine(&self, dst: *mut u8, src: *const u8, c: &Combining) {
        if self.elements > 0 {
            // SAFETY: as promised.
            unsafe { combine_level(&self.dims, dst, src, c) }
        }
    }
}
unsafe fn combine_level(dims: &[(usize, isize, isize)], mut dst: *mut u8, mut src: *const u8, c: &Combining) {
    let (n, a, b) = dims[0];
    // SAFETY: as `StridedLoop::run`.
    unsafe {
        if dims.len() == 1 {
            return c.run(dst, src, n, a, b);
        }
        for _ in 0..n {
            combine_level(&dims[1..], dst, src, c);
            dst = dst.wrapping_offset(a);
            src = src.wrapping_offset(b);
        }
    }
}
