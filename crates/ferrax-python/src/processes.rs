//! The processes of a run: the engine that carries messages is a Python object of the package.
//!
//! INVARIANT: a message is copied before the interpreter's lock is released, so that the engine can keep it while it is sent.
use crate::error::IntoPyResult;
use ferrax::device;
use ferrax::processes::{self, Exchange, MeetingId, Processes, ProgramText, Transport};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCFunction, PyDict, PyTuple};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// `engine.call(peers, digest, program)` numbers a call; `engine.begin(number, digest, peers, messages, call, senders)` gives an object with `poll()`, `complain(seconds)` and `cancel()`.
struct PyTransport(Py<PyAny>);
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
            self.0.call_method1(py, "call", (peers.to_vec(), digest, text))?.extract(py)
        })
        .map_err(failed)
    }
    fn begin(
        &self,
        id: MeetingId,
        messages: &[(usize, &[u8])],
        from: &[usize],
    ) -> ferrax_kernel::Res<Box<dyn Exchange>> {
        Python::attach(|py| {
            let to: Vec<usize> = messages.iter().map(|m| m.0).collect();
            let mut bytes: Vec<Bound<PyBytes>> = Vec::with_capacity(messages.len());
            for (k, (_, m)) in messages.iter().enumerate() {
                // one message for all is copied once
                let same = k > 0 && std::ptr::eq(messages[k - 1].1, *m);
                bytes.push(if same { bytes[k - 1].clone() } else { PyBytes::new(py, m) });
            }
            let args = (id.number, id.digest, to, bytes, id.call, from.to_vec());
            let begun = self.0.call_method1(py, "begin", args)?;
            Ok(Box::new(PyExchange(begun)) as Box<dyn Exchange>)
        })
        .map_err(failed)
    }
}
impl Exchange for PyExchange {
    fn poll(&mut self) -> ferrax_kernel::Res<Option<Vec<Vec<u8>>>> {
        Python::attach(|py| self.0.call_method0(py, "poll")?.extract(py)).map_err(failed)
    }
    fn complain(&self, seconds: u64) -> ferrax_kernel::Res<()> {
        Python::attach(|py| self.0.call_method1(py, "complain", (seconds,)).map(drop)).map_err(failed)
    }
    fn cancel(&mut self) {
        Python::attach(|py| {
            if let Err(e) = self.0.call_method0(py, "cancel") {
                e.write_unraisable(py, None);
            }
        });
    }
}

/// set_processes(here, cpus, engine): this process's number, the number of CPU devices of each
/// process, and the transport of messages.
#[pyfunction]
pub fn set_processes(py: Python, here: usize, cpus: Vec<usize>, engine: Py<PyAny>) -> PyResult<()> {
    if device::has_cpus() {
        return Err(PyRuntimeError::new_err("the devices of this process have been made already"));
    }
    processes::set(Processes::new(here, cpus, Arc::new(PyTransport(engine)))).py(py)
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
