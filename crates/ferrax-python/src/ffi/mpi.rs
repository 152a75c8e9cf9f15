//! The functions of the MPI library that mpi4py has loaded, called without the interpreter.
//!
//! The functions are found by their names through the handle of mpi4py's module, so that they are those of the library that it has initialised. The ABIs differ
//! in what a handle is: a pointer in Open MPI and in the standard ABI, an `int` in MPICH and its relatives; mpi4py says how large it is.
//!
//! INVARIANT: memory given to MPI is owned by the request, and is not freed before the library has reported that it has completed.
#![allow(unsafe_code)]
use ferrax::processes::peers::{Receiving, Sending, Wire};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::Arc;

/// Bytes of a piece of a long message: MPI counts by `int`.
const PIECE: usize = 1 << 30;
const SUCCESS: c_int = 0;

/// A handle as one of the ABIs has it.
trait Handle: Copy + Send + 'static {
    fn of(n: usize) -> Self;
}
impl Handle for c_int {
    fn of(n: usize) -> c_int {
        n as c_int
    }
}
impl Handle for usize {
    fn of(n: usize) -> usize {
        n
    }
}
/// Large enough for `MPI_Status` of every ABI, none of whose fields is read.
#[repr(C, align(16))]
struct Status([u8; 128]);

/// What a caller has to know of the library and of a communicator.
pub struct Communicator {
    pub handle_bytes: usize,
    /// `MPI_Comm` and `MPI_BYTE`, as integers.
    pub comm: usize,
    pub byte: usize,
    /// `MPI_ANY_TAG`.
    pub any_tag: c_int,
}

/// The functions; `H` is a handle.
#[derive(Clone, Copy)]
struct Functions<H> {
    isend: unsafe extern "C" fn(*const c_void, c_int, H, c_int, c_int, H, *mut H) -> c_int,
    irecv: unsafe extern "C" fn(*mut c_void, c_int, H, c_int, c_int, H, *mut H) -> c_int,
    improbe: unsafe extern "C" fn(c_int, c_int, H, *mut c_int, *mut H, *mut Status) -> c_int,
    mrecv: unsafe extern "C" fn(*mut c_void, c_int, H, *mut H, *mut Status) -> c_int,
    get_count: unsafe extern "C" fn(*const Status, H, *mut c_int) -> c_int,
    test: unsafe extern "C" fn(*mut H, *mut c_int, *mut Status) -> c_int,
}
struct Library<H> {
    call: Functions<H>,
    comm: H,
    byte: H,
    any_tag: c_int,
}

/// The library that the module of mpi4py at `path` uses.
pub fn open(path: &str, c: &Communicator) -> Result<Box<dyn Wire>, String> {
    let module = loaded(path)?;
    match c.handle_bytes {
        n if n == size_of::<c_int>() => Ok(Box::new(library::<c_int>(module, c)?)),
        n if n == size_of::<usize>() => Ok(Box::new(library::<usize>(module, c)?)),
        n => Err(format!("handles of {n} bytes")),
    }
}
#[cfg(unix)]
fn loaded(path: &str) -> Result<*mut c_void, String> {
    let name = CString::new(path).map_err(|e| e.to_string())?;
    // SAFETY: the name is a C string; a library that is loaded is not loaded again, and runs no code.
    let module = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
    if module.is_null() { Err(format!("{path} is not loaded")) } else { Ok(module) }
}
#[cfg(unix)]
fn symbol(module: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: a handle that `dlopen` gave and that is never closed, and a C string.
    unsafe { libc::dlsym(module, name.as_ptr().cast::<c_char>()) }
}
#[cfg(not(unix))]
fn loaded(_: &str) -> Result<*mut c_void, String> {
    Err("not on this system".into())
}
#[cfg(not(unix))]
fn symbol(_: *mut c_void, _: &CStr) -> *mut c_void {
    std::ptr::null_mut()
}
#[allow(clippy::missing_transmute_annotations)] // the types of the fields
fn library<H: Handle>(module: *mut c_void, c: &Communicator) -> Result<Library<H>, String> {
    let find = |name: &CStr| {
        let found = symbol(module, name);
        if found.is_null() { Err(format!("{} is not there", name.to_string_lossy())) } else { Ok(found) }
    };
    // SAFETY: each is the C function of this name of the MPI standard, in the ABI whose handles are as wide as `H`; a library is never unloaded.
    let call = unsafe {
        Functions {
            isend: std::mem::transmute::<*mut c_void, _>(find(c"MPI_Isend")?),
            irecv: std::mem::transmute::<*mut c_void, _>(find(c"MPI_Irecv")?),
            improbe: std::mem::transmute::<*mut c_void, _>(find(c"MPI_Improbe")?),
            mrecv: std::mem::transmute::<*mut c_void, _>(find(c"MPI_Mrecv")?),
            get_count: std::mem::transmute::<*mut c_void, _>(find(c"MPI_Get_count")?),
            test: std::mem::transmute::<*mut c_void, _>(find(c"MPI_Test")?),
        }
    };
    Ok(Library { call, comm: H::of(c.comm), byte: H::of(c.byte), any_tag: c.any_tag })
}
fn checked(what: &str, code: c_int) -> Result<(), String> {
    if code == SUCCESS { Ok(()) } else { Err(format!("{what} has failed with error {code}")) }
}

