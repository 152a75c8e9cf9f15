"""Random keys that are consumed twice, found where `jax_debug_key_reuse` is on: programs that say so, and programs that do not."""

import re

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def following(jax):
    with jax.debug_key_reuse(True):
        yield


def twice(jax, r, key):
    return r.normal(key), r.normal(key)


def split_after_use(jax, r, key):
    r.normal(key)
    return r.split(key)


def use_after_split(jax, r, key):
    r.split(key)
    return r.normal(key)


def fold_in_before(jax, r, key):
    return r.fold_in(key, 1), r.fold_in(key, 2), r.normal(key)


def fold_in_after(jax, r, key):
    r.normal(key)
    return r.fold_in(key, 1)


def parts(jax, r, key):
    keys = r.split(key)
    return r.normal(keys[0]), r.normal(keys[1])


def one_part_twice(jax, r, key):
    keys = r.split(key)
    return r.normal(keys[0]), r.normal(keys[0])


def one_part_held(jax, r, key):
    part = r.split(key)[0]
    return r.normal(part), r.normal(part)


def part_then_all(jax, r, key):
    keys = r.split(key)
    r.normal(keys[0])
    return jax.vmap(r.normal)(keys)


def all_then_part(jax, r, key):
    keys = r.split(key)
    jax.vmap(r.normal)(keys)
    return r.normal(keys[0])


def unpacked(jax, r, key):
    a, b = r.split(key)
    return r.normal(a), r.normal(b)


def unpacked_twice(jax, r, key):
    a, b = r.split(key)
    return r.normal(a), r.normal(b), r.normal(a)


def the_rest(jax, r, key):
    keys = r.split(key, 4)
    r.normal(keys[0])
    return jax.vmap(r.normal)(keys[1:])


def overlapping(jax, r, key):
    keys = r.split(key, 4)
    r.normal(keys[0])
    return jax.vmap(r.normal)(keys[:2])


def batch_twice(jax, r, key):
    keys = r.split(key, 3)
    return jax.vmap(r.normal)(keys), jax.vmap(r.normal)(keys)


def one_for_all_lanes(jax, r, key):
    return jax.vmap(lambda x: x + r.normal(key))(np.arange(3.0))


def jitted_twice(jax, r, key):
    f = jax.jit(lambda key: r.normal(key))
    f(key)
    return f(key)


def jitted_then_split(jax, r, key):
    jax.jit(lambda key: r.normal(key))(key)
    return jax.jit(lambda key: r.split(key))(key)


def unused(jax, r, key):
    jax.jit(lambda key: 1.0)(key)
    return r.normal(key)


def handed_on(jax, r, key):
    key, _ = jax.jit(lambda key: (key, r.normal(key)))(key)
    return r.normal(key)


def made_and_used_inside(jax, r, key):
    key, _ = jax.jit(lambda: (lambda key: (key, r.normal(key)))(r.key(0)))()
    return r.normal(key)


def scan_of_one(jax, r, key):
    return jax.lax.scan(lambda c, _: (c, r.normal(key)), 0, None, length=3)


def scan_carries_one(jax, r, key):
    return jax.lax.scan(lambda c, _: (c, r.normal(c)), key, None, length=3)


def scan_splits(jax, r, key):
    def body(c, _):
        c, part = r.split(c)
        return c, r.normal(part)

    return jax.lax.scan(body, key, None, length=3)


def scan_over_keys(jax, r, key):
    return jax.lax.scan(lambda c, k: (c, r.normal(k)), 0, r.split(key, 3))


def scan_then_part(jax, r, key):
    keys = r.split(key, 3)
    jax.lax.scan(lambda c, k: (c, r.normal(k)), 0, keys)
    return r.normal(keys[0])


def while_of_one(jax, r, key):
    return jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + r.normal(key)), (0, 0.0))


def while_carries_one(jax, r, key):
    return jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + r.normal(s[2]), s[2]), (0, 0.0, key))


def while_splits(jax, r, key):
    def body(s):
        i, x, key = s
        key, part = r.split(key)
        return i + 1, x + r.normal(part), key

    return jax.lax.while_loop(lambda s: s[0] < 3, body, (0, 0.0, key))


def while_asks_one(jax, r, key):
    return jax.lax.while_loop(lambda s: r.uniform(key) < s, lambda s: s - 1, 3.0)


def while_asks_what_it_carries(jax, r, key):
    return jax.lax.while_loop(lambda s: r.uniform(s[1]) < s[0], lambda s: (s[0] - 1, s[1]), (3.0, key))


def fori_folds(jax, r, key):
    return jax.lax.fori_loop(0, 3, lambda i, s: s + r.normal(r.fold_in(key, i)), 0.0)


def map_of_one(jax, r, key):
    return jax.lax.map(lambda i: r.normal(key), np.arange(3))


