//! What the processes of a run report to each other, for Python: [`peers::watch`] over MPI itself or over mpi4py, and the thread that pumps it.
//!
//! INVARIANT: this thread never needs the interpreter, so that a process answers whatever its Python code does. A thread that holds the interpreter gives it
//! back before it takes a lock of the watch.
use crate::ffi::mpi::{self, Communicator};
use crate::transport::{MpiTransfer, MpiTransport, failed};
use ferrax::processes;
use ferrax::processes::peers::calls::{Bounds, Cause, Farewell, Text};
use ferrax::processes::peers::transfers::{Messages, Transfer};
use ferrax::processes::peers::watch::{self as peers_watch, Awaited, Vain};
use ferrax::processes::peers::{Receiving, Sending, Wire};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the thread pumps.
const PUMP: Duration = Duration::from_millis(100);

/// The watch of this process, as the threads that wait see it.
pub struct Watching {
    watch: Arc<peers_watch::Watch>,
    begun: Instant,
    messages: Counter,
    /// Held by the one thread that reports at a time: a call is given up before it is finished.
    reports: Mutex<()>,
    /// The process that made it: a forked child takes no part.
    owner: u32,
}
/// What counts the messages that were sent.
enum Counter {
    Mpi(Arc<Messages>),
    Python(Py<PyAny>),
}
impl Watching {
    fn now(&self) -> Duration {
        self.begun.elapsed()
    }
    fn sent(&self) -> PyResult<Vec<u64>> {
        match &self.messages {
            Counter::Mpi(messages) => Ok(messages.sent()),
            Counter::Python(transport) => Python::attach(|py| transport.call_method0(py, "sent")?.extract(py)),
        }
    }
    /// Reports what this process has finished or given up.
    fn report(&self) -> PyResult<()> {
        let _one = self.reports.lock().unwrap_or_else(|e| e.into_inner());
        // a call that is given up is finished after that
        let finished = processes::finished();
        for (call, why) in processes::given_up() {
            self.watch.give_up(call, &why);
        }
        if !finished.is_empty() {
            let sent = self.sent()?;
            finished.into_iter().for_each(|call| self.watch.finish(call, &sent));
        }
        Ok(())
    }
    /// So it does, and hears the others.
    fn pump(&self) -> PyResult<()> {
        self.report()?;
        self.watch.pump(self.now()).map_err(failed)
    }
    pub fn is_of_parent(&self) -> bool {
        std::process::id() != self.owner
    }
    pub fn call(&self, peers: &[usize], digest: u64, text: &Text) -> u64 {
        self.watch.call(peers, digest, text)
    }
    pub fn wait(&self, call: u64) -> u64 {
        self.watch.wait(call)
    }
    pub fn over(&self, wait: u64) {
        self.watch.over(wait);
    }
    /// Looks whether a wait in a call is in vain.
    pub fn look(&self, wait: (u64, u64), of: &dyn Awaited) -> Result<(), Vain> {
        self.watch.look(wait, of)
    }
}
/// A cause as a dictionary, whose `kind` says which it is.
pub fn cause_dict<'py>(py: Python<'py>, cause: &Cause) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    let text = |t: &Option<Text>| t.as_ref().map(|t| t());
    match cause {
        Cause::Different { peer, index, first, mine, theirs } => {
            d.set_item("kind", "different")?;
            d.set_item("peer", peer)?;
            d.set_item("index", index)?;
            d.set_item("first", first)?;
            d.set_item("mine", text(mine))?;
            d.set_item("theirs", theirs)?;
        }
        Cause::Died { peer } => {
            d.set_item("kind", "died")?;
            d.set_item("peer", peer)?;
        }
        Cause::GivenUp { peer, why, place } => {
            d.set_item("kind", "given up")?;
            d.set_item("peer", peer)?;
            d.set_item("why", why)?;
            d.set_item("place", place)?;
        }
        Cause::Ended { peer, calls, index, mine } => {
            d.set_item("kind", "ended")?;
            d.set_item("peer", peer)?;
            d.set_item("calls", calls)?;
            d.set_item("index", index)?;
            d.set_item("mine", text(mine))?;
        }
        Cause::Finished { peer, index, mine } => {
            d.set_item("kind", "finished")?;
            d.set_item("peer", peer)?;
            d.set_item("index", index)?;
            d.set_item("mine", text(mine))?;
        }
        Cause::Silent { peers } => {
            d.set_item("kind", "silent")?;
            d.set_item("peers", peers)?;
        }
        Cause::Circle { processes } => {
            d.set_item("kind", "circle")?;
            d.set_item("peers", processes)?;
        }
    }
    Ok(d)
}

