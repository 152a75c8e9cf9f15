"""Keys of four words: `rbg` and `unsafe_rbg` give JAX's numbers, under `vmap` too, where all lanes draw from the first one's key."""

import importlib
import pickle

import numpy as np
import pytest

IMPLS = ["rbg", "unsafe_rbg"]
# The words of three keys, or of twice three.
WORDS = (np.arange(24, dtype=np.uint64) * 2654435761 % 2**32).astype(np.uint32).reshape(6, 4)


def data(jax, keys):
    return np.asarray(jax.random.key_data(keys))


# What JAX gives for key(7).
SPLIT = {
    "rbg": [[3625411723, 1954958720, 3625411723, 1954958720], [195045567, 4062205631, 195045567, 4062205631], [966301609, 1948237315, 966301609, 1948237315]],
    "unsafe_rbg": [
        [3109483441, 1367189518, 2515982561, 3310080778],
        [3848958661, 3271070264, 2639373597, 23941900],
        [284021501, 2052574751, 3806814422, 128699926],
    ],
}
FOLDED = {"rbg": [3583082021, 1947592014, 3583082021, 1947592014], "unsafe_rbg": [3810769997, 2355009018, 1837142617, 748193193]}
BITS = [3109483441, 1367189518, 2515982561, 3310080778, 2824504284, 1539383797, 1083735702]


@pytest.mark.parametrize("impl", IMPLS)
def test_numbers(jax, jnp, impl):
    R, key = jax.random, jax.random.key(7, impl=impl)
    assert data(jax, key).tolist() == [0, 7, 0, 7] and str(key.dtype) == f"key<{'u' * (impl != 'rbg')}rbg>" and key.dtype.itemsize == 16
    assert R.key_impl(key) == impl and R.key_dtype(impl) == key.dtype
    for draw in (lambda f: f(key), lambda f: jax.jit(f)(key)):
        assert draw(lambda k: R.key_data(R.split(k, 3))).tolist() == SPLIT[impl]
        assert draw(lambda k: R.key_data(R.fold_in(k, 5))).tolist() == FOLDED[impl]
        assert draw(lambda k: R.bits(k, (7,))).tolist() == BITS
        assert draw(lambda k: R.bits(k, (7,), "uint8")).tolist() == [b % 256 for b in BITS]
        assert draw(lambda k: R.bits(k, (0,))).shape == (0,)
    np.testing.assert_allclose(R.uniform(key, (5,)), [0.72398293, 0.3183236, 0.5857978, 0.7706882, 0.65763104], rtol=1e-7)
    assert data(jax, R.split(key, (2, 2)))[0].tolist() == SPLIT[impl][:2]


@pytest.mark.parametrize("impl", IMPLS)
def test_draws_under_vmap_are_one_draw_of_the_first_key(jax, jnp, impl):
    R = jax.random
    keys = R.wrap_key_data(jnp.asarray(WORDS[:3]), impl=impl)
    draw = lambda key: R.bits(key, (2, 5))
    whole = np.asarray(R.bits(keys[0], (3, 2, 5)))
    for f in (jax.vmap(draw), jax.jit(jax.vmap(draw))):
        np.testing.assert_array_equal(f(keys), whole)
    grid = R.wrap_key_data(jnp.asarray(WORDS.reshape(2, 3, 4)), impl=impl)
    np.testing.assert_array_equal(jax.vmap(jax.vmap(draw))(grid), R.bits(grid[0, 0], (2, 3, 2, 5)))
    np.testing.assert_array_equal(jax.vmap(jax.vmap(draw), in_axes=1)(grid), R.bits(grid[0, 0], (3, 2, 2, 5)))
    np.testing.assert_array_equal(jax.lax.map(draw, keys), np.stack([draw(key) for key in keys]))
    assert jax.vmap(draw)(keys[:0]).shape == (0, 2, 5)


def test_rbg_splits_and_folds_each_lane(jax, jnp):
    R = jax.random
    keys = R.wrap_key_data(jnp.asarray(WORDS[:3]), impl="rbg")
    for f in (lambda k: R.split(k, 3), lambda k: R.fold_in(k, 7)):
        np.testing.assert_array_equal(data(jax, jax.vmap(f)(keys)), np.stack([data(jax, f(k)) for k in keys]))
    numbers = jnp.arange(4)
    np.testing.assert_array_equal(data(jax, jax.vmap(lambda d: R.fold_in(keys[0], d))(numbers)), np.stack([data(jax, R.fold_in(keys[0], d)) for d in range(4)]))


