"""What an editor shows: JAX's signatures, a line of help for every name, names of modules that are not imported yet, values that print as what they mean."""

import importlib
import inspect
import json
import pathlib
import pkgutil
import re
import subprocess
import sys
import types

import pytest

# Names whose parameters are others than JAX's, and why.
OTHERS = {
    # Made by the library alone: what they are made of is its own.
    **dict.fromkeys(
        ("Array", "numpy.ndarray", "Ref", "ref.Ref", "Shard", "core.Tracer", "core.ShapedArray", "interpreters.ad.JVPTracer", "ref.AbstractRef"),
        "made by the library",
    ),
    **dict.fromkeys((f"extend.core.{n}" for n in ("DropVar", "Jaxpr", "JaxprEqn", "Literal", "Token", "Var")), "made by the library"),
    **dict.fromkeys((f"stages.{n}" for n in ("Compiled", "Lowered", "Traced")), "made by the library"),
    **dict.fromkeys((f"api_util.{n}" for n in ("flatten_fun", "flatten_fun_nokwargs")), "internals: what libraries pass is taken"),
    "extend.core.set_current_trace": "internals: what libraries pass is taken",
    **dict.fromkeys(
        (f"interpreters.{n}" for n in ("partial_eval.PartialVal", "batching.broadcast", "mlir.register_lowering")), "internals: what libraries pass is taken"
    ),
    "experimental.ode.ravel_first_arg": "an internal of a module that lists no names",
    "experimental.checkify.Error": "made by the library",
    **dict.fromkeys(
        (f"errors.{n}" for n in ("NonConcreteBooleanIndexError", "TracerArrayConversionError", "TracerBoolConversionError", "TracerIntegerConversionError")),
        "their messages are longer where they get more arguments",
    ),
    "remat": "checkpoint itself, with its static_argnames",
    "checking_leaks": "check_tracer_leaks itself, whose value True is the default",
    "transfer_guard": "a setting like the others, whose value has to be given there too",
    "checkpoint": "concrete is None where it is not asked for",
    "distributed.initialize": "a process is taken for lost after 10 seconds without an answer, not 100",
    "experimental.pjit.pjit": "jit itself, which takes options by name",
    "experimental.shard_map.shard_map": "takes auto, as it did in earlier versions",
    "export.Exported": "made by the library",
    "lax.cond": "takes linear, as it did in earlier versions",
    "jit": "in_shardings and out_shardings are None where nothing is asked",
    "dtypes.iinfo": "the one of dtypes, which take the place of an int_type too",
    "lax.Precision": "an enumeration's constructor takes what any enumeration's does",
    "numpy.einsum": "_dot_general is None for the one there is",
    "numpy.set_printoptions": "numpy's own, which says what it takes",
    "numpy.take_along_axis": "wrap_negative_indices is True where nothing is asked, as it means",
    "numpy.ufunc": "made of the library's own functions",
    "tree.static": "refused with any argument",
}


