"""The differences between the Python API and the Rust API are listed in `crates/ferrax/tests/api/apis.txt`.

A name is in the Rust API if a public function or method of `crates/ferrax/src` has it, or one that `_OTHERWISE` gives for it. A new function in
one API changes the list: write it down (`FERRAX_BLESS=1`), or write the function.
"""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import ferrax
import ferrax.numpy as jnp
import pytest
from ferrax import lax, nn, ops, random

_ROOT = Path(__file__).parents[2] / "crates/ferrax"
_FILES = (
    "tensor.rs",
    "tensor/*.rs",
    "tensor/*/*.rs",
    "transforms.rs",
    "transforms/*.rs",
    "random.rs",
    "random/*.rs",
    "nn.rs",
    "tree.rs",
    "special.rs",
    "device.rs",
    "least_squares.rs",
    "dlpack.rs",
)

# Rust's name for what Python calls otherwise: methods, operators, macros.
_OTHERWISE = {
    "add": "+", "subtract": "-", "sub": "-", "multiply": "*", "mul": "*", "divide": "/", "div": "/", "true_divide": "/", "rem": "%", "fmod": "%",
    "negative": "-", "neg": "-", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "bitwise_not": "!", "invert": "!", "logical_and": "&",
    "logical_or": "|", "logical_xor": "^", "logical_not": "!", "left_shift": "<<", "shift_left": "<<", "right_shift": ">>",
    "shift_right_arithmetic": ">>", "bitwise_left_shift": "<<", "bitwise_right_shift": ">>", "bitwise_invert": "!", "positive": "clone",
    "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "max": "maximum",
    "min": "minimum", "amax": "max", "amin": "min", "power": "pow", "integer_pow": "powi", "mod": "modulo", "remainder": "modulo",
    "floor_divide": "floor_div", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh",
    "arccosh": "acosh", "arctanh": "atanh", "absolute": "abs", "fabs": "abs", "conjugate": "conj", "isfinite": "is_finite", "isnan": "is_nan",
    "isinf": "is_inf", "clz": "leading_zeros", "bitwise_count": "population_count", "where": "where_", "select_n": "where_", "select": "where_",
    "clamp": "clip", "array": "from", "asarray": "from", "transpose": "permute", "permute_dims": "permute", "matrix_transpose": "t",
    "swapaxes": "swap_axes", "moveaxis": "move_axis", "concat": "concatenate", "ravel": "flatten", "rev": "flip", "convert_element_type": "astype",
    "bitcast_convert_type": "bitcast", "dynamic_update_slice": "dynamic_update", "gather": "slice", "scatter": "at", "reduce_sum": "sum",
    "reduce_prod": "prod", "reduce_max": "max", "reduce_min": "min", "reduce_and": "all", "reduce_or": "any", "logsumexp": "log_sum_exp",
    "conv_general_dilated": "conv", "conv_with_general_padding": "conv", "broadcast_in_dim": "broadcast_to", "broadcasted_iota": "iota",
    "identity": "eye", "dot": "matmul", "PRNGKey": "key", "fori_loop": "fori_loop", "gelu": "gelu", "full_like": "full_like", "swish": "silu",
    "hard_swish": "hard_silu", "cumulative_sum": "cumsum", "cumulative_prod": "cumprod", "stop_gradient": "stop_gradient", "inner": "dot",
    "vecdot": "dot", "argsort": "argsort", "sort_key_val": "sort_with", "tanh": "tanh", "acos": "acos", "zeros": "zeros", "empty": "zeros",
    "empty_like": "zeros_like", "exp2": "exp2", "real": "real", "fft": "fft", "copy_p": "copy", "slice_in_dim": "slice", "index_in_dim": "slice",
    "scatter_add": "at", "scatter_sub": "at", "scatter_mul": "at", "scatter_min": "at", "scatter_max": "at", "scatter_apply": "at", "index_take": "slice",
    "broadcast": "broadcast_to", "broadcast_like": "broadcast_to", "broadcast_to_rank": "reshape", "collapse": "reshape", "zeros_like_array": "zeros_like",
    "batch_matmul": "matmul", "mulhi": "mul_hi", "conv_general_dilated_patches": "conv_patches", "divmod": "div_mod", "around": "round", "rint": "round",
    "isclose": "is_close", "allclose": "all_close", "isposinf": "is_pos_inf", "isneginf": "is_neg_inf", "isin": "is_in", "radians": "deg2rad",
    "degrees": "rad2deg", "polyval": "val", "polyadd": "add", "polysub": "sub", "polymul": "mul", "polyder": "der", "polydiv": "div", "poly": "from_roots", "polyint": "int", "polyfit": "fit",
    "fliplr": "flip", "flipud": "flip", "flatnonzero": "nonzero", "argwhere": "nonzero", "compress": "extract", "unique_values": "unique",
    "svdvals": "singular_values", "vector_norm": "norm", "ndim": "rank", "size": "size", "array_equiv": "array_equal",
    "constant": "full", "xavier_uniform": "glorot_uniform", "xavier_normal": "glorot_normal", "kaiming_uniform": "he_uniform", "kaiming_normal": "he_normal",
    "resize": "reshape", "rollaxis": "move_axis", "put": "at", "place": "at", "put_along_axis": "at",
    "fill_diagonal": "at", "mask_indices": "nonzero", "diag_indices": "arange", "diag_indices_from": "arange",
    "diagflat": "diag", "tril_indices_from": "tril_indices", "triu_indices_from": "triu_indices",
    "tree_map": "map", "tree_multimap": "zip", "tree_leaves": "leaves", "tree_flatten": "leaves", "tree_unflatten": "rebuild", "tree_reduce": "leaves",
    "tree_all": "leaves", "tree_structure": "outline", "remat": "checkpoint", "jacobian": "jacrev", "typeof": "aval", "block_until_ready": "ready",
    "numpy_dtype": "dtype", "normalize": "standardize", "tree_transpose": "zip_all", "from_dlpack": "import",
    "conv_general_dilated_local": "conv_local", "fft2": "fftn", "ifft2": "ifftn", "rfft2": "rfftn", "irfft2": "irfftn", "index_update": "at",
    "index_add": "at", "index_mul": "at", "index_min": "at", "index_max": "at",
    "key_dtype": "dtype", "devices": "device", "device_get": "to_vec",
    "copy_to_host_async": "is_ready", "freeze": "clone", "custom_gradient": "custom_vjp", "fwd_and_bwd": "vjp", "rng_uniform": "uniform",
}  # fmt: skip