def test_unsafe_rbg_splits_and_folds_by_draws(jax, jnp):
    R = jax.random
    keys, numbers = R.wrap_key_data(jnp.asarray(WORDS[:3]), impl="unsafe_rbg"), jnp.arange(4, 7)
    blocks = np.asarray(R.bits(keys[0], (90, 4)))
    np.testing.assert_array_equal(data(jax, jax.vmap(lambda k: R.split(k, 3))(keys)).reshape(9, 4), blocks[::10])
    of_numbers = np.asarray(R.bits(R.key(4, impl="unsafe_rbg"), (30, 4)))[9::10]
    one, many = of_numbers[:1], of_numbers
    words = WORDS[:3]
    fold = R.fold_in
    np.testing.assert_array_equal(data(jax, jax.vmap(lambda k: fold(k, 4))(keys)), words ^ one)
    np.testing.assert_array_equal(data(jax, jax.vmap(lambda d: fold(keys[0], d))(numbers)), words[:1] ^ many)
    np.testing.assert_array_equal(data(jax, jax.vmap(fold)(keys, numbers)), words ^ many)
    np.testing.assert_array_equal(data(jax, jax.vmap(lambda k: jax.vmap(lambda d: fold(k, d))(numbers))(keys)), words[:, None] ^ many)
    np.testing.assert_array_equal(data(jax, jax.vmap(lambda d: jax.vmap(lambda k: fold(k, d))(keys))(numbers)), words ^ many[:, None])


@pytest.mark.parametrize("impl", IMPLS)
def test_keys_move_as_arrays_do(jax, jnp, impl):
    R = jax.random
    grid = R.wrap_key_data(jnp.asarray(WORDS.reshape(2, 3, 4)), impl=impl)
    words = WORDS.reshape(2, 3, 4)
    chosen = jnp.array([[True, False, True]])
    same = {
        "transpose": (grid.T, words.swapaxes(0, 1)), "reshape": (grid.reshape(6), WORDS), "index": (grid[:, jnp.array([2, 0])], words[:, [2, 0]]),
        "concatenate": (jnp.concatenate([grid, grid[::-1]]), np.concatenate([words, words[::-1]])), "stack": (jnp.stack([grid[0], grid[1]]), words),
        "where": (jnp.where(chosen, grid, grid[::-1]), np.where([[[True], [False], [True]]], words, words[::-1])),
        "set": (grid.at[0, 1].set(grid[1, 1])[0], np.stack([words[0, 0], words[1, 1], words[0, 2]])), "put": (jax.device_put(grid), words),
        "cond": (jax.lax.cond(True, lambda: grid[0], lambda: grid[1]), words[0]), "broadcast": (jnp.broadcast_to(grid[0, 0], (2,)), np.stack([words[0, 0]] * 2)),
    }  # fmt: skip
    for name, (got, want) in same.items():
        np.testing.assert_array_equal(data(jax, got), want, err_msg=name)
        assert got.dtype == grid.dtype
    last, drawn = jax.lax.scan(lambda k, _: (R.split(k, 1)[0], R.bits(k, ())), grid[0, 0], None, length=3)
    assert drawn[0] == R.bits(grid[0, 0], ()) and last.dtype == grid.dtype
    assert pickle.loads(pickle.dumps(grid)).dtype == grid.dtype and pickle.loads(pickle.dumps(grid.dtype)) == grid.dtype
    np.testing.assert_array_equal(data(jax, pickle.loads(pickle.dumps(grid))), words)
    assert str(grid[0, 0]) == f"Array((), dtype={grid.dtype}) overlaying:\n{words[0, 0]}"


def test_wide_words_and_seeds(jax, jnp):
    with jax.enable_x64(True):
        key = jax.random.key(2**40 + 3, impl="rbg")
        assert data(jax, key).tolist() == [256, 3, 256, 3]
        assert jax.random.bits(jax.random.key(1, impl="rbg"), (3,)).tolist() == [1372258198025814887, 12700770364969126184, 14611837507454350717]
    assert [data(jax, jax.random.key(seed, impl="rbg")).tolist() for seed in (-1, 2**40)] == [[0, 2**32 - 1] * 2, [0, 0] * 2]


