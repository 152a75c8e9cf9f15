//! Operands of routines as their shaders read them: arrays, or what a kernel computes of arrays.
//!
//! ```text
//!     fn f0(i: i32) -> i32 { element i of select(load < 0, load + n, load) }          start = f0(vector)
//! ```
use crate::task::{Limits, Reg};
use crate::wgsl::{self, Place};
use ferrax_kernel::kernel::{Kernel, Node};
use ferrax_kernel::{DType, Error, Res};

pub enum Argument {
    Array(Reg),
    /// The one output of a kernel without reductions, of inputs `ins`.
    Computed {
        kernel: Box<Kernel>,
        ins: Vec<Reg>,
    },
}

/// What a pass reads.
#[derive(Clone, Default)]
pub struct Reads {
    pub regs: Vec<Reg>,
    functions: String,
    made: usize,
}

/// Where the lanes of an operand are.
pub enum Lanes {
    Array(DType, Place),
    Function(String),
}

impl Reads {
    pub fn array(&mut self, r: Reg) -> Place {
        Place::of(format!("in{}", crate::task::bound(&mut self.regs, r)))
    }
    /// # Errors
    /// As [`super::lower`].
    pub fn operand(&mut self, o: &Argument, d: DType, limits: Limits) -> Res<Lanes> {
        let (kernel, ins) = match o {
            Argument::Array(r) => return Ok(Lanes::Array(d, self.array(*r))),
            Argument::Computed { kernel, ins } => (kernel, ins),
        };
        let mut places = vec![Place::default(); ins.len()];
        for (_, node) in &kernel.nodes {
            if let Node::Load(a) = node {
                places[a.input as usize] = self.array(ins[a.input as usize]);
            }
        }
        let name = format!("f{}", self.made);
        self.made += 1;
        self.functions += &wgsl::function(kernel, &name, places, limits)?;
        Ok(Lanes::Function(name))
    }
    /// The declarations of a shader with so many outputs.
    ///
    /// # Errors
    /// `Unsupported` for more arrays than the device binds.
    pub fn head(&self, writes: usize, limits: Limits) -> Res<String> {
        self.with_outputs(writes, &wgsl::bindings(self.regs.len(), writes), limits)
    }
    /// The same with an output of atomic words.
    ///
    /// # Errors
    /// As [`Reads::head`].
    pub fn atomics(&self, limits: Limits) -> Res<String> {
        let n = self.regs.len();
        let out = format!("@group(0) @binding({n}) var<storage, read_write> out0: array<atomic<u32>>;\n");
        self.with_outputs(1, &(wgsl::bindings(n, 0) + &out), limits)
    }
    fn with_outputs(&self, writes: usize, bindings: &str, limits: Limits) -> Res<String> {
        if self.regs.len() + writes > limits.buffers {
            return Err(Error::Unsupported(format!("a pass over {} arrays", self.regs.len() + writes)));
        }
        Ok(format!("{bindings}{}", self.functions))
    }
}

impl Lanes {
    /// The lane of element `at`.
    pub fn at(&self, at: &str) -> String {
        match self {
            Lanes::Array(d, place) => place.load(*d, at),
            Lanes::Function(name) => format!("{name}({at})"),
        }
    }
}
