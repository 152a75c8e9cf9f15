"""What Python's face has and Rust's lacks, and the other way round, is what `crates/ferrax/tests/face/faces.txt` lists.

A name is in Rust's face if a public function or method of `crates/ferrax/src` has it, or one that `_OTHERWISE` gives for it. A new function in
one face changes the list: write it down (`FERRAX_BLESS=1`), or write the function.
"""

import inspect
import os
import re
from pathlib import Path

import ferrax
import ferrax.numpy as jnp
import pytest
from ferrax import lax, nn, random

_ROOT = Path(__file__).parent.parent / "crates/ferrax"
_FILES = ("tensor.rs", "tensor/*.rs", "transforms.rs", "transforms/*.rs", "random.rs", "random/*.rs", "nn.rs")

# Rust's name for what Python calls otherwise: methods, operators, macros.
_OTHERWISE = {
    "add": "+", "subtract": "-", "sub": "-", "multiply": "*", "mul": "*", "divide": "/", "div": "/", "true_divide": "/", "rem": "%", "fmod": "%",
    "negative": "-", "neg": "-", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "bitwise_not": "!", "invert": "!", "logical_and": "&",
    "logical_or": "|", "logical_xor": "^", "logical_not": "!", "left_shift": "<<", "shift_left": "<<", "right_shift": ">>",
    "shift_right_arithmetic": ">>", "bitwise_left_shift": "<<", "bitwise_right_shift": ">>", "bitwise_invert": "!", "positive": "clone",
    "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "max": "maximum",
    "min": "minimum", "amax": "max", "amin": "min", "power": "pow", "float_power": "pow", "integer_pow": "powi", "mod": "modulo", "remainder": "modulo",
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
}  # fmt: skip


def _rust_names():
    names = set("+ - * / % & | ^ ! << >> from clone at".split())
    for pattern in _FILES:
        for path in (_ROOT / "src").glob(pattern):
            text = path.read_text()
            names.update(re.findall(r"^\s*pub fn (\w+)", text, re.M))
            # rows of the macros that make families of methods
            for block in re.findall(r"^(?:unary|binary|reductions|running|initialisers)! \{\n(.*?)^\}", text, re.M | re.S):
                for row in block.splitlines():
                    names.update(w for w in re.findall(r"\b[a-z_][a-z_0-9]*\b", row.split('"')[0].split("|")[0]))
    return names


def _functions(module):
    found = {}
    for name in dir(module):
        f = getattr(module, name)
        if not name.startswith("_") and not name.endswith("_p") and callable(f) and not inspect.isclass(f) and not inspect.ismodule(f):
            found[name] = f
    return found


def _listing():
    rust = _rust_names()
    faces = {"lax": lax, "numpy": jnp, "nn": nn, "nn.initializers": nn.initializers, "random": random, "numpy.linalg": jnp.linalg, "ferrax": ferrax}
    lines, python = [], set()
    for face, module in faces.items():
        names = _functions(module)
        python |= set(names) | {_OTHERWISE[n] for n in names if n in _OTHERWISE}
        lacking = sorted(n for n in names if n not in rust and _OTHERWISE.get(n) not in rust)
        lines += [f"{face}: {len(names) - len(lacking)} of {len(names)} are in Rust too; these are not:"]
        lines += _wrapped(lacking)
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
def test_what_one_face_has_and_the_other_lacks_is_listed():
    path, now = _ROOT / "tests/face/faces.txt", _listing()
    if os.environ.get("FERRAX_BLESS"):
        path.write_text(now)
    assert path.read_text() == now
