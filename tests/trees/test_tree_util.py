"""Pytrees: every container, key paths, registration, and errors that say where two trees part."""

import collections
import dataclasses
import functools
import importlib
import pickle
import typing

import hypothesis
import hypothesis.strategies as st
import pytest

Point = collections.namedtuple("Point", "x y")
leaves = st.integers() | st.text(max_size=2)
trees = st.recursive(
    leaves | st.none(),
    lambda sub: (
        st.lists(sub, max_size=3)
        | st.lists(sub, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=2), sub, max_size=3)
        | st.dictionaries(st.text(max_size=2), sub, max_size=3).map(collections.OrderedDict)
        | st.builds(Point, sub, sub)
    ),
    max_leaves=12,
)


@hypothesis.given(trees)
def test_unflatten_undoes_flatten(jax, tree):
    tu = jax.tree_util
    xs, treedef = tu.tree_flatten(tree)
    assert tu.tree_unflatten(treedef, xs) == tree
    assert treedef == tu.tree_structure(tree) and hash(treedef) == hash(tu.tree_structure(tree))
    assert treedef.num_leaves == len(xs) == len(tu.tree_leaves_with_path(tree))
    assert [x for _, x in tu.tree_flatten_with_path(tree)[0]] == xs


@hypothesis.given(trees)
def test_map_keeps_structure(jax, tree):
    tu = jax.tree_util
    doubled = tu.tree_map(lambda x: (x, x), tree)
    assert tu.tree_leaves(doubled, is_leaf=lambda x: isinstance(x, tuple) and len(x) == 2 and type(x) is tuple)[:1] or tu.tree_leaves(tree) == []
    assert tu.tree_map(lambda x: x, tree) == tree
    assert tu.tree_map(lambda x, y: x == y, tree, tree) == tu.tree_map(lambda x: True, tree)


@hypothesis.given(trees)
def test_paths_lead_to_their_leaves(jax, tree):
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        at = tree
        for key in path:
            at = getattr(at, key.name) if isinstance(key, jax.tree_util.GetAttrKey) else at[getattr(key, "key", getattr(key, "idx", None))]
        assert at is leaf or at == leaf


@pytest.mark.parametrize(
    "tree, text",
    [
        (1, "PyTreeDef(*)"),
        (None, "PyTreeDef(None)"),
        ((), "PyTreeDef(())"),
        ([], "PyTreeDef([])"),
        ({}, "PyTreeDef({})"),
        ((1,), "PyTreeDef((*,))"),
        ({"b": [2], "a": 1}, "PyTreeDef({'a': *, 'b': [*]})"),
        (Point(1, 2), "PyTreeDef(CustomNode(namedtuple[Point], [*, *]))"),
        (collections.OrderedDict(b=1, a=2), "PyTreeDef(CustomNode(OrderedDict[('b', 'a')], [*, *]))"),
        (collections.defaultdict(list, a=1), "PyTreeDef(CustomNode(defaultdict[(<class 'list'>, ('a',))], [*]))"),
    ],
)
def test_structures_print(jax, tree, text):
    assert str(jax.tree_util.tree_structure(tree)) == text


def test_key_paths(jax):
    tu = jax.tree_util
    path = (tu.DictKey("a"), tu.SequenceKey(1), tu.GetAttrKey("x"), tu.FlattenedIndexKey(2))
    assert tu.keystr(path) == "['a'][1].x[<flat index 2>]" and tu.keystr(path, simple=True, separator="/") == "a/1/x/2"
    assert [repr(k) for k in path] == ["DictKey(key='a')", "SequenceKey(idx=1)", "GetAttrKey(name='x')", "FlattenedIndexKey(key=2)"]
    assert tu.DictKey("a") == tu.DictKey("a") and hash(tu.DictKey("a")) == hash(tu.DictKey("a")) and tu.SequenceKey(1) != tu.SequenceKey(2)
    named = tu.tree_map_with_path(lambda p, x, y: (tu.keystr(p), x, y), {"a": [1]}, {"a": [(2,)]})
    assert named == {"a": [("['a'][0]", 1, (2,))]}
    cut = tu.tree_flatten_with_path([1, (2, {"a": 3})], is_leaf=lambda p, x: len(p) == 1, is_leaf_takes_path=True)[0]
    assert [x for _, x in cut] == [1, (2, {"a": 3})]


