//! The reference evaluator as a backend that runs any plan.
use super::plan;
use crate::DType;
use crate::backend::{Backend, Buffers, Executable, Look, RunArg, RunCx};
use crate::buffer::{Buffer, Memory};
use crate::error::{Error, Res};
use crate::plan::{Plan, VerifiedPlan};
use smallvec::SmallVec;
use std::sync::Arc;

/// Platform `reference`: every dtype, host memory, no speed.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReferenceBackend;

struct HostBytes(Vec<u8>);

impl Memory for HostBytes {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn host(&self) -> Option<&[u8]> {
        Some(&self.0)
    }
}

/// A tape that an eager loop left for another.
struct HostTape(plan::SlotValue);

impl Memory for HostTape {
    fn len(&self) -> usize {
        0
    }
    fn host(&self) -> Option<&[u8]> {
        None
    }
}

impl Backend for ReferenceBackend {
    fn platform(&self) -> &'static str {
        "reference"
    }
    fn description(&self) -> String {
        "the waist's own evaluator".into()
    }
    fn supports(&self, _: DType) -> bool {
        true
    }
    fn memory(&self) -> Option<usize> {
        None
    }
    fn compile(&self, plan: VerifiedPlan) -> Res<Arc<dyn Executable>> {
        Ok(Arc::new(ReferenceExecutable(plan)))
    }
    fn upload(&self, bytes: &[u8]) -> Res<Buffer> {
        Ok(Buffer::ready(HostBytes(bytes.to_vec())))
    }
    fn zeros(&self, bytes: usize) -> Res<Buffer> {
        Ok(Buffer::ready(HostBytes(vec![0; bytes])))
    }
    fn read(&self, b: &Buffer, _look: &mut Look) -> Res<Vec<u8>> {
        bytes(b)
    }
}

/// The bytes of a buffer that the host can read.
fn bytes(b: &Buffer) -> Res<Vec<u8>> {
    let m = b.memory()?;
    m.host().map(|b| b.to_vec()).ok_or_else(|| Error::Invalid("the buffer belongs to another device".into()))
}

struct ReferenceExecutable(VerifiedPlan);

impl Executable for ReferenceExecutable {
    fn run(&self, cx: &RunCx, args: SmallVec<[RunArg; 4]>) -> Res<Buffers> {
        let value = |b: &Buffer| match b.memory()?.downcast_ref::<HostTape>() {
            Some(t) => Ok(t.0.clone()),
            None => bytes(b).map(plan::SlotValue::Bytes),
        };
        let ins = args.iter().map(|a| value(&a.buffer)).collect::<Res<Vec<_>>>()?;
        let outs = plan::run_values(&self.0, cx, ins)?;
        let buffer = |v| match v {
            plan::SlotValue::Bytes(b) => Buffer::ready(HostBytes(b)),
            tape => Buffer::ready(HostTape(tape)),
        };
        Ok(outs.into_iter().map(buffer).collect())
    }
    fn plan(&self) -> &Plan {
        &self.0
    }
    fn text(&self) -> String {
        format!("{:#?}", self.0.steps)
    }
}
