//! Programs that meet a fault of the compiler or of a backend: they are run by the reference implementation, with a warning.
//!
//! ```text
//!   lowering fails  --> every value in memory of its own, each kernel one operation
//!   compiling fails --> that plan, run by the reference implementation
//!   a run fails     --> the same, from the run's inputs, if none was given up and it has no effects
//! ```
//!
//! INVARIANT: nothing is done twice that a program can notice, and with `FERRAX_STRICT_PLANS` nothing at all: there a fault is an error.
use crate::device::Device;
use crate::runtime;
use ferrax_ir::Program;
use ferrax_ir::error::Res;
use ferrax_ir::lower;
use ferrax_kernel::backend::{Buffers, RunArg};
use ferrax_kernel::reference::ReferenceBackend;
use ferrax_kernel::{Backend, Buffer, Error, Executable, Plan, RunCx, VerifiedPlan, fault};
use smallvec::SmallVec;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// What went wrong, to be raised if there is no other way.
enum Fault {
    Panic(Box<dyn Any + Send>),
    Invalid(Error),
}
impl Fault {
    fn text(&self) -> String {
        match self {
            Fault::Panic(p) => fault::text(&**p),
            Fault::Invalid(e) => e.to_string(),
        }
    }
    fn raise<T>(self) -> ferrax_kernel::Res<T> {
        match self {
            Fault::Panic(p) => resume_unwind(p),
            Fault::Invalid(e) => Err(e),
        }
    }
    /// `again`, if a fault may be mended here and that meets none; else the fault.
    fn or<T>(self, again: impl FnOnce() -> ferrax_kernel::Res<T>) -> ferrax_kernel::Res<T> {
        let text = self.text();
        fault::report(&text);
        if fault::is_strict() {
            return self.raise();
        }
        match caught(again) {
            Ok(Ok(out)) => {
                runtime::warn(&format!(
                    "internal error in ferrax, please report it: {text}. The program was run step by step by the reference implementation, which is slow."
                ));
                Ok(out)
            }
            // what the program itself does wrong, it does wrong there too
            Ok(Err(e)) => Err(e),
            Err(_) => self.raise(),
        }
    }
}
/// The result of `f`, which may be an error of the program's; or the fault that it met.
fn caught<T>(f: impl FnOnce() -> ferrax_kernel::Res<T>) -> Result<ferrax_kernel::Res<T>, Fault> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Err(e @ Error::Invalid(_))) => Err(Fault::Invalid(e)),
        Ok(out) => Ok(out),
        // operators of the Rust API panic with the error of their user
        Err(p) if p.is::<ferrax_ir::Error>() => resume_unwind(p),
        Err(p) => Err(Fault::Panic(p)),
    }
}

/// The plan of a program.
pub(crate) fn lowered(p: &Program) -> Res<VerifiedPlan> {
    match catch_unwind(AssertUnwindSafe(|| lower::verified(p))) {
        Ok(made) => made,
        Err(panic) if panic.is::<ferrax_ir::Error>() => resume_unwind(panic),
        Err(panic) => {
            fault::report(&fault::text(&*panic));
            if fault::is_strict() {
                resume_unwind(panic);
            }
            match catch_unwind(AssertUnwindSafe(|| lower::plain(p))) {
                Ok(made) => Ok(made?.verify()?),
                Err(_) => resume_unwind(panic),
            }
        }
    }
}

/// The plan compiled for a device, and kept an eye on.
pub(crate) fn compiled(
    program: &Arc<Program>,
    device: &'static Device,
    plan: VerifiedPlan,
) -> Res<Arc<dyn Executable>> {
    match caught(|| device.backend.compile(plan)) {
        Ok(exe) => Ok(Arc::new(Guarded { exe: exe?, program: program.clone(), device })),
        Err(fault) => Ok(fault.or(|| reference(program, device))?),
    }
}
fn reference(program: &Program, device: &'static Device) -> ferrax_kernel::Res<Arc<dyn Executable>> {
    let plan = lower::plain(program).map_err(|e| Error::Invalid(e.message().to_string()))?;
    Ok(Arc::new(ByReference { exe: ReferenceBackend.compile(plan.verify()?)?, device }))
}

/// An executable whose faults are mended.
struct Guarded {
    exe: Arc<dyn Executable>,
    program: Arc<Program>,
    device: &'static Device,
}
impl Guarded {
    #[cold]
    fn again(&self, fault: Fault, cx: &RunCx, ins: &[&Buffer]) -> ferrax_kernel::Res<Buffers> {
        // the other members of a collective would wait for one that begins again
        if self.program.effects().io || cx.world.is_some() {
            fault::report(&fault.text());
            return fault.raise();
        }
        fault.or(|| reference(&self.program, self.device)?.run_lent(cx, ins))
    }
}
impl Executable for Guarded {
    fn run(&self, cx: &RunCx, args: SmallVec<[RunArg; 4]>) -> ferrax_kernel::Res<Buffers> {
        if args.iter().any(|a| a.donated) {
            return self.exe.run(cx, args);
        }
        let kept: SmallVec<[Buffer; 4]> = args.iter().map(|a| a.buffer.clone()).collect();
        match caught(|| self.exe.run(cx, args)) {
            Ok(out) => out,
            Err(fault) => self.again(fault, cx, &kept.iter().collect::<SmallVec<[&Buffer; 4]>>()),
        }
    }
    fn run_lent(&self, cx: &RunCx, ins: &[&Buffer]) -> ferrax_kernel::Res<Buffers> {
        match caught(|| self.exe.run_lent(cx, ins)) {
            Ok(out) => out,
            Err(fault) => self.again(fault, cx, ins),
        }
    }
    fn plan(&self) -> &Plan {
        self.exe.plan()
    }
    fn combined_elements(&self) -> usize {
        self.exe.combined_elements()
    }
    fn text(&self) -> String {
        self.exe.text()
    }
}

/// The reference implementation, on the memory of a device.
struct ByReference {
    exe: Arc<dyn Executable>,
    device: &'static Device,
}
impl ByReference {
    fn on_host(&self, b: &Buffer) -> ferrax_kernel::Res<Buffer> {
        if b.memory()?.host().is_some() {
            Ok(b.clone())
        } else {
            ReferenceBackend.upload(&self.device.backend.download(b)?)
        }
    }
}
impl Executable for ByReference {
    fn run(&self, cx: &RunCx, args: SmallVec<[RunArg; 4]>) -> ferrax_kernel::Res<Buffers> {
        self.run_lent(cx, &args.iter().map(|a| &a.buffer).collect::<SmallVec<[&Buffer; 4]>>())
    }
    fn run_lent(&self, cx: &RunCx, ins: &[&Buffer]) -> ferrax_kernel::Res<Buffers> {
        let arg =
            |b: &&Buffer| -> ferrax_kernel::Res<RunArg> { Ok(RunArg { buffer: self.on_host(b)?, donated: false }) };
        let ins: SmallVec<[RunArg; 4]> = ins.iter().map(arg).collect::<ferrax_kernel::Res<_>>()?;
        let outs = self.exe.run(cx, ins)?;
        outs.iter().map(|b| self.device.backend.upload(&ReferenceBackend.download(b)?)).collect()
    }
    fn plan(&self) -> &Plan {
        self.exe.plan()
    }
    fn text(&self) -> String {
        format!("by the reference implementation:\n{}", self.exe.text())
    }
}
