//! The processes of a run: their messages go by MPI itself, or by the engine, a Python object of the package; it also writes the errors.
//!
//! INVARIANT: with MPI itself the interpreter is entered by an error and by a warning, not by calls, messages or waits.
use crate::error::IntoPyResult;
use crate::transport::MpiTransport;
use crate::watch::{Watch, Watching, cause_dict};
use ferrax::device;
use ferrax::processes::peers::transfers::{Messages, Transfer};
use ferrax::processes::peers::watch::Vain;
use ferrax::processes::{self, Exchange, MeetingId, Message, Processes, ProgramText, Transport};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// After so long a wait the engine looks whether it is in vain, and again.
const LOOK: Duration = Duration::from_millis(200);

/// `engine.begin(number, digest, receivers, messages, call, senders)` gives an object with `poll()`, `complain(seconds)` and `cancel()`;
/// `engine.fail(cause, missing, seconds)` raises the error of a wait, `engine.complain(missing, seconds)` warns, `engine.check_fork()` refuses a child.
struct PyTransport {
    engine: Arc<Py<PyAny>>,
    watching: Arc<Watching>,
    /// MPI itself, where it takes calls of several threads.
    mpi: Option<Arc<Messages>>,
}
struct PyExchange(Py<PyAny>);

fn failed(e: PyErr) -> ferrax_kernel::Error {
    ferrax_kernel::Error::Host(Arc::new(e))
}

impl Transport for PyTransport {
    fn call(&self, peers: &[usize], digest: u64, program: &ProgramText) -> ferrax_kernel::Res<u64> {
        if self.watching.is_of_parent() {
            Python::attach(|py| self.engine.call_method0(py, "check_fork").map(drop)).map_err(failed)?;
        }
        Ok(self.watching.call(peers, digest, program))
    }
    fn begin(&self, id: MeetingId, messages: &[Message], from: &[usize]) -> ferrax_kernel::Res<Box<dyn Exchange>> {
        if let Some(mpi) = &self.mpi {
            let transfer = mpi.begin((id.number, id.digest), messages, from).map_err(ferrax_kernel::Error::Device)?;
            let (engine, watching, begun) = (self.engine.clone(), self.watching.clone(), Instant::now());
            let (call, looks) = (id.call, begun + LOOK);
            return Ok(Box::new(MpiExchange { transfer, engine, watching, call, begun, looks, wait: None }));
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

/// Messages by MPI itself, of which the watch learns when the wait for them lasts.
struct MpiExchange {
    transfer: Arc<Transfer>,
    engine: Arc<Py<PyAny>>,
    watching: Arc<Watching>,
    call: u64,
    begun: Instant,
    looks: Instant,
    /// The number of the wait.
    wait: Option<u64>,
}
impl MpiExchange {
    fn over(&mut self) {
        if let Some(wait) = self.wait.take() {
            self.watching.over(wait);
        }
    }
    /// An error where the wait is in vain.
    fn look(&mut self) -> ferrax_kernel::Res<()> {
        self.looks = Instant::now() + LOOK;
        let wait = *self.wait.get_or_insert_with(|| self.watching.wait(self.call));
        match self.watching.look((wait, self.call), &*self.transfer) {
            Ok(()) => Ok(()),
            Err(Vain::Failed(why)) => Err(ferrax_kernel::Error::Device(why)),
            Err(Vain::Cause(cause)) => {
                self.over();
                let (missing, waited) = (self.transfer.missing(), self.begun.elapsed().as_secs());
                let raised = Python::attach(|py| {
                    let cause = cause_dict(py, &cause)?;
                    self.engine.call_method1(py, "fail", (cause, missing, waited)).map(drop)
                });
                raised.map_err(failed)
            }
        }
    }
}
impl Exchange for MpiExchange {
    fn poll(&mut self) -> ferrax_kernel::Res<Option<Vec<Vec<u8>>>> {
        if let Some(found) = self.transfer.poll().map_err(ferrax_kernel::Error::Device)? {
            self.over();
            return Ok(Some(found));
        }
        // what belongs to another program is an error as soon as the other one's program is known
        let wrong = self.wait.is_none() && !self.transfer.wrong().is_empty();
        if wrong || Instant::now() >= self.looks {
            self.look()?;
        }
        Ok(None)
    }
    fn complain(&mut self, seconds: u64) -> ferrax_kernel::Res<()> {
        let missing = self.transfer.missing();
        Python::attach(|py| self.engine.call_method1(py, "complain", (missing, seconds)).map(drop)).map_err(failed)
    }
    fn cancel(&mut self) {
        self.transfer.abandon();
        self.over();
    }
}

/// Nothing waits for it any more, also where another exchange of the collective has failed.
impl Drop for MpiExchange {
    fn drop(&mut self) {
        if !self.watching.is_of_parent() {
            self.over();
        }
    }
}

/// set_processes(here, cpus, engine, transport, watch): this process's number, the number of CPU devices of each
/// process, what carries their messages (an `MpiTransport`, or another one that the engine uses), and the watch of this one.
#[pyfunction]
pub fn set_processes(
    py: Python,
    here: usize,
    cpus: Vec<usize>,
    engine: Py<PyAny>,
    transport: &Bound<PyAny>,
    watch: &Bound<Watch>,
) -> PyResult<()> {
    if device::has_cpus() {
        return Err(PyRuntimeError::new_err("the devices of this process have been made already"));
    }
    let mpi = transport.cast::<MpiTransport>().ok().map(|t| t.get().0.clone());
    let transport = PyTransport { engine: Arc::new(engine), watching: watch.get().watching.clone(), mpi };
    processes::set(Processes::new(here, cpus, Arc::new(transport))).py(py)
}
/// wanted_cpus(): how many CPU devices this process is to have.
#[pyfunction]
pub fn wanted_cpus() -> usize {
    device::wanted_cpus()
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
#[pyfunction]
pub fn process_index() -> usize {
    processes::here()
}
#[pyfunction]
pub fn process_count() -> usize {
    processes::count()
}