def either(jax, r, key):
    return jax.lax.cond(True, r.normal, r.uniform, key)


def either_then(jax, r, key):
    jax.lax.cond(False, r.normal, lambda key: 1.0, key)
    return r.normal(key)


def before_either(jax, r, key):
    r.normal(key)
    return jax.lax.cond(True, r.normal, r.uniform, key)


def neither(jax, r, key):
    jax.lax.switch(1, [lambda key: 1.0, lambda key: 2.0], key)
    return r.normal(key)


def by_a_gradient(jax, r, key):
    jax.grad(lambda x: x * r.normal(key))(1.0)
    return r.normal(key)


def a_gradient(jax, r, key):
    return jax.grad(lambda x: x * r.normal(key))(1.0)


def cloned(jax, r, key):
    r.normal(key)
    return r.normal(r.clone(key))


def as_data(jax, r, key):
    r.normal(key)
    return r.key_data(key), r.normal(r.wrap_key_data(r.key_data(key)))


def of_words(jax, r, key):
    key = r.PRNGKey(0)
    return r.normal(key), r.normal(key)


def compared(jax, r, key):
    r.normal(key)
    return key == key


def shuffled_and_chosen(jax, r, key):
    return r.permutation(key, 3), r.choice(key, 3)


def bits_and_integers(jax, r, key):
    return r.bits(key), r.randint(key, (), 0, 3)


def both_of_one(jax, r, key):
    return jax.jit(lambda a, b: (r.normal(a), r.normal(b)))(key, key)


def reshaped(jax, r, key):
    return jax.vmap(jax.vmap(r.normal))(r.split(key, 4).reshape(2, 2))


def drawn_again(jax, r, key):
    return jax.grad(jax.checkpoint(lambda x, key: jax.numpy.sin(x * r.normal(key))))(1.0, key)


def shape_alone(jax, r, key):
    return jax.eval_shape(r.normal, key).shape, r.normal(key)


def off_then_on(jax, r, key):
    with jax.debug_key_reuse(False):
        r.normal(key)
    return r.normal(key)


def on_then_off(jax, r, key):
    r.normal(key)
    with jax.debug_key_reuse(False):
        return r.normal(key)


PREVIOUS, ALREADY = "Previously-consumed key passed to ", r"In .*, argument \d is already consumed."
SCAN, WHILE = "scan body function leads to key reuse when repeatedly executed", "while_loop {} function leads to key reuse when repeatedly executed"
SOUND = [
    fold_in_before, fold_in_after, parts, unpacked, the_rest, one_for_all_lanes, unused, scan_splits, scan_over_keys, while_splits, fori_folds, either,
    neither, a_gradient, cloned, as_data, of_words, compared, reshaped, drawn_again, shape_alone, off_then_on, on_then_off,
]  # fmt: skip
FAULTY = {
    twice: PREVIOUS, split_after_use: PREVIOUS + "random_split at index 0", use_after_split: PREVIOUS, one_part_twice: PREVIOUS + "slice at index 0",
    one_part_held: PREVIOUS, part_then_all: PREVIOUS, all_then_part: PREVIOUS + "slice at index 0", unpacked_twice: PREVIOUS,
    overlapping: PREVIOUS + "slice at index 0", batch_twice: PREVIOUS, jitted_twice: PREVIOUS + "jit-compiled function at index 0",
    jitted_then_split: PREVIOUS + "jit-compiled function at index 0", handed_on: PREVIOUS, made_and_used_inside: PREVIOUS, scan_of_one: SCAN,
    scan_carries_one: SCAN, scan_then_part: PREVIOUS + "slice at index 0", while_of_one: WHILE.format("body"), while_carries_one: WHILE.format("body"),
    while_asks_one: WHILE.format("cond"), while_asks_what_it_carries: WHILE.format("cond"), map_of_one: SCAN, either_then: PREVIOUS,
    before_either: PREVIOUS + "cond at index 1", by_a_gradient: PREVIOUS, shuffled_and_chosen: PREVIOUS, bits_and_integers: PREVIOUS,
}  # fmt: skip
# flags are read when a program is traced or runs
STAGED = [f for f in (*SOUND, *FAULTY) if f not in (off_then_on, on_then_off, shape_alone)]


@pytest.mark.parametrize("program", SOUND)
def test_sound_programs(jax, program):
    program(jax, jax.random, jax.random.key(0))


@pytest.mark.parametrize("program", FAULTY)
def test_faulty_programs(jax, program):
    with pytest.raises(jax.errors.KeyReuseError) as e:
        program(jax, jax.random, jax.random.key(0))
    assert re.match(FAULTY[program], str(e.value)), str(e.value)