/// A wire of Python: `send(to, bytes)` gives an object with `Test()`, `take(from)` bytes or None.
struct PyWire(Py<PyAny>);
struct PySending(Py<PyAny>);
fn text(e: PyErr) -> String {
    e.to_string()
}
impl Wire for PyWire {
    fn send(&self, to: usize, _: i32, data: Arc<Vec<u8>>) -> Result<Box<dyn Sending>, String> {
        Python::attach(|py| {
            let sent = self.0.call_method1(py, "send", (to, PyBytes::new(py, &data))).map_err(text)?;
            Ok(Box::new(PySending(sent)) as Box<dyn Sending>)
        })
    }
    fn take(&self, from: usize, _: Option<i32>) -> Result<Option<Vec<u8>>, String> {
        Python::attach(|py| self.0.call_method1(py, "take", (from,))?.extract(py)).map_err(text)
    }
    fn receive(&self, _: usize, _: i32, _: usize) -> Result<Box<dyn Receiving>, String> {
        Err("statuses are short".into())
    }
}
impl Sending for PySending {
    fn is_done(&mut self) -> Result<bool, String> {
        Python::attach(|py| self.0.call_method0(py, "Test")?.extract(py)).map_err(text)
    }
}
/// A transfer of Python, and the error that it has raised: an interrupt, say.
struct PyAwaited(Py<PyAny>, Mutex<Option<PyErr>>);
impl PyAwaited {
    fn asked<T>(&self, ask: impl FnOnce(Python, &Py<PyAny>) -> PyResult<T>) -> Result<T, String> {
        Python::attach(|py| ask(py, &self.0)).map_err(|e| {
            let why = e.to_string();
            *self.1.lock().unwrap_or_else(|e| e.into_inner()) = Some(e);
            why
        })
    }
}
impl Awaited for PyAwaited {
    fn missing(&self) -> Result<Vec<usize>, String> {
        self.asked(|py, t| t.call_method0(py, "missing")?.extract(py))
    }
    fn wrong(&self) -> Result<Vec<usize>, String> {
        self.asked(|py, t| t.call_method0(py, "wrong")?.extract(py))
    }
    fn receives_from(&self, peer: usize) -> Result<bool, String> {
        self.asked(|py, t| t.call_method1(py, "receives_from", (peer,))?.extract(py))
    }
    fn has_none(&self, peer: usize, sent: u64) -> Result<bool, String> {
        self.asked(|py, t| t.call_method1(py, "has_none", (peer, sent))?.extract(py))
    }
}