def test_the_default_generator(jax, jnp):
    R = jax.random
    with jax.default_prng_impl("rbg"):
        raw = R.PRNGKey(3)
        assert raw.tolist() == [0, 3, 0, 3] and R.bits(raw, (3,)).tolist() == [3146934739, 3391003311, 1891301882]
        assert R.split(raw).tolist() == [[3716834203, 3481239269] * 2, [1946498123, 2217676430] * 2] and R.key(3).dtype == R.key_dtype("rbg") == R.key_dtype()
        assert jax.jit(lambda: R.key_data(R.key(5)))().tolist() == [0, 5, 0, 5]
        with pytest.raises(TypeError, match=r"expected key_data.shape to end with \(4,\); got shape=\(2,\)"):
            R.bits(jnp.zeros(2, jnp.uint32))
    assert R.PRNGKey(5, impl="unsafe_rbg").tolist() == [0, 5, 0, 5] and R.PRNGKey(3).tolist() == [0, 3]


def test_invalid_generators(jax, jnp):
    R, words = jax.random, jnp.zeros((3, 4), jnp.uint32)
    assert R.wrap_key_data(words, dtype=R.key_dtype("rbg")).dtype == R.key(0, dtype=R.key_dtype("rbg")).dtype == R.key(0, impl=R.key_dtype("rbg")).dtype
    for name in ("nope", "fry"):
        with pytest.raises(ValueError, match=f'unrecognized PRNG implementation "{name}"'):
            R.key(0, impl=name)
    with pytest.raises(TypeError, match="unrecognized type <class 'int'> for specifying PRNG implementation"):
        R.key(0, impl=7)
    with pytest.raises(TypeError, match=r"expected key_data.shape to end with \(2,\)"):
        R.wrap_key_data(words)
    with pytest.raises(ValueError, match="new enum value must be in"):
        jax.config.update("jax_default_prng_impl", "nope")
    for mixed in (lambda: jnp.stack([R.key(0), R.key(0, impl="rbg")]), lambda: R.key(0) == R.key(0, impl="rbg")):
        with pytest.raises((TypeError, ValueError)):
            mixed()


# ---------------------------------------------------------------- lax.rng_bit_generator

PHILOX = [0x1E8FE864, 0x4D5E0BD7, 0x4B87C9BE, 0x2D689201, 0x5273487B, 0x61C05696]


@pytest.mark.parametrize("algorithm", ["RNG_DEFAULT", "RNG_PHILOX"])
@pytest.mark.parametrize(
    "shape, dtype, blocks", [((5,), "uint32", 2), ((2, 3), "uint32", 2), ((), "uint32", 1), ((4,), "uint16", 1), ((1, 5), "uint8", 2), ((0,), "uint32", 0)]
)
def test_philox_bits(jax, jnp, algorithm, shape, dtype, blocks):
    draw = lambda s: jax.lax.rng_bit_generator(s, shape, dtype, algorithm=jax.lax.RandomAlgorithm[algorithm])
    for f in (draw, jax.jit(draw)):
        after, bits = f(jnp.array([1, 2, 3, 4], "uint32"))
        assert bits.shape == shape and bits.dtype == dtype and after.tolist() == [1, 2, 3 + blocks, 4]
        np.testing.assert_array_equal(np.ravel(bits), np.array(PHILOX)[: np.size(bits)].astype(dtype))


def test_the_counter_of_philox_carries_into_the_key(jax, jnp):
    top = 2**32 - 1
    after, bits = jax.lax.rng_bit_generator(jnp.array([5, 6, top - 1, top], "uint32"), (12,))
    assert after.tolist() == [5, 6, 1, 0] and bits[8:].tolist() == [0xC8D8FA9D, 0xADE875B0, 0x9E8524C7, 0x60AF1409]
    after, bits = jax.lax.rng_bit_generator(jnp.array([5, 6, top - 1, 7], "uint32"), (1,))
    assert after.tolist() == [5, 6, top, 7] and bits.tolist() == [0x42B82B08]
    with jax.enable_x64(True):
        state = jnp.array([5 | 6 << 32, 9 | 7 << 32], "uint64")
        after, bits = jax.lax.rng_bit_generator(state, (2,), "uint64")
        assert after.tolist() == [5 | 6 << 32, 10 | 7 << 32] and bits.tolist() == [2375091974 << 32 | 3142309389, 383365026 << 32 | 828924807]