def test_reductions(jax):
    tu = jax.tree_util
    assert tu.tree_reduce(lambda a, b: a + b, [1, {"a": 2}], 10) == 13
    assert tu.tree_reduce_associative(lambda a, b: (a, b), [0, 1, 2, 3, 4]) == ((0, 1), (2, (3, 4)))
    assert tu.tree_reduce_associative(lambda a, b: a, [], identity=7) == 7
    assert tu.tree_all([True, {"a": 1}]) and not tu.tree_all([True, 0])
    assert tu.all_leaves([1, 2]) and not tu.all_leaves([1, (2,)]) and not tu.all_leaves([None])
    assert tu.tree_transpose(tu.tree_structure([0, 0]), tu.tree_structure((0, 0)), [(1, 2), (3, 4)]) == ([1, 3], [2, 4])
    assert tu.tree_broadcast({"a": 1, "b": 2}, {"a": (1, 2), "b": [3]}) == {"a": (1, 1), "b": [2]}


def test_structures_compose(jax):
    tu = jax.tree_util
    d = tu.tree_structure({"a": 1, "b": (2, 3)})
    assert (d.num_leaves, d.num_nodes) == (3, 5) and [str(c) for c in d.children()] == ["PyTreeDef(*)", "PyTreeDef((*, *))"]
    assert str(d.compose(tu.tree_structure([1]))) == "PyTreeDef({'a': [*], 'b': ([*], [*])})"
    assert str(tu.treedef_tuple([d, d])).count("{") == 2 and tu.treedef_children(d)[0] == tu.tree_structure(0)
    assert tu.treedef_is_leaf(tu.tree_structure(0)) and not tu.treedef_is_leaf(d)
    assert tu.flatten_one_level({"b": 1, "a": 2}) == ((2, 1), ("a", "b"))
    assert tu.flatten_one_level_with_keys({"a": 2})[0] == ((tu.DictKey("a"), 2),)
    assert tu.is_tree_node(tuple) and tu.is_tree_node(type(None)) and not tu.is_tree_node(int)


def test_registered_classes(jax):
    tu = jax.tree_util

    @tu.register_pytree_node_class
    class Pair:
        def __init__(self, a, tag):
            self.a, self.tag = a, tag

        def tree_flatten(self):
            return (self.a,), self.tag

        @classmethod
        def tree_unflatten(cls, tag, children):
            return cls(children[0], tag)

    @tu.register_pytree_with_keys_class
    class Keyed(Pair):
        def tree_flatten_with_keys(self):
            return ((tu.GetAttrKey("a"), self.a),), self.tag

    p = tu.tree_map(lambda x: x + 1, Pair(1, "t"))
    assert (p.a, p.tag) == (2, "t") and tu.tree_structure(Pair(1, "t")) != tu.tree_structure(Pair(1, "u"))
    assert tu.keystr(tu.tree_leaves_with_path(Pair(1, "t"))[0][0]) == "[<flat index 0>]"
    assert tu.keystr(tu.tree_leaves_with_path(Keyed(1, "t"))[0][0]) == ".a"
    out = jax.jit(lambda p: Pair(p.a * 2, p.tag))(Pair(1.5, "t"))
    assert float(out.a) == 3 and out.tag == "t"
    with pytest.raises(ValueError, match="Duplicate custom PyTreeDef type registration"):
        tu.register_pytree_node(Pair, lambda p: ((), None), lambda a, c: None)


