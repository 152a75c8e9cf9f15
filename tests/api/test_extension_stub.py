"""The stub of the extension lists exactly the names of the extension and their parameters."""

import ast
import importlib
import inspect
import pathlib
import types

import pytest

TYPES = {"Flat", "Leaves", "_P", "_R"}  # names of types, which the stub makes for itself
KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "/",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "",
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.KEYWORD_ONLY: "k",
    inspect.Parameter.VAR_KEYWORD: "**",
}


def stub_parameters(node):
    """(kind, name, whether there is a default) of each parameter but `self`."""
    a = node.args
    defaults = [None] * (len(a.posonlyargs) + len(a.args) - len(a.defaults)) + list(a.defaults)
    plain = [("/", x) for x in a.posonlyargs] + [("", x) for x in a.args]
    found = [(kind, x.arg, d is not None) for (kind, x), d in zip(plain, defaults, strict=True)]
    found += [("*", a.vararg.arg, False)] if a.vararg else []
    found += [("k", x.arg, d is not None) for x, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)]
    found += [("**", a.kwarg.arg, False)] if a.kwarg else []
    return [p for p in found if p[1] not in ("self", "cls")]


def real_parameters(f):
    """The same of a function of the extension. What it takes and does not look at has a name with an underscore."""
    signature = inspect.signature(f).parameters.values()
    found = [(KINDS[p.kind], p.name, p.default is not p.empty) for p in signature]
    return [p for p in found if p[1] not in ("self", "cls") and not p[1].startswith("_")]


def is_property(node):
    return any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list)


def stub_members(node):
    """What the stub says of a class. Its operators are left to the checker of stubs."""
    members = {}
    for x in node.body:
        match x:
            case ast.FunctionDef(name=name) if not name.startswith("_") or name in ("__call__", "__new__"):
                members[name] = "attribute" if is_property(x) else stub_parameters(x)
            case ast.AnnAssign() if not x.target.id.startswith("_"):
                members[x.target.id] = "attribute"
    return members


def real_members(cls, stub):
    """What is on a class. What the Python package adds to it counts where the stub has it."""
    members = {}
    for name, x in vars(cls).items():
        added = isinstance(x, types.FunctionType | property)
        if (added and name not in stub) or (name.startswith("_") and name != "__call__"):
            continue
        methods = types.MethodDescriptorType | types.ClassMethodDescriptorType | types.WrapperDescriptorType | types.FunctionType | staticmethod
        members[name] = real_parameters(getattr(cls, name)) if isinstance(x, methods) else "attribute"
        if isinstance(x, types.FunctionType) and members[name][:1] and members[name][0][1] in ("a", "arr", "x"):
            members[name] = members[name][1:]  # a function of arrays, and this one is its first
    if "__new__" in vars(cls) and (made := real_parameters(cls)):
        members["__new__"] = made
    return members


@pytest.fixture
def core(jax):
    return importlib.import_module(f"{jax.__name__}._core")


@pytest.fixture
def stub(jax):
    body = ast.parse((pathlib.Path(inspect.getfile(jax)).parent / "_core.pyi").read_text()).body
    named = {x.name: x for x in body if isinstance(x, ast.ClassDef | ast.FunctionDef)}
    named |= {x.target.id: x for x in body if isinstance(x, ast.AnnAssign)}
    return named | {t.id: x for x in body if isinstance(x, ast.Assign) for t in x.targets if t.id not in TYPES}


@pytest.mark.ours
def test_stub_and_extension_have_the_same_names(core, stub):
    assert set(stub) == {n for n in dir(core) if not n.startswith("_")}


@pytest.mark.ours
def test_stub_and_extension_have_the_same_parameters(core, stub):
    functions = {n: x for n, x in stub.items() if isinstance(x, ast.FunctionDef)}
    assert len(functions) > 50
    assert {n: stub_parameters(x) for n, x in functions.items()} == {n: real_parameters(getattr(core, n)) for n in functions}


@pytest.mark.ours
def test_stub_and_extension_have_the_same_members(core, stub):
    classes = {n: x for n, x in stub.items() if isinstance(x, ast.ClassDef)}
    assert len(classes) > 20
    declared = {n: stub_members(node) for n, node in classes.items()}
    real = {n: real_members(getattr(core, n), declared[n]) for n in classes}
    # its methods are those of the object that it looks them up on
    real["PjitFunction"] |= real_members(type(core.jit(lambda: 0).lower.__self__), {})
    for name, members in declared.items():
        assert (name, members) == (name, real[name])


@pytest.mark.ours
def test_the_stub_has_all_that_users_find_on_arrays(core, stub):
    def names(node):
        return {x.name if isinstance(x, ast.FunctionDef) else x.target.id for x in node.body if isinstance(x, ast.FunctionDef | ast.AnnAssign)}

    unseen = {
        "_arrays",
        "_fully_replicated_shard",
        "_npy_value",
        "_origin_msg",
        "_value",
        "__reduce__",
        "__getattr__",
        "__setitem__",
        "__delitem__",
        "__new__",
        "__doc__",
        "__module__",
        "__repr__",
        "__str__",
        "__format__",
    }
    missing = {n for n in vars(core.Array) if n not in unseen and n not in vars(object)} - names(stub["Array"])
    assert missing == set()


@pytest.mark.ours
def test_another_name_of_a_class_is_that_class(core, stub):
    others = {n: x.value.id for n, x in stub.items() if isinstance(x, ast.Assign)}
    assert others and all(getattr(core, n) is getattr(core, of) for n, of in others.items())
