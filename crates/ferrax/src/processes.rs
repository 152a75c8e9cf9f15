//! The processes of a run: the number of this one, the CPU devices of each, and the exchange of messages.
//!
//! The host provides the transport: the Python package uses MPI (`ferrax[mpi]`). A message
//! contains the exchange that it belongs to, so that processes which have diverged detect it by the first message that does not fit.
//!
//! INVARIANT: the identity of this process does not change once its devices exist.
use ferrax_ir::error::{Error, ErrorKind, Res};
pub use ferrax_peers as peers;
use rustc_hash::FxHasher;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock};

/// What processes meet for: equal on all of them, and unlike that of any other meeting between them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MeetingId {
    /// Which meeting it is: of which processes, in which of their runs, and which in that run.
    pub number: u64,
    /// Of the programs that have run on devices of these processes, this one last, and of what each process gave them of its own.
    pub digest: u64,
    /// The call that it belongs to, as [`Transport::call`] numbered it on this process.
    pub call: u64,
}

/// What runs, as text: asked for where peers turn out to run something else.
pub type ProgramText = Arc<dyn Fn() -> String + Send + Sync>;

/// A process and what it is sent, which the transport keeps until it has left.
pub type Message = (usize, Arc<Vec<u8>>);

/// Messages on their way.
pub trait Exchange: Send {
    /// The messages to this process in the order of their senders, once all are here and this process's own have left.
    fn poll(&mut self) -> ferrax_kernel::Res<Option<Vec<Vec<u8>>>>;
    /// Reports a long wait: the processes that have not sent, and the seconds. An error after the timeout.
    fn complain(&mut self, seconds: u64) -> ferrax_kernel::Res<()>;
    /// Gives the exchange up.
    fn cancel(&mut self);
}

/// How processes exchange messages.
pub trait Transport: Send + Sync {
    /// Notes that this process calls a program which it runs together with `peers`: all of them must call the same programs in the same order, and a
    /// peer that waits asks whether they did. Called in the order of the calls; gives the call's number on this process.
    fn call(&self, peers: &[usize], digest: u64, program: &ProgramText) -> ferrax_kernel::Res<u64>;
    /// Begins to send messages to processes, and to receive one from each of `from`.
    fn begin(&self, id: MeetingId, messages: &[Message], from: &[usize]) -> ferrax_kernel::Res<Box<dyn Exchange>>;
}

/// The run that this process takes part in.
pub struct Processes {
    /// This process's number.
    pub here: usize,
    /// How many CPU devices each process has.
    pub cpus: Vec<usize>,
    pub transport: Arc<dyn Transport>,
    /// How many runs there were so far on devices of these processes, and their digest.
    runs: Mutex<HashMap<Vec<usize>, (u64, u64)>>,
    /// Calls that this process has given up and has not reported to its peers yet, with the reason.
    given_up: Mutex<Vec<(u64, String)>>,
    /// Calls that all devices of this process have finished, which was not reported to its peers yet.
    finished: Mutex<Vec<u64>>,
}
impl Processes {
    pub fn new(here: usize, cpus: Vec<usize>, transport: Arc<dyn Transport>) -> Processes {
        Processes {
            here,
            cpus,
            transport,
            runs: Mutex::default(),
            given_up: Mutex::default(),
            finished: Mutex::default(),
        }
    }
}
/// The number of the next run on devices of these processes, which all of them count alike, and the digest of all their runs up to it: so what
/// differs in a run without messages is found in the next one that has some.
pub fn next_run(hosts: &[usize], digest: u64) -> (u64, u64) {
    let Some(p) = PROCESSES.get() else { return (0, digest) };
    let mut all = hosts.to_vec();
    all.sort_unstable();
    all.dedup();
    let mut runs = p.runs.lock().unwrap_or_else(|e| e.into_inner());
    let (n, so_far) = runs.entry(all).or_default();
    *n += 1;
    let mut h = FxHasher::default();
    (*so_far, digest).hash(&mut h);
    *so_far = h.finish();
    (*n, *so_far)
}
/// Notes that this process runs a call no further, which its peers must hear. Neither blocks nor calls the host.
pub fn give_up(call: u64, why: &ferrax_kernel::Error) {
    if let Some(p) = PROCESSES.get() {
        p.given_up.lock().unwrap_or_else(|e| e.into_inner()).push((call, why.to_string()));
    }
}
/// The calls that were given up since the last time.
pub fn given_up() -> Vec<(u64, String)> {
    PROCESSES
        .get()
        .map_or_else(Vec::new, |p| std::mem::take(&mut *p.given_up.lock().unwrap_or_else(|e| e.into_inner())))
}
/// Notes that this process sends nothing more for a call, which a peer that still waits in it must hear. Neither blocks nor calls the host.
pub fn finish(call: u64) {
    if let Some(p) = PROCESSES.get() {
        p.finished.lock().unwrap_or_else(|e| e.into_inner()).push(call);
    }
}
/// The calls that were finished since the last time.
pub fn finished() -> Vec<u64> {
    PROCESSES
        .get()
        .map_or_else(Vec::new, |p| std::mem::take(&mut *p.finished.lock().unwrap_or_else(|e| e.into_inner())))
}
static PROCESSES: OnceLock<Processes> = OnceLock::new();

/// Says what this process is, before there are devices. An error where it was said before.
pub fn set(p: Processes) -> Res<()> {
    PROCESSES.set(p).map_err(|_| Error::new(ErrorKind::Runtime, "distributed.initialize should only be called once."))
}
/// This process's number; 0 where it is the only one.
pub fn here() -> usize {
    PROCESSES.get().map_or(0, |p| p.here)
}
/// How many processes there are.
pub fn count() -> usize {
    PROCESSES.get().map_or(1, |p| p.cpus.len())
}
/// How many CPU devices each process has; `None` where there is one process.
pub fn cpus_of_each() -> Option<Vec<usize>> {
    PROCESSES.get().map(|p| p.cpus.clone())
}
/// How messages go; `None` where there is one process.
pub fn transport() -> Option<&'static Arc<dyn Transport>> {
    PROCESSES.get().map(|p| &p.transport)
}