def test_dataclasses(jax):
    tu = jax.tree_util

    @tu.register_dataclass
    @dataclasses.dataclass
    class State:
        params: typing.Any
        name: str = dataclasses.field(metadata={"static": True}, default="n")

    @functools.partial(tu.register_dataclass, data_fields=["a"], meta_fields=["b"])
    @dataclasses.dataclass
    class Old:
        a: int
        b: int

    @dataclasses.dataclass
    class Plain:
        a: int
        b: int

    assert tu.tree_flatten(State([1, 2]))[0] == [1, 2] and tu.keystr(tu.tree_leaves_with_path(State([1]))[0][0]) == ".params[0]"
    assert tu.tree_map(lambda x: x * 2, Old(3, 4)) == Old(6, 4)
    for fields, words in (
        (dict(data_fields=["a"], meta_fields=[]), "Missing fields: {'b'}"),
        (dict(data_fields=["a", "b"], meta_fields=["q"]), "Unexpected fields: {'q'}"),
        (dict(data_fields=["a"], meta_fields=["q"]), "Missing fields: {'b'}. .* Unexpected fields: {'q'}"),
    ):
        with pytest.raises(ValueError, match=words):
            tu.register_dataclass(Plain, **fields)
    with pytest.raises(TypeError, match="must both be specified"):
        tu.register_dataclass(Plain, ["a"])
    assert tu.register_dataclass(Plain, ["a"], [], drop_fields=["b"]) is Plain


def test_static_and_partial(jax):
    tu = jax.tree_util

    @tu.register_static
    class Setting:
        pass

    assert tu.tree_leaves([Setting(), 1]) == [1]
    p = tu.Partial(pow, 2, 3)
    assert tu.tree_leaves(p) == [2, 3] and p() == 8 and tu.Partial(tu.Partial(pow, 2), 5).args == (5,) and tu.Partial(tu.Partial(pow, 2), 5)() == 32
    assert int(jax.jit(lambda f, x: f(x))(tu.Partial(lambda a, x: a * x, 3), 4)) == 12


MISMATCHES = [
    ({"x": 1}, {"y": 1}, "different pytree metadata at key path\n    tree_map tree\n"),
    ((1, 2), (1,), "different lengths of tuple at key path\n    tree_map tree\n"),
    ([1], (1,), "different types at key path\n    tree_map tree\n"),
    ({"x": (1, 2)}, {"x": (1,)}, "different lengths of tuple at key path\n    tree_map tree['x']\n"),
    ({"x": 1}, 1, "has a subtree of type\n    <class 'dict'>\nbut at the same key path the full pytree has a subtree of different type\n    <class 'int'>."),
    (None, 1, "<class 'NoneType'>"),
]


@pytest.mark.parametrize("a, b, words", MISMATCHES, ids=range(len(MISMATCHES)))
def test_mismatches_are_located(jax, a, b, words):
    with pytest.raises(ValueError) as e:
        jax.tree_util.tree_map(lambda x, y: x, a, b)
    assert words in str(e.value)


def test_other_errors(jax):
    tu = jax.tree_util
    pair = tu.tree_structure((1, 2))
    for xs, words in (([1], "Too few leaves for PyTreeDef; expected 2, got 1"), ([1, 2, 3], "Too many leaves for PyTreeDef; expected 2")):
        with pytest.raises(ValueError, match=words):
            tu.tree_unflatten(pair, xs)
    with pytest.raises(ValueError, match="Comparator raised exception while sorting pytree dictionary keys"):
        tu.tree_leaves({1: 2, "a": 3})
    with pytest.raises(ValueError, match="can't tree-flatten type: <class 'int'>"):
        tu.flatten_one_level(1)
    with pytest.raises(TypeError, match="Must specify identity"):
        tu.tree_reduce_associative(lambda a, b: a, [])


def test_short_names_are_the_same_functions(jax):
    for name in ("all", "broadcast", "flatten", "leaves", "map", "reduce", "structure", "transpose", "unflatten"):
        assert callable(getattr(jax.tree, name))
    assert jax.tree.map(lambda x: x + 1, {"a": 1}) == {"a": 2} and jax.tree.leaves([1, (2,)]) == [1, 2]
    field = jax.tree.static(default=3)
    assert field.metadata["static"] and field.default == 3


