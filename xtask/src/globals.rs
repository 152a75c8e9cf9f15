//! Process-wide and thread-wide state: every `static` of the crates, each with its reason. State is passed; what is not stands here.
use crate::files::File;

/// File, name, reason.
const GLOBALS: &[(&str, &str, &str)] = &[
    ("crates/ferrax-host/src/scratch.rs", "MEMORY", "working memory of a kernel, kept by the thread"),
    ("crates/ferrax-host/src/scratch.rs", "GROUP_MEMORY", "working memory of a row-fused group, kept by the thread"),
    ("crates/ferrax-cpu/src/kernels/moves.rs", "TABLES", "the numbers from 0 on, filled once"),
    ("crates/ferrax-host/src/memory.rs", "TAKEN", "bytes taken by this thread, for limits"),
    ("crates/ferrax-host/src/memory.rs", "FREE", "blocks that this thread keeps"),
    ("crates/ferrax-host/src/memory.rs", "SHARED", "blocks that threads share"),
    ("crates/ferrax-host/src/memory.rs", "TOTAL", "the machine's memory, read once"),
    ("crates/ferrax-cpu/src/native.rs", "MIN_NANOS", "a threshold that tests lower"),
    (
        "crates/ferrax-cpu/src/instructions/graph.rs",
        "GRAPH",
        "the graph being recorded: operators of the recording numbers have no argument for it",
    ),
    ("crates/ferrax-cpu/src/native/pages.rs", "MAPPED", "pages of code, limited per process"),
    ("crates/ferrax-cpu/src/stats.rs", "LAUNCHES", "launches counted on this thread until the run ends"),
    ("crates/ferrax-host/src/threads.rs", "WANTED", "how many threads the user asked for"),
    ("crates/ferrax-host/src/threads.rs", "STANDBY", "threads that are still awake"),
    ("crates/ferrax-host/src/threads.rs", "RUNNING", "runs that are under way, each on a core"),
    ("crates/ferrax-host/src/threads.rs", "POOL", "the thread pool"),
    ("crates/ferrax-host/src/threads.rs", "MISSED", "what waking threads cost lately"),
    ("crates/ferrax-host/src/threads.rs", "SINCE", "the clock that MISSED counts from"),
    ("crates/ferrax-host/src/tier.rs", "TIER", "the machine's instructions, asked once"),
    ("crates/ferrax-ir/src/checks.rs", "HOST", "how the host checks values, set once by the extension"),
    ("crates/ferrax-ir/src/cut.rs", "CUTS", "interned cuts of types"),
    ("crates/ferrax-ir/src/cut.rs", "LENIENT", "whether this thread types again what was typed"),
    ("crates/ferrax-ir/src/cut.rs", "WITHIN", "the mesh of the body that this thread types"),
    ("crates/ferrax-ir/src/cx/scope.rs", "CURRENT", "the trace this thread is in"),
    ("crates/ferrax-ir/src/cx/scope.rs", "LINE", "the user's line this thread is at"),
    ("crates/ferrax-ir/src/cx/scope.rs", "ROOT", "the evaluating trace, set once by the engine"),
    ("crates/ferrax-ir/src/cx/scope.rs", "LINES", "how lines are named, set once"),
    ("crates/ferrax-ir/src/cx/scope.rs", "TO_LIT", "how arrays become literals, set once"),
    ("crates/ferrax-ir/src/op.rs", "TABLE", "facts of primitives by name, built once"),
    ("crates/ferrax-ir/src/program.rs", "MADE", "equations that a test of passes counts"),
    ("crates/ferrax-ir/src/ops/pointwise.rs", "ROW", "a constant row of the table of functions"),
    (
        "crates/ferrax-ir/src/settings.rs",
        "HOST_SETTINGS",
        "settings of the host about types, set once by the extension",
    ),
    ("crates/ferrax-ir/src/vary.rs", "SETS", "interned sets of axis names"),
    ("crates/ferrax/src/parts.rs", "TYPED", "meshes that types may mean"),
    ("crates/ferrax/src/instead.rs", "ANY", "whether an implementation was replaced"),
    ("crates/ferrax/src/instead.rs", "TABLE", "functions that users put in the place of implementations"),
    ("crates/ferrax/src/instead.rs", "PLAIN", "whether this thread evaluates for such a function"),
    ("crates/ferrax-python/src/array.rs", "METHODS", "whether the array class has its methods"),
    (
        "crates/ferrax-python/src/array/value.rs",
        "CAPTURED_BEFORE",
        "from which age scalars are literals, for make_jaxpr on this thread",
    ),
    (
        "crates/ferrax-python/src/array/constants.rs",
        "CAPTURED",
        "NumPy arrays that are constants of the program under construction",
    ),
    ("crates/ferrax-python/src/array/value.rs", "IS_NODE", "how pytree nodes are known, set once"),
    ("crates/ferrax-python/src/aval.rs", "NAMED_SIZES", "whether this thread prints symbolic sizes by name"),
    ("crates/ferrax-python/src/aval.rs", "SIZES", "symbolic sizes in scope on this thread"),
    ("crates/ferrax-python/src/config.rs", "TABLE", "flags of the configuration"),
    ("crates/ferrax-python/src/config.rs", "PROCESS", "the process's flags as bits"),
    ("crates/ferrax-python/src/config.rs", "LOCAL", "this thread's flags as bits"),
    ("crates/ferrax-python/src/config.rs", "BLOCKS", "flags that blocks of this thread set"),
    ("crates/ferrax-python/src/debug.rs", "EXPECT", "the handler of bad numbers, set once"),
    ("crates/ferrax-python/src/jaxpr.rs", "HELD_VARS", "the variables that Python holds, one object for each"),
    ("crates/ferrax-python/src/dtype.rs", "NUMPY", "the numpy module"),
    ("crates/ferrax-python/src/dtype.rs", "GENERIC", "numpy's class, looked up once"),
    ("crates/ferrax-python/src/dtype.rs", "NDARRAY", "numpy's class, looked up once"),
    ("crates/ferrax-python/src/dtype.rs", "OBJECTS", "dtype objects"),
    ("crates/ferrax-python/src/ffi/fork.rs", "HOOKS", "what runs around forks"),
    ("crates/ferrax-python/src/ffi/threads.rs", "GATE", "threads inside the extension, and forks"),
    ("crates/ferrax-python/src/hooks.rs", "VALUE", "a slot of the hooks"),
    ("crates/ferrax-python/src/hooks.rs", "LOADERS", "loaders of the hooks"),
    ("crates/ferrax-python/src/hooks.rs", "CORE", "the extension module"),
    ("crates/ferrax-python/src/hooks.rs", "FOLDER", "the package's folder"),
    ("crates/ferrax-python/src/jit/cache.rs", "CACHES", "compile caches that are alive, for clear_caches"),
    ("crates/ferrax-python/src/jit/cache.rs", "SHARED", "compile caches of functions by identity"),
    ("crates/ferrax-python/src/jit/run.rs", "LOGGER", "the logger, looked up once"),
    ("crates/ferrax-python/src/jit/vectorcall.rs", "CLASS", "the class of jitted functions"),
    ("crates/ferrax-python/src/lib.rs", "ALLOCATOR", "the process's allocator"),
    ("crates/ferrax-python/src/modules.rs", "MODULES", "the interpreter's module table"),
    ("crates/ferrax-python/src/once.rs", "TEXT", "an interned string"),
    ("crates/ferrax-python/src/primitive.rs", "OBJECTS", "primitives by name"),
    ("crates/ferrax-python/src/primitive.rs", "NAMES", "interned names of users' primitives"),
    ("crates/ferrax-python/src/process.rs", "GATED", "whether forks gate threads, decided once"),
    ("crates/ferrax-python/src/process.rs", "STILL", "locks held over a fork"),
    ("crates/ferrax-python/src/process.rs", "LOST", "what a forked child drops later"),
    (
        "crates/ferrax-python/src/reads.rs",
        "FORBIDDEN",
        "open traces of this thread whose program takes references as inputs",
    ),
    ("crates/ferrax-python/src/reads.rs", "READS", "references that this thread's traces read as constants"),
    ("crates/ferrax-python/src/source.rs", "EXCLUSIONS", "how often paths were excluded from source lines"),
    ("crates/ferrax-python/src/source.rs", "TABLE", "interned source lines"),
    ("crates/ferrax-python/src/source.rs", "LAST", "the source line seen last on this thread"),
    ("crates/ferrax-python/src/source.rs", "SEEN", "which exclusions LAST knows of"),
    ("crates/ferrax-python/src/source.rs", "PARTIAL", "an interpreter's object, looked up once"),
    ("crates/ferrax-python/src/source/scopes.rs", "TABLE", "interned name scopes"),
    ("crates/ferrax-python/src/trace.rs", "PINS", "devices that functions being traced on this thread ask for"),
    ("crates/ferrax-python/src/tree/registry.rs", "CLASSES", "classes registered as pytree nodes"),
    ("crates/ferrax-python/src/tree/registry.rs", "ORDERED", "an interpreter's object, looked up once"),
    ("crates/ferrax-python/src/tree/registry.rs", "DEFAULT", "an interpreter's object, looked up once"),
    ("crates/ferrax-python/src/whose.rs", "TABLE", "whose code objects are, by address"),
    ("crates/ferrax-runtime/src/lib.rs", "CURRENT", "the run this thread is inside of"),
    ("crates/ferrax-runtime/src/lib.rs", "SERVING", "the queue this thread serves"),
    ("crates/ferrax-wgpu/src/backend.rs", "ALL", "the devices of the machine"),
    ("crates/ferrax-wgpu/src/wgsl/prelude.rs", "ALL", "functions recorded as WGSL, once"),
    ("crates/ferrax-wgpu/src/wgsl/real.rs", "BODY", "the function being recorded as WGSL"),
    ("crates/ferrax/src/array.rs", "PLACES", "where the buffers of all arrays are, behind one lock"),
    ("crates/ferrax/src/array.rs", "NOW", "the age of the next array"),
    ("crates/ferrax/src/compiled.rs", "CHECK", "called before programs are compiled"),
    ("crates/ferrax/src/device.rs", "NUM_CPU", "how many CPU devices the user asked for"),
    ("crates/ferrax/src/device.rs", "CPUS", "the CPU devices"),
    ("crates/ferrax/src/device.rs", "GPUS", "the GPU devices"),
    ("crates/ferrax/src/device.rs", "MAKING", "held while devices are made"),
    ("crates/ferrax/src/device.rs", "ORDER", "the order of platforms"),
    ("crates/ferrax/src/processes.rs", "PROCESSES", "which process of a run this is, set once before devices are made"),
    ("crates/ferrax/src/world/between.rs", "SPINS", "how long this thread polls before it sleeps"),
    ("crates/ferrax/src/eval.rs", "CACHE", "programs of one equation, compiled, by thread"),
    ("crates/ferrax/src/eval.rs", "DEFAULT", "this thread's default device"),
    ("crates/ferrax/src/key_reuse.rs", "WANTED", "whether reuse of keys is looked for"),
    ("crates/ferrax/src/key_reuse.rs", "REGISTRY", "keys that were consumed"),
    ("crates/ferrax/src/layout.rs", "ORIGINAL", "whether this thread asks for original layouts"),
    ("crates/ferrax/src/mistakes.rs", "CATCHING", "whether panics of this thread are caught"),
    ("crates/ferrax/src/mistakes.rs", "HERE", "where this thread called the Rust API"),
    ("crates/ferrax/src/mistakes.rs", "LINES", "set once: lines of the Rust API"),
    ("crates/ferrax/src/mistakes.rs", "PLACES", "interned places of the Rust API"),
    ("crates/ferrax/src/numpy/promotion.rs", "STANDARD", "the lattice of promotion, computed once"),
    ("crates/ferrax/src/numpy/promotion.rs", "STRICT", "the lattice of promotion, computed once"),
    ("crates/ferrax/src/runtime.rs", "RUNTIME", "the scheduler"),
    ("crates/ferrax/src/runtime.rs", "NEVER", "a flag that is never set"),
    ("crates/ferrax/src/runtime.rs", "HOST", "how the host waits, set once"),
    ("crates/ferrax/src/speculation.rs", "RUNNING", "the speculative run this thread is in"),
    ("crates/ferrax/src/speculation.rs", "SLOTS", "speculative runs that are watched"),
    ("crates/ferrax/src/speculation.rs", "UNWATCHED", "the flag of runs that are not watched"),
    ("crates/ferrax/src/speculation.rs", "WATCHED", "whether the watching thread runs"),
];