# What there is no use for in Rust, and why.
_WITHOUT_USE = {
    "a tensor is shown by `Display` and `Debug`": "array_repr array_str printoptions get_printoptions set_printoptions print_environment_info",
    "elements come from `Vec`s and slices, files by `weights` and `export`": "load save savez frombuffer fromfile fromfunction fromiter fromstring "
    "iterable",
    "dtypes are a Rust enum with methods": "can_cast issubdtype isdtype iscomplexobj isrealobj isscalar iscomplex isreal canonicalize_dtype is_complex "
    "result_type promote_types",
    "a closure is a function of arrays already; `vmap` maps it": "frompyfunc vectorize apply_along_axis apply_over_axes piecewise",
    "slices and `s![]` say it": "ix_ ds",
    "each of its cases is a function": "variance_scaling",
    "a key's dtype and kind are the crate's own, one for all": "key_impl",
    "devices have functions of their own, in `device`": "default_backend default_device device_count local_device_count local_devices live_arrays",
    "a tensor does not change, and a closure's state is its own": "empty_ref free_ref new_ref",
    "orders of effects and of messages between machines": "after_all create_token precv psend ragged_all_to_all",
    "shapes are known: a result's `shape()`, or `eval_shape`": "broadcast_shapes conv_dimension_numbers conv_general_permutations conv_general_shape_tuple "
    "conv_shape_tuple conv_transpose_shape_tuple padtype_to_pads reduce_window_shape_tuple shape_as_value DotDimensionNumbers "
    "get_scaled_dot_general_config einsum_path",
    "there is one configuration, and no interpreter to guard": "allow_f16_reductions array_garbage_collection_guard auto_pcast check_tracer_leaks "
    "checking_leaks clear_caches closure_convert debug_infs debug_key_reuse debug_nans default_matmul_precision default_prng_impl disable_jit disable_x64 "
    "enable_checks enable_custom_prng enable_x64 explain_cache_misses legacy_prng_key log_compiles make_user_context no_execution no_tracing num_threads set_num_threads "
    "numpy_dtype_promotion numpy_rank_promotion softmax_custom_jvp strict_bounds thread_guard threefry_partitionable transfer_guard "
    "transfer_guard_device_to_device transfer_guard_device_to_host transfer_guard_host_to_device named_call ensure_compile_time_eval",
    "one process, arrays whole on one device": "host_count host_id host_ids process_count process_index process_indices make_array_from_callback "
    "make_array_from_process_local_data make_array_from_single_device_arrays make_mesh remove_size_one_mesh_axis_from_type reshard set_mesh shard_map smap "
    "no_sharding with_sharding_constraint pcast platform_dependent composite",
}  # fmt: skip


def _rust_names():
    names = set("+ - * / % & | ^ ! << >> from clone at".split())
    for pattern in _FILES:
        for path in (_ROOT / "src").glob(pattern):
            text = path.read_text()
            names.update(re.findall(r"^\s*pub fn (\w+)", text, re.M))
            if path.name == "tree.rs":
                names.update(re.findall(r"^    fn (\w+)\(", text, re.M))
            # rows of the macros that make families of methods
            names.update(_rows(text))
    return names


def _rows(text):
    """The names in the rows of the macros that make families of methods."""
    blocks = re.findall(r"^(?:unary|binary|reductions|running|initialisers|segments)! \{\n(.*?)^\}", text, re.M | re.S)
    rows = [row for block in blocks for row in block.splitlines() if '"' in row]
    return {w for row in rows for w in re.findall(r"\b[a-z_][a-z_0-9]*\b", row.split('"')[0].split("|")[0])}