type Pumping = (Sender<()>, JoinHandle<()>);
/// The watch of this process.
#[pyclass(frozen, module = "ferrax._core")]
pub struct Watch {
    pub watching: Arc<Watching>,
    pumping: Mutex<Option<Pumping>>,
}
fn seconds(s: Option<f64>) -> Option<Duration> {
    s.map(|s| Duration::try_from_secs_f64(s).unwrap_or(Duration::MAX / 8))
}
#[pymethods]
impl Watch {
    /// Watch(here, size, transport, wire, silence, circle): of process `here` of `size`, whose messages the transport sends. `wire` carries statuses: the
    /// arguments `path`, `handles`, `any_tag` of an `MpiTransport` for a communicator of their own, which a thread reads, or an object of Python. `silence`
    /// and `circle` are the seconds after which a wait fails without an answer, and while processes wait for each other; None for never.
    #[new]
    fn new(
        here: usize,
        size: usize,
        transport: &Bound<PyAny>,
        wire: &Bound<PyAny>,
        silence: Option<f64>,
        circle: Option<f64>,
    ) -> PyResult<Watch> {
        type Mpi = (String, (usize, usize, usize), i32);
        let (line, threaded): (Box<dyn Wire>, bool) = match wire.extract::<Mpi>() {
            Ok((path, (handle_bytes, comm, byte), any_tag)) => {
                (mpi::open(&path, &Communicator { handle_bytes, comm, byte, any_tag }).map_err(failed)?, true)
            }
            Err(_) => (Box::new(PyWire(wire.clone().unbind())), false),
        };
        let messages = match transport.cast::<MpiTransport>() {
            Ok(t) => Counter::Mpi(t.get().0.clone()),
            Err(_) => Counter::Python(transport.clone().unbind()),
        };
        let bounds = Bounds { silence: seconds(silence), circle: seconds(circle) };
        let watch = peers_watch::Watch::new(line, here, size, bounds);
        let (begun, reports, owner) = (Instant::now(), Mutex::new(()), std::process::id());
        let watching = Arc::new(Watching { watch, begun, messages, reports, owner });
        let pumping = Mutex::new(if threaded { Some(pumping(watching.clone())?) } else { None });
        Ok(Watch { watching, pumping })
    }
    /// Hears the others, and answers them.
    fn pump(&self, py: Python) -> PyResult<()> {
        py.detach(|| self.watching.pump())
    }
    fn call(&self, py: Python, peers: Vec<usize>, digest: u64, text: String) -> u64 {
        let text: Text = Arc::new(move || text.clone());
        py.detach(|| self.watching.call(&peers, digest, &text))
    }
    fn give_up(&self, py: Python, call: u64, why: String) {
        py.detach(|| self.watching.watch.give_up(call, &why));
    }
    /// This process sends nothing more for a call.
    fn finish(&self, py: Python, call: u64) -> PyResult<()> {
        py.detach(|| {
            self.watching.watch.finish(call, &self.watching.sent()?);
            Ok(())
        })
    }
    fn died(&self, py: Python, peer: usize) {
        py.detach(|| self.watching.watch.died(peer));
    }
    fn dead(&self, py: Python) -> Vec<usize> {
        py.detach(|| self.watching.watch.dead())
    }
    fn has_ended(&self, py: Python, peer: usize) -> bool {
        py.detach(|| self.watching.watch.has_ended(peer))
    }
    fn set_bounds(&self, py: Python, silence: Option<f64>, circle: Option<f64>) {
        let bounds = Bounds { silence: seconds(silence), circle: seconds(circle) };
        py.detach(|| self.watching.watch.set_bounds(bounds));
    }
    /// Whether another process wants to know where this one's program is.
    fn is_place_wanted(&self, py: Python) -> bool {
        py.detach(|| self.watching.watch.is_place_wanted())
    }
    fn place(&self, py: Python, place: String) {
        py.detach(|| self.watching.watch.place(&place));
    }
    fn place_of(&self, py: Python, peer: usize) -> Option<String> {
        py.detach(|| self.watching.watch.place_of(peer))
    }
    /// The number of a wait in a call, which `over` ends.
    fn wait(&self, py: Python, call: u64) -> u64 {
        py.detach(|| self.watching.wait(call))
    }
    fn over(&self, py: Python, wait: u64) {
        py.detach(|| self.watching.over(wait));
    }
    /// Why a wait for a transfer is in vain; None while it is not.
    fn look<'py>(
        &self,
        py: Python<'py>,
        wait: u64,
        call: u64,
        transfer: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let mpi: Option<Arc<Transfer>> = transfer.cast::<MpiTransfer>().ok().map(|t| t.get().0.clone());
        let python = PyAwaited(transfer.clone().unbind(), Mutex::new(None));
        let found = py.detach(|| match &mpi {
            Some(t) => self.watching.look((wait, call), &**t),
            None => self.watching.look((wait, call), &python),
        });
        match found {
            Ok(()) => Ok(None),
            Err(Vain::Failed(why)) => {
                let raised = python.1.lock().unwrap_or_else(|e| e.into_inner()).take();
                Err(raised.unwrap_or_else(|| failed(why)))
            }
            Err(Vain::Cause(cause)) => cause_dict(py, &cause).map(Some),
        }
    }
    /// This process makes no more calls.
    fn end(&self, py: Python) -> PyResult<()> {
        py.detach(|| {
            self.watching.report()?;
            self.watching.watch.end(&self.watching.sent()?);
            Ok(())
        })
    }
    /// Whether all have ended ("over"; "waits" while not), or why they do not: "died", "silent", "late"; and which processes.
    fn farewell(&self, py: Python, timeout: Option<f64>) -> (&'static str, Vec<usize>) {
        match py.detach(|| self.watching.watch.farewell(seconds(timeout))) {
            Farewell::Waits => ("waits", vec![]),
            Farewell::Over => ("over", vec![]),
            Farewell::Died => ("died", vec![]),
            Farewell::Silent(peers) => ("silent", peers),
            Farewell::Late(peers) => ("late", peers),
        }
    }
    /// Whether all that was said has left.
    fn is_sent(&self, py: Python) -> bool {
        py.detach(|| self.watching.watch.is_sent())
    }
    /// Ends the thread. From now on nothing is heard or said.
    fn stop(&self, py: Python) -> PyResult<()> {
        py.detach(|| {
            let pumping = self.pumping.lock().unwrap_or_else(|e| e.into_inner()).take();
            if let Some((stop, thread)) = pumping
                && !self.watching.is_of_parent()
            {
                let _ = stop.send(()); // its thread may be gone
                thread.join().map_err(|_| PyRuntimeError::new_err("the thread of the watch has panicked"))?;
            }
            self.watching.watch.close();
            Ok(())
        })
    }
}
/// Starts the thread.
fn pumping(watching: Arc<Watching>) -> PyResult<Pumping> {
    let (stop, stopped) = channel();
    let pump = move || {
        while stopped.recv_timeout(PUMP) == Err(RecvTimeoutError::Timeout) {
            if let Err(e) = watching.pump() {
                eprintln!("ferrax: the other processes cannot be watched any more: {e}");
                return;
            }
        }
    };
    let thread = std::thread::Builder::new().name("ferrax-peers".into()).spawn(pump)?;
    Ok((stop, thread))
}
