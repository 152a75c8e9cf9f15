//! `ferrax._core`: the extension module. It is thin: it converts, flattens, looks up and forwards, and contains no mathematics.
//!
//! Python's side of the contract is `python/ferrax/_core.pyi`. Where things are:
//!
//! | module | names |
//! |---|---|
//! | [`mod@array`] | `Array`, `ArrayImpl`, `PyTracer`, their operators, indexing and conversions; `install_methods` |
//! | [`bind`] | `bind`, `elementwise`, promotion, `asarray`, `get_aval` |
//! | [`trace`], [`function`] | `make_program`; Python functions that are traced |
//! | [`transforms`] | `jvp`, `linearize`, `vmap`, `shard_map`, `checkpoint`, custom rules |
//! | [`program`], [`jaxpr`], [`held`], [`primitive`], [`plain`] | programs as objects, what they hold; primitives defined in Python, what their parameters are |
//! | [`jit`] | the function that `jit` returns |
//! | [`export`] | programs in files |
//! | [`tree`] | pytrees |
//! | [`device`], [`placement`], [`transfer`], [`process`] | devices, shardings, `device_put`; waiting, forks, the end of the process |
//! | [`config`], [`whose`], [`debug`], [`returned`], [`error`] | flags, whose code they bind, what they look at, the table of exceptions |
//! | [`hooks`] | what is called in the Python package |
//!
//! INVARIANT: no panic and no abort crosses this boundary; `unsafe` lives in [`ffi`], [`array::buffers`] and [`jit::vectorcall`] alone.
#![deny(unsafe_code)]
mod array;
mod aval;
mod bind;
mod callback;
mod config;
mod debug;
mod device;
mod dtype;
mod error;
mod export;
mod ffi;
mod function;
mod guard;
mod held;
mod holders;
mod hooks;
mod jaxpr;
mod jit;
mod modules;
mod once;
mod param;
mod placement;
mod plain;
mod primitive;
mod process;
mod processes;
mod program;
mod reads;
mod returned;
mod source;
mod trace;
mod trace_errors;
mod transfer;
mod transforms;
mod transport;
mod tree;
mod watch;
mod whose;

use pyo3::prelude::*;

