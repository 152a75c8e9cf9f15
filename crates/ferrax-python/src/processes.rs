//! The processes of a run: their messages go by MPI itself; the engine, a Python object of the package, numbers calls and knows why a wait is in vain.
//!
//! INVARIANT: with MPI itself the interpreter is entered by a call, and by a wait that lasts, not by messages.
use crate::error::IntoPyResult;
use crate::transport::{Messages, MpiTransfer, MpiTransport, Transfer};
use ferrax::device;
use ferrax::processes::{self, Exchange, MeetingId, Message, Processes, ProgramText, Transport};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCFunction, PyDict, PyTuple};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// After so long a wait the engine looks whether it is in vain, and again.
const LOOK: Duration = Duration::from_millis(200);

/// `engine.call(peers, digest, program)` numbers a call; `engine.begin(number, digest, receivers, messages, call, senders)` gives an object with `poll()`,
/// `complain(seconds)` and `cancel()`, `engine.waits(transfer, call, seconds)` one with `look()` and `over()` besides.
struct PyTransport {
    engine: Arc<Py<PyAny>>,
    /// MPI itself, where it takes calls of several threads.
    mpi: Option<Arc<Messages>>,
}
struct PyExchange(Py<PyAny>);

fn failed(e: PyErr) -> ferrax_kernel::Error {
    ferrax_kernel::Error::Host(Arc::new(e))
}

impl Transport for PyTransport {
    fn call(&self, peers: &[usize], digest: u64, program: &ProgramText) -> ferrax_kernel::Res<u64> {
        let program = program.clone();
        Python::attach(|py| {
            let text = move |_: &Bound<PyTuple>, _: Option<&Bound<PyDict>>| program();
            let text = PyCFunction::new_closure(py, None, None, text)?;
            self.engine.call_method1(py, "call", (peers.to_vec(), digest, text))?.extract(py)
        })
        .map_err(failed)
    }
    fn begin(&self, id: MeetingId, messages: &[Message], from: &[usize]) -> ferrax_kernel::Res<Box<dyn Exchange>> {
        if let Some(mpi) = &self.mpi {
            let transfer = mpi.begin((id.number, id.digest), messages, from).map_err(ferrax_kernel::Error::Device)?;
            let (engine, begun) = (self.engine.clone(), Instant::now());
            return Ok(Box::new(MpiExchange {
                transfer,
                engine,
                call: id.call,
                begun,
                looks: begun + LOOK,
                waits: None,
            }));
        }
        Python::attach(|py| {
            let to: Vec<usize> = messages.iter().map(|m| m.0).collect();
            let mut bytes: Vec<Bound<PyBytes>> = Vec::with_capacity(messages.len());
            for (k, (_, m)) in messages.iter().enumerate() {
                // one message for all is copied once
                let same = k > 0 && Arc::ptr_eq(&messages[k - 1].1, m);
                bytes.push(if same { bytes[k - 1].clone() } else { PyBytes::new(py, m) });
            }
            let args = (id.number, id.digest, to, bytes, id.call, from.to_vec());
            let begun = self.engine.call_method1(py, "begin", args)?;
            Ok(Box::new(PyExchange(begun)) as Box<dyn Exchange>)
        })
        .map_err(failed)
    }
}
impl Exchange for PyExchange {
    fn poll(&mut self) -> ferrax_kernel::Res<Option<Vec<Vec<u8>>>> {
        Python::attach(|py| self.0.call_method0(py, "poll")?.extract(py)).map_err(failed)
    }
    fn complain(&mut self, seconds: u64) -> ferrax_kernel::Res<()> {
        Python::attach(|py| self.0.call_method1(py, "complain", (seconds,)).map(drop)).map_err(failed)
    }
    fn cancel(&mut self) {
        Python::attach(|py| call_unraised(py, &self.0, "cancel"));
    }
}
fn call_unraised(py: Python, object: &Py<PyAny>, name: &str) {
    if let Err(e) = object.call_method0(py, name) {
        e.write_unraisable(py, None);
    }
}

