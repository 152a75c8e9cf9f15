//! Registers of a tile program: assigns values to registers, and computes the number of positions of a tile.
//!
//! INVARIANT: a register holds one value at a time.
use super::build::TileBuilder;
use super::code::Lazy;
use super::{Buf, DIRECT, Ins, Op, Setup, TileProgram};
use ferrax_kernel::Res;
use smallvec::SmallVec;

impl TileBuilder<'_> {
    /// Positions of a tile, so that so many registers fit the nearest cache.
    fn tile(&self, n_regs: usize) -> usize {
        let t = &self.spec.target.tuning.kernels;
        let fit = t.max_tile_bytes / (self.wide * (n_regs + self.directs.len()).max(1)) / 64 * 64;
        fit.clamp(t.min_tile, t.max_tile).min(self.spec.max_tile).min(self.total.max(1).next_multiple_of(16))
    }
    /// Loads that would run before the calls. Those of elements of 8 and 16 bits, which are never read in place, count half: between the calls
    /// they would cut what becomes one segment.
    fn early_loads(&self) -> usize {
        let loads = |i: &&Ins| matches!(i, Ins::Load { .. } | Ins::Index { .. });
        let is_converted = |i: &&Ins| matches!(**i, Ins::Load { load, .. } if !self.loads[load as usize].is_storage);
        self.body.iter().filter(loads).count() - self.body.iter().filter(is_converted).count() / 2
    }
    /// Gives virtual registers real ones, and directs their place behind them.
    pub(super) fn finish(mut self, keep: Vec<Op>, given: Vec<Op>) -> Res<(TileProgram, Vec<Op>, Vec<Op>)> {
        // Loads depend on no computed value: they run before the calls.
        let loads = |i: &Ins| matches!(i, Ins::Load { .. } | Ins::Index { .. });
        let in_code = |l: &super::Loads| l.in_code || self.by_rows && l.is_of_row();
        let is_in_code = |i: &Ins| matches!(*i, Ins::Load { load, .. } if in_code(&self.loads[load as usize]));
        let of_rows = self.body.iter().filter(|i| loads(i)).all(is_in_code);
        if of_rows || self.early_loads() <= self.spec.target.tuning.kernels.max_early_loads {
            self.body.sort_by_key(|i| !loads(i));
        }
        let alone = |l: &super::Loads| l.in_place || in_code(l);
        let n_virtual = self.uniform.len();
        let mut last = vec![usize::MAX; n_virtual]; // position of the last reader; MAX where the register is not reused
        for (at, i) in self.body.iter_mut().enumerate() {
            for o in i.operands() {
                if *o & DIRECT == 0 && !self.uniform[*o as usize] {
                    last[*o as usize] = at
                }
            }
        }
        keep.iter().chain(&given).filter(|o| *o & DIRECT == 0).for_each(|o| last[*o as usize] = usize::MAX);
        let mut real = vec![u16::MAX; n_virtual];
        let mut n_regs: u16 = 0;
        for (v, r) in real.iter_mut().enumerate() {
            if self.uniform[v] || given.contains(&(v as u16)) {
                *r = n_regs;
                n_regs += 1;
            }
        }
        // Bytes and wider lanes share no register: a loop that reads bytes and writes wider lanes
        // to the same register would overwrite bytes that it has yet to read.
        let mut free: [Vec<u16>; 2] = [vec![], vec![]];
        for (at, i) in self.body.iter_mut().enumerate() {
            for d in i.results() {
                if d & DIRECT == 0 && real[d as usize] == u16::MAX {
                    // A register that holds rows in place is not shared: its pointer wanders. Nor is one that code may do without.
                    let wanders = matches!(i, Ins::Load { load, .. } if alone(&self.loads[*load as usize]));
                    let free = &mut free[self.of_bytes[d as usize] as usize];
                    real[d as usize] = if wanders { None } else { free.pop() }.unwrap_or_else(|| {
                        n_regs += 1;
                        n_regs - 1
                    });
                    if wanders {
                        last[d as usize] = usize::MAX;
                    }
                }
            }
            let mut ops: SmallVec<[Op; 4]> = i.operands().into_iter().map(|o| *o).collect();
            ops.sort_unstable();
            ops.dedup();
            for o in ops {
                if o & DIRECT == 0 && !self.uniform[o as usize] && last[o as usize] == at {
                    free[self.of_bytes[o as usize] as usize].push(real[o as usize]);
                }
            }
        }
        let map = |o: Op| if o & DIRECT != 0 { n_regs + (o & !DIRECT) } else { real[o as usize] };
        self.body.iter_mut().flat_map(Ins::operands).for_each(|o| *o = map(*o));
        for s in &mut self.setup {
            match s {
                Setup::Fill { d, .. } | Setup::Splat { d, .. } | Setup::Row { d, .. } => *d = map(*d),
                Setup::Call { d, a, b, c, .. } => [d, a, b, c].into_iter().for_each(|o| *o = map(*o)),
            }
        }
        for d in &mut self.directs {
            if let Buf::Row(r) = &mut d.buf {
                *r = real[*r as usize];
            }
        }
        let tile = self.tile(n_regs as usize);
        let row = match (self.by_rows, self.loads.is_empty() && self.stores.is_empty()) {
            (false, true) => self.total,
            _ => *self.dims.last().unwrap_or(&1),
        };
        let tile = if self.by_rows { tile.min(row.next_multiple_of(16)) } else { tile };
        let reg_bytes = (tile * self.wide).next_multiple_of(64) + 64;
        let keep: Vec<Op> = keep.into_iter().map(map).collect();
        let program = TileProgram {
            keep: keep.iter().copied().collect(),
            code: Lazy::new(self.spec.target, self.spec.aliased, self.cost - self.long),
            dims: self.dims,
            total: self.total,
            tile,
            row: row.max(1),
            n_regs: n_regs as usize,
            reg_bytes,
            masked: self.masked,
            by_rows: self.by_rows,
            directs: self.directs,
            setup: self.setup,
            body: self.body,
            loads: self.loads,
            stores: self.stores,
            indices: self.indices,
            cost: self.cost,
        };
        Ok((program, keep, given.into_iter().map(map).collect()))
    }
}
