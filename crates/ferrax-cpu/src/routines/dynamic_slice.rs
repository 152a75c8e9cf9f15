//! `DynamicSlice` and `DynamicUpdateSlice`: windows whose starts are data. An update in place costs only the elements that it writes.
use super::strided::{StridedLoop, copy, index_at, strides};
use super::{CompiledRoutine, Run};
use crate::kernels::Bases;
use ferrax_kernel::{DType, Dims, Res};

/// A window of an array: where it may start, and how it is copied.
struct Window {
    /// For each axis: the last start at which the window is in bounds, and the array's stride in
    /// bytes.
    axes: Vec<(i64, isize)>,
    index: DType,
    /// Bytes of an element.
    bytes: usize,
    walk: StridedLoop,
}
impl Window {
    /// `slice`: whether the window is copied out of the array; else into it.
    fn new(operand: &Dims, window: &Dims, dtype: DType, index: DType, slice: bool) -> Res<Window> {
        if operand.len() != window.len() || operand.iter().zip(window.iter()).any(|(n, w)| w > n) {
            return Err(ferrax_kernel::Error::Invalid(format!(
                "a window of shape {window} of an array of shape {operand}"
            )));
        }
        let (bytes, whole, own) = (dtype.size(), strides(operand), strides(window));
        let (to, from) = if slice { (&own, &whole) } else { (&whole, &own) };
        let walk = StridedLoop::new(bytes, (0..operand.len()).map(|k| (window[k], to[k], from[k])));
        let axes = (0..operand.len()).map(|k| ((operand[k] - window[k]) as i64, whole[k] * bytes as isize));
        Ok(Window { axes: axes.collect(), index, bytes, walk })
    }
    /// Bytes from the array's start to the window's, moved inside. The starts are the inputs from the `first` on.
    fn offset(&self, bases: &Bases, first: u32) -> isize {
        let of = |(k, (last, stride)): (u32, &(i64, isize))| {
            // SAFETY: `Routine::operands` lists an integer of this dtype for each axis, and verify, sizes, found the slots so.
            let start = unsafe { index_at(self.index, bases.input(first + k)) };
            start.clamp(0, *last) as isize * stride
        };
        (0..).zip(&self.axes).map(of).sum()
    }
    fn text(&self, routine: &str) -> String {
        match self.walk.run_of_bytes(self.bytes) {
            Some(n) => format!("{routine} strategy=one_run bytes={n}"),
            None => format!("{routine} strategy=strided elements={}", self.walk.elements),
        }
    }
}

struct Slice(Window);
impl CompiledRoutine for Slice {
    fn run(&self, bases: Bases, _: bool) -> Res<()> {
        let Slice(w) = self;
        let at = w.offset(&bases, 1);
        // SAFETY: `Window::new`: no axis of the window is longer than the operand's, so that the clamped start leaves it inside; the result has
        // the window's size (verify, sizes).
        unsafe { w.walk.run(bases.output(0), bases.input(0).wrapping_offset(at), copy(w.bytes)) };
        Ok(())
    }
    fn text(&self) -> String {
        self.0.text("dynamic_slice")
    }
}
pub fn slice(operand: &Dims, sizes: &Dims, dtype: DType, index: DType) -> Res<Run> {
    Ok(Box::new(Slice(Window::new(operand, sizes, dtype, index, true)?)))
}

struct Update {
    window: Window,
    /// Bytes of the array.
    total: usize,
}
impl CompiledRoutine for Update {
    fn run(&self, bases: Bases, _: bool) -> Res<()> {
        let w = &self.window;
        let (old, out) = (bases.input(0), bases.output(0));
        let at = w.offset(&bases, 2);
        // SAFETY: verify, sizes: operand and result are of one size, `total`, the update is the window; `Window::new` and the clamp leave it
        // inside.
        unsafe {
            if old != out {
                out.copy_from(old, self.total);
            }
            w.walk.run(out.wrapping_offset(at), bases.input(1), copy(w.bytes));
        }
        Ok(())
    }
    fn text(&self) -> String {
        self.window.text("dynamic_update_slice")
    }
}
pub fn update(operand: &Dims, sizes: &Dims, dtype: DType, index: DType) -> Res<Run> {
    let total = operand.size() * dtype.size();
    Ok(Box::new(Update { window: Window::new(operand, sizes, dtype, index, false)?, total }))
}