/// Messages by MPI itself, of which the engine learns when the wait for them lasts.
struct MpiExchange {
    transfer: Arc<Transfer>,
    engine: Arc<Py<PyAny>>,
    call: u64,
    begun: Instant,
    looks: Instant,
    /// The engine's object for it.
    waits: Option<Py<PyAny>>,
}
impl MpiExchange {
    fn waits<'a>(&'a mut self, py: Python) -> PyResult<&'a Py<PyAny>> {
        if self.waits.is_none() {
            let args = (MpiTransfer(self.transfer.clone()), self.call, self.begun.elapsed().as_secs_f64());
            self.waits = Some(self.engine.call_method1(py, "waits", args)?);
        }
        self.waits.as_ref().ok_or_else(|| PyRuntimeError::new_err("the engine does not know of the wait"))
    }
    fn over(&mut self, name: &str) {
        if let Some(waits) = self.waits.take() {
            Python::attach(|py| call_unraised(py, &waits, name));
        }
    }
}
impl Exchange for MpiExchange {
    fn poll(&mut self) -> ferrax_kernel::Res<Option<Vec<Vec<u8>>>> {
        if let Some(found) = self.transfer.poll().map_err(ferrax_kernel::Error::Device)? {
            self.over("over");
            return Ok(Some(found));
        }
        if Instant::now() >= self.looks || self.transfer.is_wrong() {
            self.looks = Instant::now() + LOOK;
            Python::attach(|py| self.waits(py)?.call_method0(py, "look")).map_err(failed)?;
        }
        Ok(None)
    }
    fn complain(&mut self, seconds: u64) -> ferrax_kernel::Res<()> {
        Python::attach(|py| self.waits(py)?.call_method1(py, "complain", (seconds,)).map(drop)).map_err(failed)
    }
    fn cancel(&mut self) {
        self.transfer.abandon();
        self.over("cancel");
    }
}

/// The engine hears that nothing waits for it any more, also where another exchange of the collective has failed.
impl Drop for MpiExchange {
    fn drop(&mut self) {
        self.over("over");
    }
}

/// set_processes(here, cpus, engine, transport): this process's number, the number of CPU devices of each
/// process, and what carries their messages: an `MpiTransport`, or another one that the engine uses.
#[pyfunction]
pub fn set_processes(
    py: Python,
    here: usize,
    cpus: Vec<usize>,
    engine: Py<PyAny>,
    transport: &Bound<PyAny>,
) -> PyResult<()> {
    if device::has_cpus() {
        return Err(PyRuntimeError::new_err("the devices of this process have been made already"));
    }
    let mpi = transport.cast::<MpiTransport>().ok().map(|t| t.get().0.clone());
    let transport = PyTransport { engine: Arc::new(engine), mpi };
    processes::set(Processes::new(here, cpus, Arc::new(transport))).py(py)
}
/// wanted_cpus(): how many CPU devices this process is to have.
#[pyfunction]
pub fn wanted_cpus() -> usize {
    device::wanted_cpus()
}
/// given_up_calls(): (call, reason) of those that this process has given up since the last time.
#[pyfunction]
pub fn given_up_calls() -> Vec<(u64, String)> {
    processes::given_up()
}
/// A time limit of a call that keeps the interpreter to itself, and that nothing else can end.
#[pyclass(frozen, module = "ferrax._core")]
pub struct Deadline(Sender<()>);
#[pymethods]
impl Deadline {
    /// Deadline(seconds, message): unless it is cancelled before, it writes the message to the standard error, and ends the process.
    #[new]
    fn new(seconds: f64, message: String) -> PyResult<Deadline> {
        let (cancelled, told) = channel();
        let limit = Duration::try_from_secs_f64(seconds).map_err(|e| PyValueError::new_err(e.to_string()))?;
        let watch = move || {
            if told.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{message}");
                std::process::exit(1);
            }
        };
        std::thread::Builder::new().name("ferrax-deadline".into()).spawn(watch)?;
        Ok(Deadline(cancelled))
    }
    fn cancel(&self) {
        let _ = self.0.send(()); // its thread may be gone
    }
}
/// finished_calls(): those for which this process sends nothing more, since the last time.
#[pyfunction]
pub fn finished_calls() -> Vec<u64> {
    processes::finished()
}
#[pyfunction]
pub fn process_index() -> usize {
    processes::here()
}
#[pyfunction]
pub fn process_count() -> usize {
    processes::count()
}