@pytest.mark.parametrize("algorithm", ["RNG_DEFAULT", "RNG_THREE_FRY"])
def test_states_under_vmap(jax, jnp, algorithm):
    states = jnp.asarray(WORDS[:3])
    draw = lambda s: jax.lax.rng_bit_generator(s, (5,), algorithm=jax.lax.RandomAlgorithm[algorithm])
    one_after, one = jax.lax.rng_bit_generator(states[0], (3, 5), algorithm=jax.lax.RandomAlgorithm[algorithm])
    after, bits = jax.vmap(draw)(states)
    np.testing.assert_array_equal(bits, one)
    np.testing.assert_array_equal(after, np.stack([one_after, WORDS[1], WORDS[2]]))
    after, bits = jax.vmap(draw, in_axes=1, out_axes=1)(states.T)
    np.testing.assert_array_equal(bits, np.transpose(one))
    np.testing.assert_array_equal(after, np.stack([one_after, WORDS[1], WORDS[2]], 1))


# ---------------------------------------------------------------- distributions


def jax_of(R):
    return importlib.import_module(R.__name__.removesuffix(".random"))


@pytest.mark.parametrize("impl", IMPLS)
def test_gamma_draws_of_lanes_are_their_own(jax, jnp, impl):
    keys = jax.random.wrap_key_data(jnp.asarray(WORDS[:3]), impl=impl)
    draw = lambda key: jax.random.gamma(key, 2.0, (2,))
    drawn = jax.vmap(draw)(keys)
    np.testing.assert_array_equal(drawn[0], draw(keys[0]))
    if impl == "rbg":  # whose lanes split for themselves
        np.testing.assert_array_equal(drawn, np.stack([draw(key) for key in keys]))
    slope = jax.grad(lambda a: jax.random.gamma(keys[0], a))(2.0)
    np.testing.assert_allclose(slope, jax.lax.random_gamma_grad(jnp.float32(2.0), jax.random.gamma(keys[0], 2.0)), rtol=1e-5)


@pytest.mark.ours  # JAX draws them by threefry2x32 alone
@pytest.mark.parametrize("impl", IMPLS)
def test_poisson_draws(jax, impl):
    drawn = np.asarray(jax.random.poisson(jax.random.key(3, impl=impl), 3.0, (4000,)))
    assert abs(drawn.mean() - 3) < 0.15 and abs(drawn.var() - 3) < 0.3


DRAWS = {
    "normal": lambda R, k: R.normal(k, (3, 2)),
    "randint": lambda R, k: R.randint(k, (6,), 0, 100),
    "bernoulli": lambda R, k: R.bernoulli(k, 0.3, (7,)),
    "permutation": lambda R, k: R.permutation(k, 10),
    "choice": lambda R, k: R.choice(k, 10, (4,), replace=False),
    "gamma": lambda R, k: R.gamma(k, 2.0, (3,)),
    "beta": lambda R, k: R.beta(k, 2.0, 3.0, (4,)),
    "gamma_of_lanes": lambda R, k: jax_of(R).vmap(lambda k: R.gamma(k, 2.0, (2,)))(R.split(k, 3)),
    "categorical": lambda R, k: R.categorical(k, np.array([0.1, 0.2, 0.3], np.float32), shape=(5,)),
    "truncated_normal": lambda R, k: R.truncated_normal(k, -1.0, 1.0, (3,)),
    "dirichlet": lambda R, k: R.dirichlet(k, np.array([1.0, 2, 3], np.float32), (2,)),
    "exponential": lambda R, k: R.exponential(k, (4,)),
}


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("name", DRAWS)
def test_distributions_beside_jax(jax, oracle, impl, name):
    for lib in (jax, oracle):
        lib.config.update("jax_enable_x64", False)
    one = lambda lib: np.asarray(DRAWS[name](lib.random, lib.random.key(42, impl=impl)))
    np.testing.assert_allclose(one(jax), one(oracle), rtol=2e-5, atol=2e-6)
