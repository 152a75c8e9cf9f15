//! DLPack 1: host memory lent to other libraries, and their memory read in place.
//!
//! INVARIANT: lent memory is read-only and lives until its deleter is called, once. Borrowed memory is checked before it becomes memory of a
//! buffer, and returned when the last buffer that uses it is dropped.
#![allow(unsafe_code)]
use ferrax_kernel::buffer::Memory;
use ferrax_kernel::{Buffer, Error, Res};
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};

const MAJOR: u32 = 1;
const HOST: i32 = 1;
const READ_ONLY: u64 = 1;

/// An element type by DLPack's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct ElementCode {
    /// Integers 0, unsigned ones 1, floats 2, bfloat16 4, complex numbers 5, booleans 6.
    pub code: u8,
    /// Bits of an element.
    pub bits: u8,
    /// The number of vector lanes of an element; 1 except for vector types.
    pub lanes: u16,
}
impl ElementCode {
    const COMPLEX: u8 = 5;
    /// The code of a type with one lane.
    pub const fn new(code: u8, bits: u8) -> ElementCode {
        ElementCode { code, bits, lanes: 1 }
    }
    fn bytes(self) -> usize {
        self.bits as usize / 8
    }
    /// The alignment in bytes that kernels require. A complex number is aligned as its parts are.
    fn alignment(self) -> usize {
        self.bytes() / if self.code == ElementCode::COMPLEX { 2 } else { 1 }
    }
}
/// `DLTensor`.
#[repr(C)]
struct Header {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    element: ElementCode,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}
/// `DLManagedTensorVersioned`. Version, context and deleter lie where they are in every version.
#[repr(C)]
pub struct VersionedTensor {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut VersionedTensor)>,
    flags: u64,
    tensor: Header,
}

/// An owned DLPack tensor: its deleter is called on drop.
pub struct Managed(NonNull<VersionedTensor>);
// SAFETY: the elements are only read, and the code that made it from a pointer promised that the deleter may be called on any thread.
unsafe impl Send for Managed {}
// SAFETY: as above.
unsafe impl Sync for Managed {}
impl Drop for Managed {
    fn drop(&mut self) {
        // SAFETY: the tensor is this one's own, and goes with it: its deleter was not called, and is not again.
        unsafe {
            if let Some(delete) = (*self.0.as_ptr()).deleter {
                delete(self.0.as_ptr());
            }
        }
    }
}

/// The memory that an exported tensor refers to until its deleter is called.
struct Lent {
    head: VersionedTensor,
    shape: Vec<i64>,
    strides: Vec<i64>,
    /// Keeps the elements.
    _buffer: Buffer,
}
unsafe extern "C" fn give_back(p: *mut VersionedTensor) {
    // SAFETY: `context` is the box that `lend` leaked, and a consumer calls the deleter once.
    drop(unsafe { Box::from_raw((*p).context.cast::<Lent>()) })
}