#[pymodule(gil_used = true)]
#[pyo3(name = "_core")]
mod core {
    #[pymodule_export]
    use crate::array::value::abstract_values;
    #[pymodule_export]
    use crate::array::{_from_pickle, ArrayImpl, PyArray, PyTracer, install_methods};
    #[pymodule_export]
    use crate::aval::{ShapedArray, symbolic_sizes};
    #[pymodule_export]
    use crate::bind::{
        asarray, bind, broadcast_to, elementwise, get_aval, promote_dtypes, promote_dtypes_inexact, promote_shapes,
        result_type,
    };
    #[pymodule_export]
    use crate::callback::{HostCallable, callback};
    #[pymodule_export]
    use crate::config::{config_define, config_get, config_pop, config_push, config_set};
    #[pymodule_export]
    use crate::debug::checks_values;
    #[pymodule_export]
    use crate::device::{PyDevice, before_compiling, default_backend, devices, has_cpus, inventory};
    #[pymodule_export]
    use crate::dtype::{_key_dtype, KeyDtype};
    #[pymodule_export]
    use crate::export::{PyExported, PyProgramFamily};
    #[pymodule_export]
    use crate::ffi::lent::dlpack_as_bits;
    #[pymodule_export]
    use crate::held::held_objects;
    #[pymodule_export]
    use crate::holders::tracer_number;
    #[pymodule_export]
    use crate::hooks::{load_hooks, provide_hook, register_hooks};
    #[pymodule_export]
    use crate::jaxpr::{Jaxpr, JaxprEqn, Literal, Var, eval_program};
    #[pymodule_export]
    use crate::jit::{PyCompiled, PyExecutable, PyLowered, PyTraced, clear_caches, jit, live_executables};
    #[pymodule_export]
    use crate::placement::PyDeviceMesh;
    #[pymodule_export]
    use crate::primitive::{PyPrimitive, primitive, primitives};
    #[pymodule_export]
    use crate::process::{effects_barrier, num_threads, set_num_threads};
    #[pymodule_export]
    use crate::processes::{Deadline, process_count, process_index, set_processes, wanted_cpus};
    #[pymodule_export]
    use crate::program::PyProgram;
    #[pymodule_export]
    use crate::reads::{note_read, read_mark, reading_forbidden, reads_outside};
    #[pymodule_export]
    use crate::source::exclude_source;
    #[pymodule_export]
    use crate::source::scopes::{scope_enter, scope_leave};
    #[pymodule_export]
    use crate::trace::{
        TraceTag, at_root, axis_size, eval_context, identities, is_manual, make_program, staging, trace_context,
        trace_of, traces, varying,
    };
    #[pymodule_export]
    use crate::transfer::{array_of_parts, constrain, device_put, reshard, resolved, use_mesh};
    #[pymodule_export]
    use crate::transforms::batching::vmap;
    #[pymodule_export]
    use crate::transforms::derivatives::{
        _linear_flatten, _linear_from_pickle, _linear_unflatten, PyLinear, jvp, linear_transpose, linearize,
    };
    #[pymodule_export]
    use crate::transforms::parts::shard_map;
    #[pymodule_export]
    use crate::transforms::rules::{checkpoint, custom_jvp_call, custom_vjp_call};
    #[pymodule_export]
    use crate::transport::{MpiTransfer, MpiTransport};
    #[pymodule_export]
    use crate::tree::PyTreeDef;
    #[pymodule_export]
    use crate::tree::functions::{
        flatten_one_level, flatten_one_level_with_keys, tree_flatten, tree_flatten_with_path, tree_leaves, tree_map,
        tree_structure, tree_unflatten, treedef_is_leaf, treedef_tuple,
    };
    #[pymodule_export]
    use crate::tree::keys::{DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey};
    #[pymodule_export]
    use crate::tree::registry::{is_tree_node, register_dataclass, register_pytree_node};
    #[pymodule_export]
    use crate::watch::Watch;
    #[pymodule_export]
    use crate::whose::called_by_user;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(m: &Bound<PyModule>) -> PyResult<()> {
        crate::install();
        crate::hooks::keep(m);
        crate::process::install(m)?;
        m.add("__version__", env!("CARGO_PKG_VERSION"))?;
        m.add("PjitFunction", crate::jit::vectorcall::class_object(m.py())?)?;
        // older and shorter names of the classes
        m.add("Program", m.getattr("ClosedJaxpr")?)?;
        let linear = m.getattr("Linear")?;
        register_pytree_node(
            m.py(),
            &linear,
            m.getattr("_linear_flatten")?.unbind(),
            m.getattr("_linear_unflatten")?.unbind(),
            None,
        )
    }
}

/// Installs the functions that evaluate, wait, and decide which captured arrays are literals. Idempotent.
fn install() {
    ferrax::eval::init();
    ferrax::key_reuse::install(|| config::flags().key_reuse());
    ferrax_ir::cx::install_to_lit(array::value::to_lit);
    ferrax_ir::checks::install(ferrax_ir::checks::HostChecks {
        leaks: || config::flags().check_leaks(),
        programs: || config::flags().enable_checks(),
        collect: device::collect,
        holders: holders::holders,
    });
    ferrax_ir::settings::install(ferrax_ir::settings::HostSettings {
        without_ones: || config::flags().without_ones(),
        casts_by_hand: || config::flags().casts_by_hand(),
    });
    array::value::IS_NODE.get_or_init(|| tree::registry::is_node);
    source::install();
    returned::install();
}

/// Calls, traces and results are many small objects, and the system's allocator caches few of one size. Measured: 18 % of a call with
/// 40 results (benches/dispatch).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
