"""Formats, a layout with a sharding, wherever a sharding is taken: the one layout is that of the sharding alone, what cannot be is refused."""

import itertools
import textwrap

import pytest

pytestmark = pytest.mark.ours

SETUP = """
from {library} import lax
from {library}.sharding import AxisType, NamedSharding, SingleDeviceSharding
from {library}.experimental.layout import Format, Layout, with_layout_constraint
P = jax.P
mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
X = np.arange(32, dtype=np.float32).reshape(8, 4)
rows = Layout((0, 1))
shardings = [NamedSharding(mesh, P("x", "y")), NamedSharding(mesh, P(None, "x")), SingleDeviceSharding(jax.devices()[0]), SingleDeviceSharding(jax.devices()[3])]
def refused(error, words, f):
    try: f()
    except error as e: assert words in str(e), e
    else: raise AssertionError(words)
"""


@pytest.fixture
def on_devices(forked_child, jax):
    return lambda code: forked_child(SETUP.format(library=jax.__name__) + textwrap.dedent(code), NUM_CPU_DEVICES="4")


# How a sharding, or a format, is given.
TAKEN = {
    "device_put": "jax.device_put(X, place)",
    "device_put of a tree": "jax.device_put({'a': X}, {'a': place})['a']",
    "in_shardings": "jax.jit(lambda x: x, in_shardings=place)(X)",
    "in_shardings of a tuple": "jax.jit(lambda x: x * 1, in_shardings=(place,))(X)",
    "out_shardings": "jax.jit(lambda x: x * 1, out_shardings=place)(X)",
    "out_shardings of a tree": "jax.jit(lambda x: {'a': x}, out_shardings={'a': place})(X)['a']",
    "compiled": "jax.jit(lambda x: x * 1, in_shardings=place, out_shardings=place).lower(X).compile()(X)",
    "described": "jax.jit(lambda x: x).lower(jax.ShapeDtypeStruct(X.shape, X.dtype, sharding=place)).compile()(jax.device_put(X, place))",
    "constraint": "lax.with_sharding_constraint(jnp.asarray(X), place)",
    "callback": "jax.make_array_from_callback(X.shape, place, lambda index: X[index])",
}
# a constraint to a device other than that of a traced value has no effect
OVER_A_MESH = {"constraint in jit": "jax.jit(lambda x: lax.with_sharding_constraint(x * 1, place))(X)"}


def test_a_format_is_its_sharding(on_devices):
    on_devices(
        f"""
        for place_of in (lambda s: Format(rows, s), lambda s: Format(None, s)):
            for sharding in shardings:
                for name, code in {TAKEN!r}.items():
                    place = place_of(sharding)
                    y = eval(code)
                    assert y.sharding == eval(code, {{**globals(), "place": sharding}}).sharding == sharding, (name, y.sharding)
                    assert y.format == Format(Layout((0, 1), ()), sharding) and (y == X).all(), name
            for sharding in shardings[:2]:
                for code in {OVER_A_MESH!r}.values():
                    place = place_of(sharding)
                    assert eval(code).sharding.is_equivalent_to(sharding, 2)
        """
    )


def test_layouts_of_another_rank_are_refused(on_devices):
    named = {**TAKEN, **OVER_A_MESH}
    del named["callback"]
    on_devices(
        f"""
        for layout in (Layout((0,)), Layout((0, 1, 2))):
            for sharding in shardings[:3]:
                for name, code in {named!r}.items():
                    if name != "constraint in jit" or hasattr(sharding, "mesh"):
                        place = Format(layout, sharding)
                        refused(ValueError, "incompatible with its layout annotation", lambda: eval(code))
            refused(ValueError, "incompatible with its layout annotation", lambda: jax.jit(lambda x: with_layout_constraint(x, layout))(X))
        """
    )


def test_layouts_that_the_compiler_chooses(on_devices):
    on_devices("""
    for place in (Format(Layout.AUTO), Format(), Format(Layout.AUTO, shardings[2]), Format(Layout.AUTO, shardings[0])):
        f = jax.jit(lambda x: x * 2, in_shardings=place, out_shardings=place)
        assert (f(X) == 2 * X).all()
        made = f.lower(jax.ShapeDtypeStruct(X.shape, X.dtype)).compile()
        given, result = made.input_formats[0][0], made.output_formats
        assert given == Format(Layout((0, 1), ()), made.input_shardings[0][0]) and result == Format(Layout((0, 1), ()), made.output_shardings)
        assert made(jax.device_put(X, given)).format == result
        refused(ValueError, "a layout", lambda: jax.device_put(X, Format(Layout.AUTO, place.sharding)))
        refused(TypeError, "AUTO", lambda: jax.ShapeDtypeStruct(X.shape, X.dtype, sharding=Format(Layout.AUTO, place.sharding)))
    """)


@pytest.mark.parametrize(("with_names", "many"), [*itertools.product([False, True], repeat=2)])
def test_a_compiled_function_tells_the_formats_of_its_trees(jax, jnp, with_names, many):
    a, b = jnp.ones((2, 3)), jnp.ones(())
    f = jax.jit(lambda a, b: {"sum": a + b, "rest": (b,)} if many else a + b)
    made = (f.lower(a, b=b) if with_names else f.lower(a, b)).compile()
    is_format = lambda x: hasattr(x, "layout")
    for formats, shardings in ((made.input_formats, made.input_shardings), (made.output_formats, made.output_shardings)):
        placed = jax.tree.map(lambda x: x.sharding, formats, is_leaf=is_format)
        assert placed == shardings
    ranks = [len(x.layout.major_to_minor) for x in jax.tree.leaves(made.input_formats, is_leaf=is_format)]
    assert ranks == [2, 0]
    assert [len(x.layout.major_to_minor) for x in jax.tree.leaves(made.output_formats, is_leaf=is_format)] == ([0, 2] if many else [2])


def test_a_format_is_checked_where_it_is_made(jax):
    from ferrax.experimental.layout import Format, Layout, with_layout_constraint

    one = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    for layout in ((0, 1), "AUTO", 1):
        with pytest.raises(TypeError, match="layout argument"):
            Format(layout, one)
    for sharding in ("x", jax.devices()[0], (one,)):
        with pytest.raises(TypeError, match="sharding argument"):
            Format(None, sharding)
    with pytest.raises(ValueError, match="Sharding has to be concrete"):
        Format(Layout((0,)))
    for wrong in (None, Format(Layout((0,)), one), (0,)):
        with pytest.raises((TypeError, ValueError)):
            with_layout_constraint(jax.numpy.ones(3), wrong)
    for wrong in (Format(Layout((0,)), one), jax.devices()[0], "x"):
        with pytest.raises(TypeError, match="reshard"):
            jax.reshard(jax.numpy.ones(3), wrong)
    described = jax.ShapeDtypeStruct((2, 3), "float32", sharding=Format(Layout((0, 1)), one))
    assert described.format == Format(Layout((0, 1)), one) and described.sharding == one
    assert described.update(shape=(3, 3)).format == described.format and described != jax.ShapeDtypeStruct((2, 3), "float32", sharding=one)
