//! Slices and updates at computed positions.
//!
//! INVARIANT: a block that would extend beyond the tensor is moved inside.
use super::{IntoTensor, Tensor, axis_of, emit, where_};
use crate::mistakes;
use ferrax_ir::ops::dynamic_slice::{DynamicSlice, DynamicUpdateSlice};
use ferrax_ir::{Dims, Dtype, Error, Value};

impl Tensor {
    /// A block of `sizes` from a start that may be computed; negative ones count from the end, and it is moved inside where it is not.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let x = Tensor::from([1, 2, 3, 4]);
    /// assert_eq!(x.dynamic_slice(&[-3], &[2]).to_vec::<i32>()?, [2, 3]);
    /// assert_eq!(x.dynamic_slice(&[9], &[2]).to_vec::<i32>()?, [3, 4]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    ///
    /// # Panics
    /// Unless there is a start for each axis.
    #[track_caller]
    pub fn dynamic_slice<I: IntoTensor + Clone>(&self, start: &[I], sizes: &[usize]) -> Tensor {
        let start = self.from_front(start);
        let all: Vec<&Tensor> = std::iter::once(self).chain(&start).collect();
        emit(DynamicSlice { slice_sizes: Dims::new(sizes) }, &all)
    }
    /// A copy with `block` at a start that may be computed; negative ones count from the end, and it is moved inside where it is not.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let x = Tensor::zeros(&[4]).dynamic_update(&Tensor::ones(&[2]), &[1]);
    /// assert_eq!(x.to_vec::<f32>()?, [0.0, 1.0, 1.0, 0.0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    ///
    /// # Panics
    /// Unless there is a start for each axis.
    #[track_caller]
    pub fn dynamic_update<I: IntoTensor + Clone>(&self, block: &Tensor, start: &[I]) -> Tensor {
        let start = self.from_front(start);
        let all: Vec<&Tensor> = [self, block].into_iter().chain(&start).collect();
        emit(DynamicUpdateSlice {}, &all)
    }
    #[track_caller]
    fn from_front<I: IntoTensor + Clone>(&self, start: &[I]) -> Vec<Tensor> {
        let one = |(i, n): (&I, &usize)| {
            let at = i.clone().into_tensor().astype(Dtype::I32);
            match &at.0 {
                Value::Lit(l) if l.scalar().is_some_and(|s| s.to_i64() >= 0) => at,
                _ => where_(&at.lt(0), &at + *n, &at).astype(Dtype::I32),
            }
        };
        if start.len() != self.rank() {
            mistakes::raise(Error::value(format!(
                "Length of slice indices must match number of operand dimensions ({} vs {})",
                start.len(),
                Dims::new(self.shape())
            )));
        }
        start.iter().zip(self.shape()).map(one).collect()
    }
    #[track_caller]
    fn starts(&self, at: impl IntoTensor, axis: usize) -> Vec<Tensor> {
        let at = at.into_tensor().astype(Dtype::I32);
        (0..self.rank()).map(|k| if k == axis { at.clone() } else { super::constant(Dtype::I32, 0.0) }).collect()
    }
    /// `size` elements along an axis from a start that may be computed; negative ones count from the end.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let x = Tensor::from([1, 2, 3, 4]);
    /// assert_eq!(x.dynamic_slice_in_dim(1, 2, 0).to_vec::<i32>()?, [2, 3]);
    /// assert_eq!(x.dynamic_index_in_dim(-1, 0).item(), 4.0);
    /// assert_eq!(x.dynamic_update_slice_in_dim(&Tensor::from([8, 9]), 2, 0).to_vec::<i32>()?, [1, 2, 8, 9]);
    /// assert_eq!(x.dynamic_update_index_in_dim(&Tensor::from(7), 0, 0).to_vec::<i32>()?, [7, 2, 3, 4]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn dynamic_slice_in_dim(&self, start: impl IntoTensor, size: usize, axis: i64) -> Tensor {
        let k = axis_of(axis, self.rank());
        let mut sizes = self.shape().to_vec();
        sizes[k] = size;
        self.dynamic_slice(&self.starts(start, k), &sizes)
    }
    /// The slice along an axis at a position that may be computed; the axis goes.
    #[track_caller]
    pub fn dynamic_index_in_dim(&self, at: impl IntoTensor, axis: i64) -> Tensor {
        let k = axis_of(axis, self.rank());
        self.dynamic_slice_in_dim(at, 1, axis).squeeze(k)
    }
    /// A copy with `block` along an axis from a start that may be computed.
    #[track_caller]
    pub fn dynamic_update_slice_in_dim(&self, block: &Tensor, start: impl IntoTensor, axis: i64) -> Tensor {
        self.dynamic_update(block, &self.starts(start, axis_of(axis, self.rank())))
    }
    /// A copy with `slice` along an axis at a position that may be computed; the slice may lack the axis.
    #[track_caller]
    pub fn dynamic_update_index_in_dim(&self, slice: &Tensor, at: impl IntoTensor, axis: i64) -> Tensor {
        let k = axis_of(axis, self.rank()) as i64;
        let slice = if slice.rank() < self.rank() { slice.expand_dims(k) } else { slice.clone() };
        self.dynamic_update_slice_in_dim(&slice, at, k)
    }
}
