"""`extend.linear_util` and the helpers of `api_util` that describe functions: wrapped functions, stores, results that are remembered."""

import functools
import gc
import importlib
import warnings
import weakref

import pytest


@pytest.fixture
def module(jax):
    """A module of the library, by name."""
    return lambda name: importlib.import_module(f"{jax.__name__}.{name}")


@pytest.fixture
def lu(module):
    return module("extend.linear_util")


@pytest.fixture
def info(module):
    return lambda f, *args, **kwargs: module("api_util").debug_info("test", f, args, kwargs)


@pytest.fixture
def counted(lu, info):
    """`counted(f, k)`: f, and a store for the number of its arguments plus k."""

    @lu.transformation_with_aux2
    def counting(inner, store, k, *args):
        store.store(len(args) + k)
        return inner(*args)

    return lambda f, k, **options: counting(lu.wrap_init(f, debug_info=info(f, 1)), k, **options)


@pytest.fixture
def cached(lu):
    """A function that remembers results; the arguments that were computed; and what `explain` was called with."""
    calls, misses = [], []

    def call(fun, *args):
        calls.append(args)
        return fun.call_wrapped(*args)

    return lu.cache(call, explain=lambda fun, first, known, key, seconds: misses.append((fun.__name__, first, len(known), seconds >= 0))), calls, misses


def identity(x):
    return x


def test_transformations_are_decorators_of_generators(lu, info):
    def scaled(inner, k, *args):
        return k * inner(*args)

    def generator(k, *args):
        out = yield [a + k for a in args], {}
        yield -out

    def storing(k, *args):
        out = yield args, {}
        yield out, k

    f = lu.wrap_init(lambda x, y: x - y, debug_info=info(lambda x, y: x - y, 1, 2))
    assert lu.transformation2(scaled)(f, 10).call_wrapped(3, 1) == 20
    assert lu.transformation2(scaled, f, 10)().call_wrapped(3, 1) == 20
    assert lu.transformation(generator)(lu.wrap_init(identity, debug_info=info(identity, 1)), 5).call_wrapped(1) == -6
    g, stored = lu.transformation_with_aux(storing)(f, "k")
    assert (g.call_wrapped(3, 1), stored()) == (2, "k")


def test_functions_are_equal_if_all_but_their_stores_are(lu, info, counted):
    (a, _), (b, _), (c, _) = counted(identity, 5), counted(identity, 5), counted(identity, 6)
    assert a == b
    assert hash(a) == hash(b)
    assert a != c
    assert a != a.with_unknown_names()
    assert lu.wrap_init(identity, {"x": 1}, debug_info=info(identity, 1)) != lu.wrap_init(identity, {"x": 2}, debug_info=info(identity, 1))
    assert lu.wrap_init(identity, {"x": 4}, debug_info=info(identity, 1)).call_wrapped() == 4
    assert repr(a).splitlines()[1].split()[2] == "counting"
    assert a.__name__ == "identity"


def test_a_store_takes_one_value(lu, counted):
    f, stored = counted(identity, 5)
    with pytest.raises(lu.StoreException, match="empty"):
        stored()
    f.call_wrapped(1)
    with pytest.raises(lu.StoreException, match="occupied"):
        f.call_wrapped(1)
    assert stored() == 6


def test_an_equal_store_takes_equal_values(lu, counted):
    f, stored = counted(lambda *xs: xs, 0, use_eq_store=True)
    f.call_wrapped(1)
    f.call_wrapped(2)
    with pytest.raises(lu.StoreException, match="not-equal"):
        f.call_wrapped(1, 2)
    assert stored() == 1


def test_one_of_two_stores_is_read(lu, counted):
    (f, full), (_, empty), (g, also) = (counted(identity, k) for k in (1, 2, 3))
    f.call_wrapped(0)
    g.call_wrapped(0)
    assert lu.merge_linear_aux(full, empty) == (True, 2)
    assert lu.merge_linear_aux(empty, full) == (False, 2)
    with pytest.raises(lu.StoreException, match="both"):
        lu.merge_linear_aux(full, also)
    with pytest.raises(lu.StoreException, match="neither"):
        lu.merge_linear_aux(empty, empty)