def public_modules(library):
    folder = pathlib.Path(library.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        if not any(p.startswith("_") and p != "__init__" for p in parts) and parts[0] != "compat":
            yield ".".join(p for p in parts if p != "__init__")


def listed(module):
    """The public names of a module, with what they are; not what it imported for itself."""
    for name in sorted(getattr(module, "__all__", dir(module))):
        value = getattr(module, name)
        if not name.startswith("_") and not isinstance(value, types.ModuleType):
            yield name, value


def parameters(value):
    """Name, kind and default of each parameter; a default that is not a number, a text or the like only counts as given."""

    def default(p):
        plain = p.default is None or isinstance(p.default, bool | int | float | str | tuple)
        return "none" if p.default is p.empty else repr(p.default) if plain else "some object"

    return [(p.name, p.kind.name, default(p)) for p in inspect.signature(value).parameters.values()]


def differing(jax, oracle):
    for below in public_modules(jax):
        try:
            ours, theirs = (importlib.import_module(f"{lib.__name__}.{below}".rstrip(".")) for lib in (jax, oracle))
        except ImportError:
            continue
        for name, value in listed(ours):
            other = getattr(theirs, name, None)
            if not callable(value) or not callable(other):
                continue
            if value is jax.stages.Wrapped:  # each jitted function has a signature of its own, so the class shows none
                continue
            try:
                wanted = parameters(other)
                got = parameters(value)
            except ValueError:  # a class of exceptions, whose constructor says nothing
                continue
            if got != wanted:
                yield f"{below}.{name}".lstrip("."), got, wanted


@pytest.mark.filterwarnings("ignore")
def test_signatures_are_those_of_jax(jax, oracle):
    found = {name: (got, wanted) for name, got, wanted in differing(jax, oracle)}
    assert {name: both for name, both in found.items() if name not in OTHERS} == {}
    assert set(OTHERS) == set(found)


@pytest.mark.ours
def test_every_name_has_a_line_of_help(jax):
    without = []
    for below in public_modules(jax):
        module = importlib.import_module(f"{jax.__name__}.{below}".rstrip("."))
        for name, value in listed(module):
            if callable(value) and (getattr(value, "__module__", None) or "").startswith(jax.__name__) and not inspect.getdoc(value) and name != "Wrapped":
                without.append(f"{below}.{name}")
    assert without == []


@pytest.mark.ours
def test_defaults_and_values_print_in_readable_form(jax):
    address = re.compile(r"object at 0x")
    found = []
    for below in public_modules(jax):
        module = importlib.import_module(f"{jax.__name__}.{below}".rstrip("."))
        for name, value in listed(module):
            shown = [value]
            if callable(value) and not isinstance(value, type):
                try:
                    shown += [p.default for p in inspect.signature(value).parameters.values()]
                except (ValueError, TypeError):
                    pass
            found += [f"{below}.{name}: {x!r}" for x in shown if address.search(repr(x)) and not type(x).__module__.startswith("numpy")]
    assert found == []


@pytest.mark.ours
def test_flags_print_their_values(jax):
    assert repr(jax.debug_nans) == "<debug_nans: False>" and repr(jax.debug_nans(True)) == "debug_nans(True)"
    with jax.debug_nans(True), jax.default_matmul_precision("highest"):
        assert repr(jax.config) == "config(jax_debug_nans=True, jax_default_matmul_precision='highest')"


@pytest.mark.ours
def test_dir_shows_modules_before_they_are_imported(jax):
    code = "import json, ferrax, ferrax.scipy, ferrax.lax, ferrax.interpreters\nprint(json.dumps([dir(m) for m in (ferrax, ferrax.scipy, ferrax.lax, ferrax.interpreters)]))"
    top, scipy, lax, interpreters = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert {"numpy", "lax", "jit", "checkpoint", "shard_map", "NamedSharding", "__version__"} <= set(top)
    assert {m.name for m in pkgutil.iter_modules(jax.scipy.__path__) if not m.name.startswith("_")} == set(scipy)
    assert {"scan", "add_p", "scan_p", "scatter_add_p", "dot_general_p"} <= set(lax)
    assert set(interpreters) == {"ad", "batching", "mlir", "partial_eval", "pxla", "xla"}


@pytest.mark.ours
def test_calls_as_jax_takes_them(jax, jnp, lax, close):
    x = jnp.arange(4.0)
    close(lax.reduce_window(x, 0.0, lax.add, (2,)), [1.0, 3.0, 5.0])
    close(jnp.i0(x=x[1]), 1.266066)
    assert not jnp.isreal(x=1j) and jnp.iscomplex(x=1j) and jnp.trunc(x=1.5) == 1
    close(jnp.cov(x, None, True, False, None, None, None, jnp.float32), 5 / 3)
    with pytest.raises(ValueError, match=r"No input was provided to the clip function\."):
        jnp.clip(min=0)
    with pytest.raises(TypeError):
        lax.exp(x, None)
    with pytest.raises(TypeError):
        lax.pcast(x, to="varying")
    with pytest.raises(TypeError):
        jax.scipy.special.softmax(x, 0)
