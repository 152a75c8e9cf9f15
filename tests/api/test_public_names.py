"""Every name that a public module lists is there, and what its functions return has a type."""

import ast
import asyncio
import collections
import importlib
import inspect
import pathlib
import pkgutil
import subprocess
import sys
import typing

import pytest


def public_modules(package):
    yield package.__name__
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not any(part.startswith("_") for part in module.name.split(".")):
            yield module.name


@pytest.mark.ours
def test_listed_names_can_be_read(jax):
    for name in public_modules(jax):
        module = importlib.import_module(name)
        for listed in {*dir(module), *getattr(module, "__all__", ())}:
            assert hasattr(module, listed), f"{name}.{listed}"


@pytest.mark.ours
def test_an_absent_name_is_an_attribute_error(jax):
    for name in public_modules(jax):
        assert not hasattr(importlib.import_module(name), "no_such_name"), name


# Each module alone in a process, so that nothing is loaded yet.
WHOLE = """
import importlib, sys
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    there = vars(module)
    print(*(f"{name}.{n}" for n in dir(module) if n not in there and hasattr(module, n)), end="")
    assert vars(module) is there
"""


@pytest.mark.ours
def test_the_dictionary_of_a_module_is_whole(jax):
    names = list(public_modules(jax))
    for some in ([n] for n in ("ferrax", "ferrax.numpy", "ferrax.lax", "ferrax.numpy.linalg", "ferrax.scipy", "ferrax.scipy.stats")):
        done = subprocess.run([sys.executable, "-c", WHOLE, *some], capture_output=True, text=True, check=True)
        assert done.stdout == ""
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", WHOLE, *names], capture_output=True, text=True, check=True).stdout == ""


@pytest.mark.ours
def test_values_in_the_dictionaries_of_modules_equal_their_attributes(jax):
    for module in (jax.numpy.linalg, jax.lax, jax.scipy.stats):
        assert all(value is getattr(module, name) for name, value in vars(module).items() if not name.startswith("_"))


@pytest.mark.ours
def test_serialization_names_the_missing_package(jnp, monkeypatch):
    """Without TensorStore the modules can be imported; what needs it names it."""
    monkeypatch.setitem(sys.modules, "tensorstore", None)
    name = "ferrax.experimental.array_serialization.tensorstore_impl"
    for n in [n for n in sys.modules if n.startswith("ferrax.experimental.array_serialization")]:
        monkeypatch.delitem(sys.modules, n)
    module = importlib.import_module(name)
    with pytest.raises(ModuleNotFoundError, match="pip install tensorstore"):
        asyncio.run(module.async_serialize(jnp.ones(3), module.get_tensorstore_spec("/nowhere")))


# Results of type Any, by the reason.
ANY = {
    "a pytree with the structure of another": """
        custom_derivatives.custom_vjp_primal_tree_values custom_derivatives.zero_from_primal device_get device_put eval_shape
        experimental.multihost_utils.broadcast_one_to_all experimental.multihost_utils.global_array_to_host_local_array
        experimental.multihost_utils.host_local_array_to_global_array experimental.multihost_utils.process_allgather experimental.ode.odeint
        experimental.optimizers.unpack_optimizer_state experimental.pallas.empty_like export.symbolic_args_specs lax.precv lax.psend lax.reduce
        lax.reduce_window make_array_from_process_local_data reshard stages.Compiled.input_formats stages.Compiled.output_formats tree.broadcast tree.map
        tree.map_with_path tree.transpose tree.unflatten tree_util.PyTreeDef.from_iterable_tree tree_util.PyTreeDef.unflatten tree_util.PyTreeDef.walk
    """,
    "what the user's function returns, in a pytree of new leaves or as it is": """
        custom_batching.custom_vmap.__call__ experimental.custom_partitioning.custom_partitioning.__call__ experimental.io_callback
        export.Exported.call extend.core.CallPrimitive.bind extend.core.call_impl extend.linear_util.WrappedFun.call_wrapped pure_callback
        stages.Compiled.__call__ stages.Compiled.call stages.Wrapped.eval_shape
    """,
    "any value, which the caller gave": "extend.core.concrete_or_error interpreters.partial_eval.PartialVal.get_known",
    "an array, or as many arrays as the function or the primitive has results": """
        core.Primitive.abstract_eval core.Primitive.bind core.Primitive.bind_with_trace numpy.ufunc.__call__
    """,
    "a Python number, or lists of them as deep as the array has axes": "Array.item Array.tolist",
    "a class that typing has no name for before Python 3.13": "ffi.pycapsule",
    "a field of a dataclass, which is assigned to an attribute of any type": "tree.static",
}


def functions(module):
    """The functions and methods that a module makes public, with their names there. Those of the extension are in its stub."""
    for name in getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]:
        value = getattr(module, name)
        if not inspect.isclass(value):
            yield name, value
        elif value.__module__.startswith("ferrax"):
            for base in value.__mro__:
                for attribute, method in vars(base).items() if base.__module__.startswith("ferrax") else ():
                    if attribute == "__call__" or not attribute.startswith("_"):
                        yield f"{name}.{attribute}", next((getattr(method, a) for a in ("__func__", "fget", "func") if getattr(method, a, None)), method)


def results(function):
    """The annotations of its result: of its overloads, where there are any. None where there is no annotation."""
    return [f.__annotations__.get("return") for f in typing.get_overloads(function) or [function]]


def of_stub(stub):
    """Of each class of the extension's stub, the methods whose result is Any."""
    for holder in ast.parse(stub.read_text()).body:
        if isinstance(holder, ast.ClassDef):
            for f in holder.body:
                if isinstance(f, ast.FunctionDef) and (f.name == "__call__" or not f.name.startswith("_")) and ast.unparse(f.returns) == "Any":
                    yield holder.name, f.name


@pytest.mark.ours
def test_results_that_are_any_have_a_reason(jax):
    here = str(pathlib.Path(jax.__file__).parent)
    found, names = collections.defaultdict(set), collections.defaultdict(set)
    for name in public_modules(jax):
        module = importlib.import_module(name)
        if not name.startswith("ferrax.compat"):
            for public, f in functions(module):
                f = inspect.unwrap(f) if callable(f) else f
                if inspect.isfunction(f) and f.__code__.co_filename.startswith(here) and {*results(f)} & {"Any", "Any | None", typing.Any}:
                    found[f].add(f"{name}.{public}".removeprefix("ferrax."))
            for public in dir(module):
                value = getattr(module, public)
                if inspect.isclass(value) and getattr(jax._core, value.__name__, None) is value and not public.startswith("_"):
                    names[value.__name__].add(f"{name}.{public}".removeprefix("ferrax."))
    shortest = lambda several: min(several, key=lambda n: (len(n), n))
    without = {shortest(several) for several in found.values()}
    without |= {f"{shortest(names[holder])}.{f}" for holder, f in of_stub(pathlib.Path(here) / "_core.pyi") if holder in names}
    listed = [name for names in ANY.values() for name in names.split()]
    assert sorted(listed) == sorted(without)
