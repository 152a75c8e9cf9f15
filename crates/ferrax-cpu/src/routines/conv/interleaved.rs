//! Interleaving the elements of several groups, and writing them back.
use crate::kernels::block::tiers;
use crate::tier::Tier;

/// Elements of each of the `P` groups side by side: `to[i * P + p] = from[p * group + i * step]`, zero for groups beyond `live`.
pub struct Interleave {
    pub to: *mut u8,
    pub from: *const u8,
    pub n: usize,
    pub group: isize,
    pub step: isize,
    pub live: usize,
    /// Positions, and bytes from one to the next in both.
    pub positions: usize,
    pub apart: [isize; 2],
}
pub type InterleaveFn = unsafe fn(x: &Interleave);
pub trait Interleaving {
    /// # Safety
    /// Each element that is named lies in `from`; `to` has room for them all.
    unsafe fn run(x: &Interleave);
}
tiers!(pick_interleaving, Interleaving, fn(x: &Interleave));
/// `B` elements of a group are read at a time where they lie side by side.
struct InterleavedGroups<T, const P: usize, const B: usize>(std::marker::PhantomData<T>);
impl<T: Copy + Default, const P: usize, const B: usize> Interleaving for InterleavedGroups<T, P, B> {
    #[inline(always)]
    unsafe fn run(x: &Interleave) {
        let whole = if x.live < P || x.step != 1 && x.n > 1 { 0 } else { x.n / B * B };
        for q in 0..x.positions as isize {
            let to = x.to.wrapping_offset(q * x.apart[0]).cast::<[T; P]>();
            let from = x.from.wrapping_offset(q * x.apart[1]).cast::<T>();
            for i in (0..whole).step_by(B) {
                let mut lines = [[T::default(); B]; P];
                let mut lanes = [[T::default(); P]; B];
                // SAFETY: by the contract.
                unsafe {
                    for (p, line) in lines.iter_mut().enumerate() {
                        *line =
                            from.wrapping_offset(i as isize + p as isize * x.group).cast::<[T; B]>().read_unaligned();
                    }
                    for b in 0..B {
                        for p in 0..P {
                            lanes[b][p] = lines[p][b];
                        }
                    }
                    to.add(i).cast::<[[T; P]; B]>().write_unaligned(lanes);
                }
            }
            for i in whole..x.n {
                let from = from.wrapping_offset(i as isize * x.step);
                let mut lanes = [T::default(); P];
                // SAFETY: by the contract.
                unsafe {
                    if x.live == P && x.group == 1 {
                        lanes = from.cast::<[T; P]>().read_unaligned();
                    } else {
                        for (p, l) in lanes.iter_mut().enumerate().take(x.live) {
                            *l = *from.wrapping_offset(p as isize * x.group);
                        }
                    }
                    to.add(i).write_unaligned(lanes);
                }
            }
        }
    }
}
pub fn pick_interleave(size: usize, groups: usize, tier: Tier) -> InterleaveFn {
    match (size, groups) {
        (4, 2) => pick_interleaving::<InterleavedGroups<u32, 2, 8>>(tier),
        (4, 4) => pick_interleaving::<InterleavedGroups<u32, 4, 4>>(tier),
        (4, 8) => pick_interleaving::<InterleavedGroups<u32, 8, 2>>(tier),
        (4, _) => pick_interleaving::<InterleavedGroups<u32, 16, 2>>(tier),
        (_, 2) => pick_interleaving::<InterleavedGroups<u64, 2, 4>>(tier),
        (_, 4) => pick_interleaving::<InterleavedGroups<u64, 4, 2>>(tier),
        _ => pick_interleaving::<InterleavedGroups<u64, 8, 2>>(tier),
    }
}

/// Sums of rows, in vectors, where they belong.
pub struct Placing {
    pub to: *mut u8,
    pub sums: *const u8,
    pub rows: usize,
    pub live: usize,
    pub columns: usize,
    /// Elements from row to row, group to group and column to column.
    pub strides: [usize; 3],
}
pub type PlacingFn = unsafe fn(x: &Placing);
pub trait Placement {
    /// # Safety
    /// The result has such elements, the sums such rows.
    unsafe fn run(x: &Placing);
}
tiers!(pick_placing, Placement, fn(x: &Placing));
struct PlacedGroups<T, const P: usize, const L: usize>(std::marker::PhantomData<T>);
impl<T: Copy + Default, const P: usize, const L: usize> Placement for PlacedGroups<T, P, L> {
    #[inline(always)]
    unsafe fn run(x: &Placing) {
        let [row, group, column] = x.strides;
        let whole = x.live == P && x.columns * P == L && column == 1 && group == x.columns;
        for r in 0..x.rows {
            // SAFETY: by the contract.
            unsafe {
                let to = x.to.cast::<T>().add(r * row);
                let sums = x.sums.cast::<[T; L]>().add(r).read();
                if whole {
                    let mut transposed = [T::default(); L];
                    for p in 0..P {
                        for o in 0..L / P {
                            transposed[p * (L / P) + o] = sums[o * P + p];
                        }
                    }
                    to.cast::<[T; L]>().write_unaligned(transposed);
                } else {
                    for p in 0..x.live {
                        for o in 0..x.columns {
                            *to.add(p * group + o * column) = sums[o * P + p];
                        }
                    }
                }
            }
        }
    }
}
pub fn pick_place(size: usize, groups: usize, lanes: usize, tier: Tier) -> PlacingFn {
    match (size, groups, lanes) {
        (4, 2, 16) => pick_placing::<PlacedGroups<u32, 2, 16>>(tier),
        (4, 4, 16) => pick_placing::<PlacedGroups<u32, 4, 16>>(tier),
        (4, 8, 16) => pick_placing::<PlacedGroups<u32, 8, 16>>(tier),
        (4, _, 16) => pick_placing::<PlacedGroups<u32, 16, 16>>(tier),
        (4, 2, _) => pick_placing::<PlacedGroups<u32, 2, 8>>(tier),
        (4, 4, _) => pick_placing::<PlacedGroups<u32, 4, 8>>(tier),
        (4, ..) => pick_placing::<PlacedGroups<u32, 8, 8>>(tier),
        (_, 2, 8) => pick_placing::<PlacedGroups<u64, 2, 8>>(tier),
        (_, 4, 8) => pick_placing::<PlacedGroups<u64, 4, 8>>(tier),
        (_, _, 8) => pick_placing::<PlacedGroups<u64, 8, 8>>(tier),
        (_, 2, _) => pick_placing::<PlacedGroups<u64, 2, 4>>(tier),
        _ => pick_placing::<PlacedGroups<u64, 4, 4>>(tier),
    }
}