def test_keys_of_different_classes_have_different_hashes(jax):
    tu = jax.tree_util
    keys = [tu.SequenceKey(1), tu.DictKey(1), tu.FlattenedIndexKey(1)]
    assert len({hash(k) for k in keys}) == len(set(keys)) == 3 and hash(tu.DictKey("a")) == hash(tu.DictKey("a"))


def test_unravelling_functions_of_like_trees_are_equal(jax, jnp):
    ravel = importlib.import_module(f"{jax.__name__}.flatten_util").ravel_pytree
    trees = [{"a": jnp.ones(2), "b": 2}, jnp.ones(3), [1, 2.0], {"a": [jnp.ones((2, 3)), jnp.zeros(1, "int32")]}]
    for tree in trees:
        (flat, f), (_, g) = ravel(tree), ravel(jax.tree.map(lambda x: x + 1, tree))
        assert f == g and hash(f) == hash(g) and not f != g
        traced = []
        for use in (lambda f, x: traced.append(1) or f(x),):
            run = jax.jit(use, static_argnums=0)
            assert str(run(f, flat)) == str(run(g, flat)) and len(traced) == 1
    functions = [ravel(tree)[1] for tree in (*trees, {"a": jnp.ones(3), "b": 2}, {"b": jnp.ones(2), "c": 2}, [1, 2], {"a": jnp.ones(2), "b": 2.0})]
    assert all(f != g for i, f in enumerate(functions) for g in functions[:i])


@pytest.mark.ours
def test_unravelling_functions_are_arguments_of_jit(jax, jnp):
    ravel = importlib.import_module(f"{jax.__name__}.flatten_util").ravel_pytree
    traced = []
    run = jax.jit(lambda f, x: traced.append(1) or f(x))
    for k in range(3):
        flat, f = ravel({"a": jnp.full(2, k), "b": ()})
        assert run(f, flat)["a"].tolist() == [k, k] and pickle.loads(pickle.dumps(f)) == f
    assert len(traced) == 1
    assert ravel(())[1] == ravel(())[1] and ravel(())[1](jnp.zeros(0)) == ()


def test_a_partial_function_inside_a_partial_is_one_function(jax):
    partial = jax.tree_util.Partial
    f = functools.partial(max, 1)
    p, q = partial(f, 2), partial(f, 2)
    assert p.func == f and f == p.func and p.func == q.func and hash(p.func) == hash(q.func)
    assert p.args == (2,) and p() == 2 and p.func.func is max and p.func.args == (1,) and p.func.keywords == {}
    assert jax.tree_util.tree_structure(p) == jax.tree_util.tree_structure(q) and jax.tree_util.tree_leaves(p) == [2]
    inner = partial(max, 3)
    assert partial(inner, 4).func == inner and partial(inner, 4).func.args == (3,)


def test_one_level_of_a_named_tuple_names_its_class(jax):
    registry = jax.tree_util.default_registry
    pair = collections.namedtuple("pair", "x y")
    children, data = registry.flatten_one_level(pair(1, [2]))
    assert list(children) == [1, [2]] and data is pair
    assert registry.flatten_one_level((1, 2)) == ((1, 2), None) and registry.flatten_one_level(3) is None
    assert registry.flatten_one_level(collections.OrderedDict(b=1, a=2)) == ([1, 2], ("b", "a"))


@pytest.mark.parametrize("data, meta", [(["a", "b"], ["b"]), (["a"], ["a", "b"]), (["a", "b"], ["a", "b"])])
def test_a_field_is_data_or_metadata(jax, data, meta):
    for kind in (dataclasses.make_dataclass("Both", ["a", "b"]), type("Both", (), {})):
        with pytest.raises(ValueError, match="data_fields and meta_fields must not overlap"):
            jax.tree_util.register_dataclass(kind, data_fields=data, meta_fields=meta)