/// The name of a static that a line declares.
fn declared(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("pub(crate) ").or(line.strip_prefix("pub ")).unwrap_or(line);
    let name = line.strip_prefix("static ")?.split(':').next()?;
    name.chars().all(|c| c.is_ascii_uppercase() || c == '_').then_some(name)
}

pub fn globals_are_listed(files: &[File]) -> Vec<String> {
    let is_source = |f: &&File| f.path.starts_with("crates/") && f.path.contains("/src/") && f.path.ends_with(".rs");
    let mut found = vec![];
    let mut out = vec![];
    for f in files.iter().filter(is_source).filter(|f| !f.path.starts_with("crates/ferrax-testkit/")) {
        for (n, name) in f.text.lines().enumerate().filter_map(|(n, l)| Some((n, declared(l)?))) {
            found.push((f.path.as_str(), name));
            if !GLOBALS.iter().any(|g| g.0 == f.path && g.1 == name) {
                out.push(format!("{}:{}: {name} is not listed in xtask/src/globals.rs with its reason", f.path, n + 1));
            }
        }
    }
    let spent = |g: &&(&str, &str, &str)| !found.contains(&(g.0, g.1));
    out.extend(GLOBALS.iter().filter(spent).map(|g| format!("xtask/src/globals.rs: {} has no static {}", g.0, g.1)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_static_is_known_by_its_line() {
        assert_eq!(declared("    pub(crate) static POOL: Mutex<u8> = ..;"), Some("POOL"));
        assert_eq!(declared("fn f(x: &'static str) {}"), None);
    }
}