# Told where they are made, or for the extension module's use alone.
_WITHOUT_EXAMPLE = set("UNARY BINARY OTHERWISE found_gpus platform_devices set_platforms first_device MakeVjp".split())


def _internal():
    """Modules whose public names are not the users': hidden ones, and private ones that the crate's root takes nothing of."""
    root = (_ROOT / "src/lib.rs").read_text()
    private = re.findall(r"^mod (\w+);", root, re.M)
    unused = [m for m in private if not re.search(rf"\b{m}::", root)]
    return *re.findall(r"#\[doc\(hidden\)\]\npub mod (\w+);", root), *unused, "export/bytes", "export/file"


def test_every_public_name_occurs_in_a_tested_example():
    internal = _internal()
    public, examples = {}, [*re.findall(r"```rust\n(.*?)```", (_ROOT / "README.md").read_text(), re.S)]
    for path in sorted((_ROOT / "src").rglob("*.rs")):
        name = path.relative_to(_ROOT / "src").with_suffix("").as_posix()
        text = path.read_text().split("\n#[cfg(test)]")[0]
        doc = [line.strip()[3:] for line in text.splitlines() if line.strip().startswith(("///", "//!"))]
        examples += re.findall(r"^ ?```(?:no_run)?\n(.*?)^ ?```$", "\n".join(doc), re.M | re.S)
        if name in internal or name.split("/")[0] in internal:
            continue
        found = set(re.findall(r"^\s*pub (?:fn|struct|enum|trait|type|const|static) (\w+)", text, re.M))
        if name == "tree":
            found.update(re.findall(r"^    fn (\w+)\(", text, re.M))
        # a macro that writes an example for each row
        rows = set() if re.search(r"#\[doc = concat!\([^]]*```", text) else _rows(text)
        public.update(dict.fromkeys(found | rows, name))
    shown = set(re.findall(r"\w+", "\n".join(examples)))
    lacking = {n: file for n, file in public.items() if n not in shown and n not in _WITHOUT_EXAMPLE}
    assert not lacking, lacking
    assert not [n for n in _WITHOUT_EXAMPLE if n not in public or n in shown], "excused, and not without"


def _functions(module):
    found = {}
    for name in getattr(module, "__all__", None) or dir(module):
        f = getattr(module, name)
        if not name.startswith("_") and not name.endswith("_p") and callable(f) and not inspect.isclass(f) and not inspect.ismodule(f):
            found[name] = f
    return found


def _listing():
    rust = _rust_names()
    apis = {"lax": lax, "numpy": jnp, "nn": nn, "nn.initializers": nn.initializers, "random": random, "numpy.linalg": jnp.linalg}
    apis |= {"numpy.fft": jnp.fft, "ops": ops, "ferrax": ferrax}
    lines, python = [], set()
    without_use = {name for names in _WITHOUT_USE.values() for name in names.split()}
    for api, module in apis.items():
        names = _functions(module)
        python |= set(names) | {_OTHERWISE[n] for n in names if n in _OTHERWISE}
        lacking = sorted(n for n in names if n not in rust and _OTHERWISE.get(n) not in rust)
        useless = [n for n in lacking if n in without_use]
        lacking = [n for n in lacking if n not in without_use]
        there = len(names) - len(lacking) - len(useless)
        lines += [f"{api}: {there} of {len(names)} are in Rust too, {len(useless)} have no use there; these are not:"]
        lines += _wrapped(lacking)
    lines += ["Without use in Rust, and why:"]
    for why, names in _WITHOUT_USE.items():
        lines += [f"- {why}:", *_wrapped(sorted(n for n in names.split() if n in python))]
    own = sorted(n for n in rust - python if n.isidentifier())
    return "\n".join([*lines, "Rust alone (forms of functions, and what is not one in Python):", *_wrapped(own)]) + "\n"


def _wrapped(words, width=120):
    lines, line = [], " "
    for w in words:
        if len(line) + len(w) > width:
            lines.append(line)
            line = " "
        line += f" {w}"
    return [*lines, line] if line.strip() else lines


@pytest.mark.skipif(not _ROOT.exists(), reason="the sources of the crate are not here")
def test_differences_between_the_apis_are_listed():
    path, now = _ROOT / "tests/api/apis.txt", _listing()
    if os.environ.get("FERRAX_BLESS"):
        path.write_text(now)
    assert path.read_text() == now


@pytest.mark.ours
@pytest.mark.parametrize("name", ["golden", "programs"])
def test_the_bits_that_the_rust_api_must_give_are_those_of_python(name):
    """The file that the Rust tests read is what the script beside it prints now."""
    script = (_ROOT / "tests/api" / name).with_suffix(".py")
    made = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True, timeout=300).stdout
    known = set(script.with_suffix(".txt").read_text().splitlines())
    assert [line for line in made.splitlines() if line not in known] == []
