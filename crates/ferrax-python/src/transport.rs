//! Messages between processes, by the MPI library itself: neither the interpreter nor its lock is needed to send, receive or wait.
use crate::ffi::mpi::{self, Communicator};
use ferrax::processes::peers::transfers::{Messages, Transfer};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;

pub fn failed(why: String) -> PyErr {
    PyRuntimeError::new_err(why)
}
/// Messages between processes, by the functions of the MPI library that mpi4py has loaded.
#[pyclass(frozen, module = "ferrax._core")]
pub struct MpiTransport(pub Arc<Messages>);
#[pymethods]
impl MpiTransport {
    /// MpiTransport(path, handles, any_tag, tags, size): `path` of mpi4py's module; `handles` are the bytes of one, the communicator and `MPI_BYTE`.
    #[new]
    fn new(path: &str, handles: (usize, usize, usize), any_tag: i32, tags: u64, size: usize) -> PyResult<MpiTransport> {
        let c = Communicator { handle_bytes: handles.0, comm: handles.1, byte: handles.2, any_tag };
        Ok(MpiTransport(Messages::new(mpi::open(path, &c).map_err(failed)?, tags, size)))
    }
    fn begin(
        &self,
        number: u64,
        digest: u64,
        receivers: Vec<usize>,
        messages: Vec<Bound<PyBytes>>,
        senders: Vec<usize>,
    ) -> PyResult<MpiTransfer> {
        let mut to: Vec<(usize, Arc<Vec<u8>>)> = Vec::with_capacity(receivers.len());
        for (k, p) in receivers.into_iter().enumerate() {
            // one message for all is copied once
            let same = k > 0 && messages[k].is(&messages[k - 1]);
            to.push((p, if same { to[k - 1].1.clone() } else { Arc::new(messages[k].as_bytes().to_vec()) }));
        }
        self.0.begin((number, digest), &to, &senders).map(MpiTransfer).map_err(failed)
    }
    /// How many messages this process has sent to each.
    fn sent(&self) -> Vec<u64> {
        self.0.sent()
    }
    /// How many messages this process has taken from each.
    fn taken(&self) -> Vec<u64> {
        self.0.taken()
    }
    /// From now on nothing calls MPI.
    fn close(&self) {
        self.0.close();
    }
}
/// Messages that are on their way.
#[pyclass(frozen, module = "ferrax._core")]
pub struct MpiTransfer(pub Arc<Transfer>);
#[pymethods]
impl MpiTransfer {
    fn poll<'py>(&self, py: Python<'py>) -> PyResult<Option<Vec<Bound<'py, PyBytes>>>> {
        let found = self.0.poll().map_err(failed)?;
        Ok(found.map(|all| all.iter().map(|m| PyBytes::new(py, m)).collect()))
    }
    /// The processes that have not sent yet; if there is none, those that have not taken this process's messages yet.
    fn missing(&self) -> Vec<usize> {
        self.0.missing()
    }
    /// Whether a message is expected from a process.
    fn receives_from(&self, peer: usize) -> bool {
        self.0.receives_from(peer)
    }
    /// The processes whose message belongs to another program.
    fn wrong(&self) -> Vec<usize> {
        self.0.wrong()
    }
    /// Whether a process that has sent `sent` messages in all has sent none for this: all of them have arrived.
    fn has_none(&self, peer: usize, sent: u64) -> PyResult<bool> {
        self.0.has_none(peer, sent).map_err(failed)
    }
    fn cancel(&self) {
        self.0.abandon();
    }
}