@pytest.mark.parametrize("program", STAGED)
def test_programs_under_jit(jax, program):
    f = jax.jit(lambda key: program(jax, jax.random, key))
    if program in SOUND:
        f(jax.random.key(0))
        return
    with pytest.raises(jax.errors.KeyReuseError, match=f"{ALREADY}|{SCAN}|{WHILE.format('(body|cond)')}"):
        f(jax.random.key(0))


def test_a_refused_call_consumes_nothing(jax):
    r = jax.random
    a, b = r.key(0), r.key(1)
    r.normal(a)
    both = jax.jit(lambda b, a: (r.normal(b), r.normal(a)))
    for _ in range(2):
        with pytest.raises(jax.errors.KeyReuseError, match="jit-compiled function at index 1"):
            both(b, a)
    both(b, r.key(2))


def test_records_of_freed_keys_are_removed(jax):
    r = jax.random
    for i in range(500):
        key = r.key(i)
        r.normal(key)
        with pytest.raises(jax.errors.KeyReuseError):
            r.bits(key)


def test_off_by_default(child):
    assert child("key = jax.random.key(0); print((jax.random.normal(key) == jax.random.normal(key)).item(), jax.config.jax_debug_key_reuse)").split() == [
        "True",
        "False",
    ]


@pytest.mark.ours
def test_one_key_for_two_arguments(jax):
    # which the other finds under jit alone
    for f in (lambda key: both_of_one(jax, jax.random, key), jax.jit(lambda key: both_of_one(jax, jax.random, key))):
        with pytest.raises(jax.errors.KeyReuseError):
            f(jax.random.key(0))


@pytest.mark.ours
def test_more_than_the_other_knows(jax):
    # which refuses carries that change places, though none is used twice in two turns
    r = jax.random
    a, b = r.split(r.key(0))
    swap = lambda n: jax.lax.scan(lambda c, _: ((c[1], c[0]), r.normal(c[0])), (a, b), None, length=n)
    with pytest.raises(jax.errors.KeyReuseError):
        swap(3)
    swap(2)


@pytest.mark.parametrize("name", ["poisson", "binomial", "multinomial", "gamma", "permutation", "dirichlet", "ball", "orthogonal", "loggamma", "wald", "t"])
def test_every_draw_consumes_its_key_once(jax, name):
    r, ones = jax.random, np.ones(3, np.float32)
    arguments = {
        "poisson": (3.0, (2,)), "binomial": (5, 0.3), "multinomial": (5, ones / 3), "gamma": (2.0,), "permutation": (5,), "dirichlet": (ones,), "ball": (3,),
        "orthogonal": (3,), "loggamma": (2.0,), "wald": (1.0,), "t": (3.0,),
    }[name]  # fmt: skip
    draw = lambda key: getattr(r, name)(key, *arguments)
    for f in (draw, jax.jit(draw)):
        key = r.key(0)
        f(key)
        with pytest.raises(jax.errors.KeyReuseError):
            f(key)


TRACES = {
    "trace": lambda jax, f, key: jax.jit(f).trace(key),
    "lower": lambda jax, f, key: jax.jit(f).lower(key),
    "make_jaxpr": lambda jax, f, key: jax.make_jaxpr(f)(key),
    "make_jaxpr of a jitted function": lambda jax, f, key: jax.make_jaxpr(jax.jit(f))(key),
    "eval_shape": lambda jax, f, key: jax.eval_shape(f, key),
    "lower of a checkpoint": lambda jax, f, key: jax.jit(jax.checkpoint(lambda key: jax.tree.leaves(f(key)))).lower(key),
}


@pytest.mark.parametrize("program", [f for f in STAGED if f is not both_of_one])
@pytest.mark.parametrize("how", TRACES)
def test_programs_that_are_only_traced(jax, program, how):
    key = jax.eval_shape(lambda: jax.random.key(0))
    call = lambda: TRACES[how](jax, lambda key: program(jax, jax.random, key), key)
    if program in SOUND:
        call()
    else:
        with pytest.raises(jax.errors.KeyReuseError, match=f"{ALREADY}|{SCAN}|{WHILE.format('(body|cond)')}"):
            call()
    with jax.debug_key_reuse(False):
        call()


def test_a_trace_that_was_kept_is_looked_at(jax):
    f = jax.jit(lambda key: twice(jax, jax.random, key))
    key = jax.eval_shape(lambda: jax.random.key(0))
    with jax.debug_key_reuse(False):
        f.lower(key)
    with pytest.raises(jax.errors.KeyReuseError, match=ALREADY):
        f.lower(key)


def test_arguments_consumed_before_may_be_traced(jax):
    key = jax.random.key(0)
    jax.random.normal(key)
    jax.jit(jax.random.normal).lower(key)
    jax.make_jaxpr(jax.random.normal)(key)
