//! Elements without copies: as slices, and as `ndarray`'s views.
//!
//! ```
//! use ferrax::{Tensor, views};
//! let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
//! let seen = views::view::<f32>(&x)?; // waits for it, and keeps it while it is looked at
//! assert_eq!(seen.array().sum_axis(ndarray::Axis(0)).as_slice(), Some(&[4.0, 6.0][..]));
//! assert_eq!(seen.slice(), [1.0, 2.0, 3.0, 4.0]);
//! let y = views::tensor(&(&seen.array() * 2.0))?;
//! assert_eq!(y.to_vec::<f32>()?, [2.0, 4.0, 6.0, 8.0]);
//! # Ok::<(), ferrax::Error>(())
//! ```
//!
//! INVARIANT: a view holds its buffer, so a donation of the tensor meanwhile makes a copy, and the
//! view's elements stay unchanged.
use crate::array;
use crate::tensor::{Element, Tensor};
use bytemuck::Pod;
use ferrax_ir::{Error, ErrorKind, Res, Value};
use ferrax_kernel::Buffer;
use ndarray::{ArrayBase, ArrayViewD, Data, Dimension, IxDyn};
use std::marker::PhantomData;

/// The elements of a tensor on the host, where they lie.
///
/// ```
/// use ferrax::{Tensor, views::{self, HostView}};
/// let seen: HostView<i32> = views::view(&Tensor::from([[1, 2], [3, 4]]))?; // it keeps what it looks at
/// assert_eq!((seen.slice().len(), seen.array().shape()), (4, &[2, 2][..]));
/// # Ok::<(), ferrax::Error>(())
/// ```
pub struct HostView<T> {
    buffer: Buffer,
    shape: Vec<usize>,
    elements: PhantomData<T>,
}
/// The elements of a tensor that a CPU device holds.
///
/// # Errors
/// `Type` if T is not the dtype; `TracerArray` under a transform; `Runtime` for a tensor on a GPU or on several devices; what went wrong, if
/// its computation failed.
pub fn view<T: Element + Pod>(x: &Tensor) -> Res<HostView<T>> {
    if x.dtype() != T::DTYPE {
        let (have, want) = (x.aval().long(), T::DTYPE.long());
        return Err(Error::type_error(format!("elements of {have} cannot be read as {want}")));
    }
    let a = match &x.0 {
        Value::Array(a) => a.clone(),
        Value::Lit(l) => array::from_lit(l, crate::eval::current_device())?,
        Value::Tracer(_) => return Err(x.0.abstract_error(ErrorKind::TracerArray)),
    };
    let buffer = array::single(&a)?.buffer;
    array::wait(&buffer)?;
    let view = HostView { buffer, shape: x.shape().to_vec(), elements: PhantomData };
    view.read()?;
    Ok(view)
}
impl<T: Element + Pod> HostView<T> {
    fn read(&self) -> Res<&[T]> {
        let elsewhere =
            || Error::new(ErrorKind::Runtime, "the elements are on a device that the host cannot read in place");
        let bytes = self.buffer.memory()?.host().ok_or_else(elsewhere)?;
        bytemuck::try_cast_slice(bytes).map_err(|_| elsewhere())
    }
    /// The elements, row major.
    pub fn slice(&self) -> &[T] {
        self.read().unwrap_or(&[]) // it was read when it was made, and a ready buffer does not change
    }
    /// The same with the tensor's shape.
    pub fn array(&self) -> ArrayViewD<'_, T> {
        ArrayViewD::from_shape(IxDyn(&self.shape), self.slice()).unwrap_or_else(|e| unreachable!("{e}"))
    }
}
/// A tensor of an array's elements, whatever its layout: one copy.
///
/// # Errors
/// `Memory` if there is not enough.
pub fn tensor<T: Element, S: Data<Elem = T>, D: Dimension>(x: &ArrayBase<S, D>) -> Res<Tensor> {
    match x.as_slice() {
        Some(elements) => Tensor::new(elements, x.shape()),
        None => Tensor::new(&x.iter().copied().collect::<Vec<_>>(), x.shape()),
    }
}