impl Managed {
    /// A tensor from another library.
    ///
    /// # Safety
    /// `p` points at a `DLManagedTensorVersioned` that has no other owner. Until its deleter is
    /// called, the memory behind it stays valid and the elements do not change. The deleter may be
    /// called on any thread.
    pub unsafe fn from_raw(p: *mut VersionedTensor) -> Option<Managed> {
        NonNull::new(p).map(Managed)
    }
    /// For another library: a pointer to a `DLManagedTensorVersioned`, whose deleter is to be called once.
    pub fn into_raw(self) -> *mut VersionedTensor {
        std::mem::ManuallyDrop::new(self).0.as_ptr()
    }
    /// The elements of a buffer that is ready, row major.
    ///
    /// # Errors
    /// `Unsupported` where the host cannot read them; `Invalid` for another number of bytes.
    pub fn lend(buffer: Buffer, element: ElementCode, shape: &[usize]) -> Res<Managed> {
        let elsewhere = || Error::Unsupported("the elements are on a device that the host cannot read in place".into());
        let bytes = buffer.memory()?.host().ok_or_else(elsewhere)?;
        let count = shape.iter().try_fold(element.bytes(), |n, k| n.checked_mul(*k));
        if count != Some(bytes.len()) {
            return Err(Error::Invalid(format!("{} bytes are not an array of shape {shape:?}", bytes.len())));
        }
        let mut strides = vec![1; shape.len()];
        for k in (1..shape.len()).rev() {
            strides[k - 1] = strides[k] * shape[k].max(1) as i64;
        }
        let tensor = Header {
            data: bytes.as_ptr().cast_mut().cast(),
            device_type: HOST,
            device_id: 0,
            ndim: shape.len() as i32,
            element,
            shape: null_mut(),
            strides: null_mut(),
            byte_offset: 0,
        };
        let head = VersionedTensor {
            major: MAJOR,
            minor: 0,
            context: null_mut(),
            deleter: Some(give_back),
            flags: READ_ONLY,
            tensor,
        };
        let shape = shape.iter().map(|n| *n as i64).collect();
        let lent = Box::into_raw(Box::new(Lent { head, shape, strides, _buffer: buffer }));
        // SAFETY: `lent` was leaked from a box just now, and nothing else refers to it. It does not move, nor do the vectors' elements.
        unsafe {
            (*lent).head.context = lent.cast();
            (*lent).head.tensor.shape = (*lent).shape.as_mut_ptr();
            (*lent).head.tensor.strides = (*lent).strides.as_mut_ptr();
            Ok(Managed(NonNull::new_unchecked(&raw mut (*lent).head)))
        }
    }
    /// Element type and shape.
    ///
    /// # Errors
    /// `Unsupported` for another major version, and sizes that no array has.
    pub fn kind(&self) -> Res<(ElementCode, Vec<usize>)> {
        let t = self.header()?;
        Ok((t.element, sizes(t)?.iter().map(|n| *n as usize).collect()))
    }
    fn header(&self) -> Res<&Header> {
        // SAFETY: the tensor lives as long as `self`, and the version field has the same offset in
        // every version.
        let t = unsafe { self.0.as_ref() };
        if t.major != MAJOR {
            return Err(Error::Unsupported(format!("a tensor of DLPack {}.{}, and not {MAJOR}", t.major, t.minor)));
        }
        Ok(&t.tensor)
    }
    /// The elements as a buffer, without a copy.
    ///
    /// # Errors
    /// `Unsupported` for elements that are not in host memory, not contiguous, or not aligned for
    /// their dtype.
    pub fn into_buffer(self) -> Res<Buffer> {
        let t = self.header()?;
        let refused = |why: String| Err(Error::Unsupported(format!("{why}: a copy is needed")));
        if t.device_type != HOST {
            return refused(format!("the elements are on a device of DLPack's kind {}, not the host's", t.device_type));
        }
        let e = t.element;
        if e.lanes != 1 || !e.bits.is_multiple_of(8) || e.alignment() == 0 {
            return refused(format!("elements of {} lanes of {} bits", e.lanes, e.bits));
        }
        let sizes = sizes(t)?;
        let count = sizes.iter().try_fold(e.bytes(), |n, k| n.checked_mul(*k as usize));
        let Some(len) = count.filter(|n| *n <= isize::MAX as usize) else {
            return refused(format!("an array of shape {sizes:?} is larger than any memory"));
        };
        if len > 0 && !lies_together(t, sizes) {
            return refused("the elements do not lie together, row by row".into());
        }
        let data = match usize::try_from(t.byte_offset) {
            _ if len == 0 => NonNull::dangling(),
            Ok(offset) => match NonNull::new(t.data.cast::<u8>().wrapping_add(offset)) {
                Some(p) if !t.data.is_null() && p.addr().get().is_multiple_of(e.alignment()) => p,
                Some(_) if !t.data.is_null() => {
                    return refused("the elements are at an address that is not a multiple of their size".into());
                }
                _ => return refused("there are no elements".into()),
            },
            Err(_) => return refused(format!("the elements begin {} bytes after their memory", t.byte_offset)),
        };
        Ok(Buffer::ready(Borrowed { data, len, _tensor: self }))
    }
}
fn sizes(t: &Header) -> Res<&[i64]> {
    let n = usize::try_from(t.ndim).ok().filter(|n| *n == 0 || !t.shape.is_null());
    let all: Option<&[i64]> = match n {
        Some(0) => Some(&[]),
        // SAFETY: the tensor has as many sizes as axes, as its producer promised.
        Some(n) => Some(unsafe { std::slice::from_raw_parts(t.shape, n) }),
        None => None,
    };
    let known = all.filter(|all| all.iter().all(|n| *n >= 0));
    known.ok_or_else(|| Error::Unsupported(format!("a tensor of {} axes whose sizes are not valid", t.ndim)))
}
fn lies_together(t: &Header, sizes: &[i64]) -> bool {
    if t.strides.is_null() || sizes.is_empty() {
        return true;
    }
    // SAFETY: there are as many strides as sizes.
    let strides = unsafe { std::slice::from_raw_parts(t.strides, sizes.len()) };
    let mut want = 1;
    sizes.iter().zip(strides).rev().all(|(n, stride)| {
        let fits = *n == 1 || *stride == want;
        want *= n;
        fits
    })
}
/// Another library's memory.
struct Borrowed {
    data: NonNull<u8>,
    len: usize,
    /// Gives it back.
    _tensor: Managed,
}
// SAFETY: plain memory that is only read; the tensor is `Send` and `Sync`.
unsafe impl Send for Borrowed {}
// SAFETY: as above.
unsafe impl Sync for Borrowed {}
impl Memory for Borrowed {
    fn len(&self) -> usize {
        self.len
    }
    fn host(&self) -> Option<&[u8]> {
        // SAFETY: `len` bytes are valid until the tensor is dropped, with this one, and nothing
        // writes to them meanwhile: the contract of `from_raw` says so for a foreign tensor, and an
        // exported one is read-only.
        Some(unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.len) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const F32: ElementCode = ElementCode::new(2, 32);

    /// A tensor as another library would pass it; the deleter counts in `deleted`.
    struct Theirs {
        head: VersionedTensor,
        _elements: Vec<f32>,
        shape: Vec<i64>,
        strides: Vec<i64>,
        deleted: &'static AtomicUsize,
    }
    unsafe extern "C" fn delete(p: *mut VersionedTensor) {
        // SAFETY: `context` is the box that `theirs` leaked.
        let it = unsafe { Box::from_raw((*p).context.cast::<Theirs>()) };
        it.deleted.fetch_add(1, Ordering::Relaxed);
    }
    fn theirs(
        shape: &[i64],
        strides: Option<&[i64]>,
        change: impl FnOnce(&mut VersionedTensor),
    ) -> (Managed, &'static AtomicUsize) {
        let deleted: &'static AtomicUsize = Box::leak(Box::default());
        let mut elements: Vec<f32> = (0..64).map(|i| i as f32).collect();
        let tensor = Header {
            data: elements.as_mut_ptr().cast(),
            device_type: HOST,
            device_id: 0,
            ndim: shape.len() as i32,
            element: F32,
            shape: null_mut(),
            strides: null_mut(),
            byte_offset: 0,
        };
        let head = VersionedTensor { major: 1, minor: 1, context: null_mut(), deleter: Some(delete), flags: 0, tensor };
        let (shape, strides_) = (shape.to_vec(), strides.unwrap_or_default().to_vec());
        let p = Box::into_raw(Box::new(Theirs { head, _elements: elements, shape, strides: strides_, deleted }));
        // SAFETY: leaked just now; all of it stays until `delete`.
        unsafe {
            (*p).head.context = p.cast();
            (*p).head.tensor.shape = (*p).shape.as_mut_ptr();
            if strides.is_some() {
                (*p).head.tensor.strides = (*p).strides.as_mut_ptr();
            }
            change(&mut (*p).head);
            (Managed::from_raw(&raw mut (*p).head).unwrap(), deleted)
        }
    }
    fn read(b: &Buffer) -> Vec<f32> {
        let bytes = b.memory().unwrap().host().unwrap();
        bytes.chunks_exact(4).map(|w| f32::from_le_bytes(w.try_into().unwrap())).collect()
    }

    #[test]
    fn structures_lie_as_dlpack_says() {
        let at = |k| k + offset_of!(VersionedTensor, tensor);
        let found = [
            offset_of!(VersionedTensor, context),
            offset_of!(VersionedTensor, deleter),
            offset_of!(VersionedTensor, flags),
            at(offset_of!(Header, data)),
            at(offset_of!(Header, device_type)),
            at(offset_of!(Header, ndim)),
            at(offset_of!(Header, element)),
            at(offset_of!(Header, shape)),
            at(offset_of!(Header, strides)),
            at(offset_of!(Header, byte_offset)),
            size_of::<VersionedTensor>(),
        ];
        #[cfg(target_pointer_width = "64")]
        assert_eq!(found, [8, 16, 24, 32, 40, 48, 52, 56, 64, 72, 80]);
        assert!(found.is_sorted());
    }
    #[test]
    fn borrowed_memory_is_read_in_place_and_given_back_once() {
        let (m, deleted) = theirs(&[2, 3], Some(&[3, 1]), |h| h.tensor.byte_offset = 8);
        assert_eq!(m.kind().unwrap(), (F32, vec![2, 3]));
        let b = m.into_buffer().unwrap();
        let other = b.clone();
        assert_eq!(read(&b), [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        drop(b);
        assert_eq!(deleted.load(Ordering::Relaxed), 0);
        std::thread::spawn(move || assert_eq!(read(&other)[5], 7.0)).join().unwrap();
        assert_eq!(deleted.load(Ordering::Relaxed), 1);
        let (m, deleted) = theirs(&[], None, |_| ());
        drop(m);
        assert_eq!(deleted.load(Ordering::Relaxed), 1);
        // no deleter: the lender keeps it
        let (m, deleted) = theirs(&[1], None, |_| ());
        let p = m.into_raw();
        // SAFETY: `theirs` owns the tensor, and nothing else does.
        unsafe {
            let own = (*p).deleter.take().unwrap();
            drop(Managed::from_raw(p).unwrap().into_buffer().unwrap());
            assert_eq!(deleted.load(Ordering::Relaxed), 0);
            own(p);
        }
        assert_eq!(deleted.load(Ordering::Relaxed), 1);
    }
    #[test]
    fn what_does_not_fit_is_refused_and_given_back() {
        type Change = fn(&mut VersionedTensor);
        let cases: &[(&[i64], Option<&[i64]>, Change, &str)] = &[
            (&[2], None, |h| h.major = 2, "DLPack 2.1"),
            (&[2], None, |h| h.tensor.device_type = 2, "kind 2"),
            (&[2], None, |h| h.tensor.element.lanes = 4, "4 lanes"),
            (&[2], None, |h| h.tensor.element.bits = 4, "4 bits"),
            (&[2], None, |h| h.tensor.element.bits = 0, "0 bits"),
            (&[2], None, |h| h.tensor.byte_offset = 2, "not a multiple"),
            (&[2], None, |h| h.tensor.data = null_mut(), "no elements"),
            (&[2], None, |h| h.tensor.shape = null_mut(), "sizes are not valid"),
            (&[2], None, |h| h.tensor.ndim = -1, "sizes are not valid"),
            (&[2, -1], None, |_| (), "sizes are not valid"),
            (&[i64::MAX, 2], None, |_| (), "larger"),
            (&[2, 3], Some(&[1, 2]), |_| (), "together"),
            (&[2, 3], Some(&[6, 2]), |_| (), "together"),
            (&[2], Some(&[-1]), |_| (), "together"),
            (&[2], Some(&[0]), |_| (), "together"),
        ];
        for (shape, strides, change, what) in cases {
            let (m, deleted) = theirs(shape, *strides, change);
            match m.into_buffer() {
                Err(Error::Unsupported(m)) => assert!(m.contains(what), "{what}: {m}"),
                other => panic!("{what}: {other:?}"),
            }
            assert_eq!(deleted.load(Ordering::Relaxed), 1, "{what}");
        }
    }
    #[test]
    fn axes_of_one_element_and_none_have_any_stride() {
        let (m, _) = theirs(&[2, 1, 3], Some(&[3, 77, 1]), |_| ());
        assert_eq!(read(&m.into_buffer().unwrap()), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        let (m, deleted) = theirs(&[3, 0], Some(&[9, 9]), |h| h.tensor.data = null_mut());
        assert!(read(&m.into_buffer().unwrap()).is_empty());
        assert_eq!(deleted.load(Ordering::Relaxed), 1);
    }
    #[test]
    fn lent_memory_outlives_its_buffer() {
        let buffer =
            crate::memory::Fresh::copy_of(&[1.0f32, 2.0, 3.0, 4.0].map(f32::to_le_bytes).concat()).unwrap().buffer();
        let mut again = buffer.clone();
        let p = Managed::lend(buffer, F32, &[2, 2]).unwrap().into_raw();
        assert!(again.memory_mut().is_none(), "while it is lent nobody may write to it");
        // SAFETY: lent just now; read as another library would, and given back once.
        unsafe {
            let t = &(*p).tensor;
            assert_eq!(((*p).flags, t.device_type, t.ndim, t.byte_offset), (READ_ONLY, HOST, 2, 0));
            assert_eq!(std::slice::from_raw_parts(t.shape, 2), [2, 2]);
            assert_eq!(std::slice::from_raw_parts(t.strides, 2), [2, 1]);
            let shared = again.memory().unwrap().host().unwrap().as_ptr();
            assert_eq!(t.data.cast_const().cast(), shared);
            drop(again.clone());
            let other = std::mem::replace(&mut again, Buffer::pending(0, 0).0);
            drop(other);
            assert_eq!(std::slice::from_raw_parts(t.data.cast::<f32>(), 4), [1.0, 2.0, 3.0, 4.0]);
            ((*p).deleter.unwrap())(p);
        }
        let small = crate::memory::Fresh::copy_of(&[0; 12]).unwrap().buffer();
        assert!(matches!(Managed::lend(small, F32, &[4]), Err(Error::Invalid(_))));
        assert!(Managed::lend(Buffer::pending(4, 0).0, F32, &[1]).is_err());
    }
}