def test_a_remembered_result_has_its_stored_value(cached, counted):
    remembered, calls, _ = cached
    for _ in range(3):
        f, stored = counted(identity, 5)
        assert (remembered(f, 1), stored()) == (1, 6)
    assert calls == [(1,)]
    f, stored = counted(identity, 7)
    assert (remembered(f, 1), stored()) == (1, 8)
    assert calls == [(1,), (1,)]


def test_misses_are_explained_under_the_setting(jax, cached, counted):
    remembered, _, misses = cached
    other = lambda x: x
    remembered(counted(identity, 5)[0], 1)
    assert misses == []
    with jax.explain_cache_misses(True):
        remembered(counted(identity, 5)[0], 1)
        assert misses == []
        remembered(counted(identity, 5)[0], 2)
        remembered(counted(other, 5)[0], 2)
    assert misses == [("identity", False, 1, True), ("<lambda>", True, 0, True)]


def test_results_are_stored_for_each_setting(jax, cached, counted):
    remembered, calls, _ = cached
    for x64 in (False, True, False):
        with jax.enable_x64(x64):
            remembered(counted(identity, 5)[0], 1)
    assert len(calls) == 2


@pytest.mark.parametrize("how", ["clear_caches", "cache_clear", "evict_function"])
def test_results_can_be_forgotten(jax, cached, counted, how):
    remembered, calls, _ = cached
    remembered(counted(identity, 5)[0], 1)
    {"clear_caches": jax.clear_caches, "cache_clear": remembered.cache_clear, "evict_function": lambda: remembered.evict_function(identity)}[how]()
    remembered(counted(identity, 5)[0], 1)
    assert len(calls) == 2


def test_a_cache_does_not_keep_functions(lu, info, cached):
    def f(x):
        return x

    there = weakref.ref(f)
    cached[0](lu.wrap_init(f, debug_info=info(f, 1)), 1)
    del f
    gc.collect()
    assert there() is None


def test_a_function_without_a_description_warns(lu):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        f = lu.wrap_init(identity)
    assert [w.category for w in seen] == [DeprecationWarning]
    assert f.debug_info.func_name == "<missing_debug_info>"
    assert f.debug_info.arg_names is None


def described(x, y=1, *rest, z=2, **named):
    return x


@pytest.mark.parametrize(
    ("f", "args", "kwargs", "static", "names"),
    [
        (described, (1, [2, {"a": 3}]), {"z": 4, "q": 5}, {}, ("x", "y[0]", "y[1]['a']", "named['q']", "z")),
        (described, (1, 2, 3, 4), {}, {}, ("x", "y", "rest[0]", "rest[1]")),
        (described, (1, 2), {"z": 1}, {"static_argnums": (-1,), "static_argnames": ("z",)}, ("x",)),
        (described, (), {}, {}, ()),
        (functools.partial(described, 1), (3,), {}, {}, ("y",)),
        (len, ([1, 2],), {}, {}, ("obj[0]", "obj[1]")),
        (int, (3,), {}, {}, ("args[0]",)),
    ],
)
def test_leaves_of_arguments_have_names(module, f, args, kwargs, static, names):
    assert module("api_util").debug_info("test", f, args, kwargs, **static).arg_names == names


def test_a_description_has_name_file_and_line(module):
    seen = module("api_util").debug_info("jit", described, (1,), {})
    assert (seen.traced_for, seen.func_name, seen.func_filename) == ("jit", "described", __file__)
    assert seen.func_lineno == described.__code__.co_firstlineno
    assert module("api_util").debug_info("jit", len, ([1],), {}).func_src_info == "len"
    assert module("api_util").debug_info("jit", int, (1,), {}).func_src_info == "<unknown>"


def test_functions_are_equal_if_their_fixed_arguments_are(module, lu, info):
    fixed = lambda *args: module("api_util").argnums_partial(lu.wrap_init(described, debug_info=info(described, 1)), 0, args)[0]
    assert fixed(1, 2) == fixed(1, 2)
    assert fixed(1, 2) != fixed(1, 2.0)
    assert fixed(1, 2) != fixed(1, 3)
    assert fixed(1, 2).call_wrapped(7) == 7
    with pytest.raises(ValueError, match="[Nn]on-hashable"):
        fixed(1, [2])
