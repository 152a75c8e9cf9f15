//! Hooks: the functions, classes and tables of the Python package that the extension uses, one
//! typed slot each.
//!
//! `python/ferrax/_base/hooks.py` registers a loader for every slot when the package is imported. A loader imports the module
//! that defines the function, class or table, and runs at the slot's first use. So `import ferrax` stays quick, and a
//! function that is renamed in Python is found by the type checker and by `tests/base/test_hooks.py`, which loads every slot.
//!
//! ```text
//! hooks::getitem(py)?.call1((array, index))      // ferrax.numpy._indexing.at.getitem, whatever module has it
//! hooks::lowerings(py)                           // None until the module that provides it has been imported
//! ```
//!
//! INVARIANT: no other file of this crate names a module of the package; `cargo xtask tidy` looks for it.
use crate::once::Once;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule, PyType};

/// The name of the package, and of its logger.
pub const PACKAGE: &str = "ferrax";

macro_rules! loaded {
    ($($(#[$doc:meta])* $name:ident: $T:ty;)*) => {
        $(
            $(#[$doc])*
            pub fn $name(py: Python<'_>) -> PyResult<&Bound<'_, $T>> {
                static VALUE: Once<Py<$T>> = Once::new();
                if let Some(known) = VALUE.get() {
                    return Ok(known.bind(py));
                }
                let value = load(py, stringify!($name))?.cast_into::<$T>()?;
                Ok(VALUE.get_or_init(py, || value.unbind()).bind(py))
            }
        )*
        const SLOTS: &[&str] = &[$(stringify!($name)),*];
        /// Loads every slot; raises the error of a loader, or one for a value of the wrong type.
        #[pyfunction]
        pub fn load_hooks(py: Python) -> PyResult<usize> {
            $($name(py)?;)*
            Ok(SLOTS.len())
        }
    };
}

loaded! {
    /// `getitem(array, index)`: indexing that is not static.
    getitem: PyAny;
    /// `holders(tracer)`: lines that say which objects hold a tracer, or None.
    holders: PyAny;
    /// The class of `array.at`.
    index_update_helper: PyType;
    /// `transfer(way, explicit, aval, device, given)`: refuses or reports a transfer, as the settings say.
    transfer: PyAny;
    /// `sliced(shape, index)`: checks an index of an array whose sizes are symbolic.
    symbolic_slice: PyAny;
    /// `ferrax.numpy`: the functions behind operators, by their names.
    numpy: PyModule;
    /// `ferrax.lax`: the classes of parameters, by their names.
    lax: PyModule;
    /// Rebuilds a key array from its words and the name of its implementation.
    unpickled_key: PyAny;
    /// `mesh_of_devices(axes, devices, label)`: a mesh with axes of these names and sizes, of the
    /// types in the label.
    mesh_of_devices: PyAny;
    /// `sharding_of_cuts(mesh, dims)`: the sharding that cuts each dimension along the mesh axes of these numbers.
    sharding_of_cuts: PyAny;
    /// `input_places(in_shardings, static, args, kwargs)`: a sharding or None for each leaf of the arguments that are not static.
    input_places: PyAny;
    /// `output_places(out_shardings, result)`: a sharding or None for each leaf of the result.
    output_places: PyAny;
    /// `shards(array, parts)`: the parts as `Shard` objects.
    shards: PyAny;
    /// `global_shards(array)`: the parts on the devices of all processes.
    global_shards: PyAny;
    /// `sharding_of_type(rank, label, dims)`: over the abstract mesh with this text, whose axes of
    /// these numbers cut the dimensions; without a label, the sharding of a type without cuts.
    sharding_of_type: PyAny;
    /// The class of a type's information about the axes of a shard_map.
    manual_axis_type: PyType;
    single_device_sharding: PyType;
    /// The scalar type of keys.
    prng_key: PyType;
    /// Warns that a requested dtype of 64 bits is replaced.
    narrowed: PyAny;
    /// `error_class(name)`: the exception class of the package with this name.
    error_class: PyAny;
    /// The differences between the structures of two calls, as lines.
    structure_changes: PyAny;
    tree_flatten_with_path: PyAny;
    keystr: PyAny;
    /// The names of the leaves among a function's arguments.
    argument_names: PyAny;
    check_compiler_options: PyAny;
    /// The tables of rules for primitives that are defined in Python.
    jvp_rules: PyDict;
    transpose_rules: PyDict;
    batching_rules: PyDict;
    axis_batching_rules: PyDict;
    /// The class of symbolic zeros that such rules are written with.
    symbolic_zero: PyType;
    undefined_primal: PyType;
    axis_data: PyType;
    shape_dtype_struct: PyType;
    arg_info: PyType;
    /// How the arguments of a compiled call differ from those it was lowered with, as text.
    argument_mismatches: PyAny;
    /// `call_jitted(jitted, error, args, kwargs)`: the call again, if mutable references made it fail; `(result,)` or None.
    call_jitted: PyAny;
    /// `stage_jitted(fun, options, what, error, args, kwargs)`: the stage again, if mutable references made it fail; or None.
    stage_jitted: PyAny;
    client_of: PyAny;
    /// `left(error, nested)`: an error that leaves a jitted function, without the frames of this library.
    left: PyAny;
    memories_of: PyAny;
    memory_of: PyAny;
}

macro_rules! provided {
    ($($(#[$doc:meta])* $name:ident: $T:ty;)*) => {
        mod values {
            use super::*;
            $(pub static $name: Once<Py<$T>> = Once::new();)*
        }
        $(
            $(#[$doc])*
            pub fn $name(py: Python<'_>) -> Option<&Bound<'_, $T>> {
                values::$name.get().map(|v| v.bind(py))
            }
        )*
        /// provide_hook(name, value): fills a slot that is empty until its module is imported.
        #[pyfunction]
        pub fn provide_hook(py: Python, name: &str, value: Bound<PyAny>) -> PyResult<()> {
            match name {
                $(stringify!($name) => {
                    let value = value.cast_into::<$T>()?;
                    values::$name.get_or_init(py, || value.unbind());
                    Ok(())
                })*
                _ => Err(PyTypeError::new_err(format!("the extension has no slot {name}"))),
            }
        }
    };
}

#[allow(non_upper_case_globals)] // the statics are named after their slots
mod late {
    use super::*;
    provided! {
        /// Lowerings of primitives that are defined in Python: primitive to function.
        lowerings: PyDict;
    }
}
pub use late::{lowerings, provide_hook};

static LOADERS: Once<Py<PyDict>> = Once::new();
static CORE: Once<Py<PyModule>> = Once::new();
static FOLDER: Once<String> = Once::new();

/// register_hooks(folder, loaders): the folder of the package, as the names of its files begin; a function without arguments for the name of
/// each slot.
#[pyfunction]
pub fn register_hooks(py: Python, folder: String, loaders: Bound<PyDict>) -> PyResult<()> {
    let given: Vec<String> = loaders.keys().extract()?;
    let missing: Vec<&str> = SLOTS.iter().filter(|s| !given.iter().any(|g| g == *s)).copied().collect();
    let unknown: Vec<&String> = given.iter().filter(|g| !SLOTS.contains(&g.as_str())).collect();
    if !missing.is_empty() || !unknown.is_empty() {
        return Err(PyTypeError::new_err(format!(
            "hooks without a loader: {missing:?}; loaders without a slot: {unknown:?}"
        )));
    }
    LOADERS.get_or_init(py, || loaders.unbind());
    FOLDER.get_or_init(py, || folder);
    Ok(())
}
/// The path of a file of the package below its folder; `None` for any other file, and before the package is imported.
pub fn inside(file: &str) -> Option<&str> {
    file.strip_prefix(FOLDER.get()?.as_str())?.strip_prefix(['/', '\\'])
}

fn load<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let loader = LOADERS.get().map(|l| l.bind(py).get_item(name)).transpose()?.flatten();
    loader.ok_or_else(|| PyRuntimeError::new_err(format!("{PACKAGE} is not imported yet: no hook {name}")))?.call0()
}

/// The extension module itself is kept, so that its own functions are found without an import.
pub fn keep(m: &Bound<PyModule>) {
    CORE.get_or_init(m.py(), || m.clone().unbind());
}
/// A function of the extension as a Python object.
pub fn own<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    match CORE.get() {
        Some(m) => m.bind(py).getattr(name),
        None => Err(PyRuntimeError::new_err("the extension is not initialised")),
    }
}
