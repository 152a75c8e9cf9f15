//! A backend with faults: the reference implementation, except that it panics, or finds its own plan invalid, where a test wants it to.
//!
//! ```
//! use ferrax_kernel::Backend;
//! use ferrax_testkit::faulty::{Fails, Faulty};
//! assert_eq!(Faulty(Fails::Compiling { panics: true }).platform(), "reference");
//! ```
use ferrax_kernel::backend::{Buffers, Look, RunArg};
use ferrax_kernel::reference::ReferenceBackend;
use ferrax_kernel::{Backend, Buffer, DType, Error, Executable, Plan, Res, RunCx, VerifiedPlan};
use smallvec::SmallVec;
use std::sync::Arc;

/// Where it fails: by a panic, or by an error that says that the plan is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fails {
    Compiling { panics: bool },
    Running { panics: bool },
}
fn fail<T>(panics: bool) -> Res<T> {
    if panics { panic!("made on purpose") } else { Err(Error::Invalid("made on purpose".into())) }
}

#[derive(Debug)]
pub struct Faulty(pub Fails);

impl Backend for Faulty {
    fn platform(&self) -> &'static str {
        ReferenceBackend.platform()
    }
    fn description(&self) -> String {
        format!("{:?} fails", self.0)
    }
    fn supports(&self, d: DType) -> bool {
        ReferenceBackend.supports(d)
    }
    fn memory(&self) -> Option<usize> {
        None
    }
    fn compile(&self, plan: VerifiedPlan) -> Res<Arc<dyn Executable>> {
        match self.0 {
            Fails::Compiling { panics } => fail(panics),
            Fails::Running { panics } => Ok(Arc::new(FaultyRun(ReferenceBackend.compile(plan)?, panics))),
        }
    }
    fn upload(&self, bytes: &[u8]) -> Res<Buffer> {
        ReferenceBackend.upload(bytes)
    }
    fn zeros(&self, bytes: usize) -> Res<Buffer> {
        ReferenceBackend.zeros(bytes)
    }
    fn read(&self, b: &Buffer, look: &mut Look) -> Res<Vec<u8>> {
        ReferenceBackend.read(b, look)
    }
}

struct FaultyRun(Arc<dyn Executable>, bool);
impl Executable for FaultyRun {
    fn run(&self, _: &RunCx, _: SmallVec<[RunArg; 4]>) -> Res<Buffers> {
        fail(self.1)
    }
    fn plan(&self) -> &Plan {
        self.0.plan()
    }
    fn text(&self) -> String {
        self.0.text()
    }
}