/// Requests and the function that tests them.
struct Requests<H> {
    open: Vec<H>,
    test: unsafe extern "C" fn(*mut H, *mut c_int, *mut Status) -> c_int,
}
impl<H: Handle> Requests<H> {
    fn all_done(&mut self) -> Result<bool, String> {
        while let Some(request) = self.open.last_mut() {
            let (mut flag, mut status) = (0, Status([0; 128]));
            // SAFETY: a request that the library gave and has not completed.
            checked("MPI_Test", unsafe { (self.test)(request, &mut flag, &mut status) })?;
            if flag == 0 {
                return Ok(false);
            }
            self.open.pop();
        }
        Ok(true)
    }
}
struct Sent<H> {
    requests: Requests<H>,
    data: Arc<Vec<u8>>,
}
impl<H: Handle> Sending for Sent<H> {
    fn is_done(&mut self) -> Result<bool, String> {
        self.requests.all_done()
    }
}
/// Memory that MPI may still read is never freed.
impl<H> Drop for Sent<H> {
    fn drop(&mut self) {
        if !self.requests.open.is_empty() {
            std::mem::forget(self.data.clone());
        }
    }
}
struct Received<H> {
    requests: Requests<H>,
    data: Vec<u8>,
    bytes: usize,
}
impl<H: Handle> Receiving for Received<H> {
    fn taken(&mut self) -> Result<Option<Vec<u8>>, String> {
        if !self.requests.all_done()? {
            return Ok(None);
        }
        let mut data = std::mem::take(&mut self.data);
        // SAFETY: the requests have written these bytes, which `receive` has reserved; after the first time there are none.
        unsafe { data.set_len(std::mem::take(&mut self.bytes)) };
        Ok(Some(data))
    }
}
/// Memory that MPI may still write is never freed.
impl<H> Drop for Received<H> {
    fn drop(&mut self) {
        if !self.requests.open.is_empty() {
            std::mem::forget(std::mem::take(&mut self.data));
        }
    }
}

impl<H: Handle> Wire for Library<H> {
    fn send(&self, to: usize, tag: i32, data: Arc<Vec<u8>>) -> Result<Box<dyn Sending>, String> {
        let requests = Requests { open: vec![], test: self.call.test };
        let mut sent = Sent { requests, data: data.clone() };
        for piece in data.chunks(PIECE) {
            let mut request = H::of(0);
            // SAFETY: the bytes are not written any more, and live as long as the request.
            let code = unsafe {
                (self.call.isend)(
                    piece.as_ptr().cast(),
                    piece.len() as c_int,
                    self.byte,
                    to as c_int,
                    tag,
                    self.comm,
                    &mut request,
                )
            };
            checked("MPI_Isend", code)?;
            sent.requests.open.push(request);
        }
        Ok(Box::new(sent))
    }
    fn take(&self, from: usize, tag: Option<i32>) -> Result<Option<Vec<u8>>, String> {
        let (mut flag, mut message, mut status, mut count) = (0, H::of(0), Status([0; 128]), 0);
        let tag = tag.unwrap_or(self.any_tag);
        // SAFETY: the results live as long as the call.
        checked("MPI_Improbe", unsafe {
            (self.call.improbe)(from as c_int, tag, self.comm, &mut flag, &mut message, &mut status)
        })?;
        if flag == 0 {
            return Ok(None);
        }
        // SAFETY: the status of a message that was matched.
        checked("MPI_Get_count", unsafe { (self.call.get_count)(&status, self.byte, &mut count) })?;
        let mut data = vec![0_u8; usize::try_from(count).map_err(|e| e.to_string())?];
        // SAFETY: the memory is as long as the message, which is short and has arrived.
        checked("MPI_Mrecv", unsafe {
            (self.call.mrecv)(data.as_mut_ptr().cast(), count, self.byte, &mut message, &mut status)
        })?;
        Ok(Some(data))
    }
    fn receive(&self, from: usize, tag: i32, bytes: usize) -> Result<Box<dyn Receiving>, String> {
        let mut data: Vec<u8> = vec![];
        data.try_reserve_exact(bytes).map_err(|e| e.to_string())?;
        let requests = Requests { open: vec![], test: self.call.test };
        let mut received = Received { requests, data, bytes };
        let mut at = 0;
        while at < bytes {
            let n = (bytes - at).min(PIECE);
            let mut request = H::of(0);
            // SAFETY: reserved memory that lives, and is not used otherwise, until the request has completed.
            let code = unsafe {
                let to = received.data.as_mut_ptr().add(at).cast();
                (self.call.irecv)(to, n as c_int, self.byte, from as c_int, tag, self.comm, &mut request)
            };
            checked("MPI_Irecv", code)?;
            received.requests.open.push(request);
            at += n;
        }
        Ok(Box::new(received))
    }
}
