"""Specifications and named shardings as values: one way to write each, equality, copies, ranks, what is refused."""

import textwrap

import pytest
from parts_prelude import PRELUDE


@pytest.fixture
def on_devices(forked_child, jax):
    """Runs code with eight CPU devices."""
    return lambda code: forked_child(PRELUDE.format(library=jax.__name__) + SETUP + textwrap.dedent(code), NUM_CPU_DEVICES="8")


SETUP = """
mesh = Mesh(np.array(devices).reshape(4, 2), ("x", "y"))
explicit = jax.make_mesh((4, 2), ("x", "y"))
P = jax.sharding.PartitionSpec
U = P.UNCONSTRAINED
AxisType = jax.sharding.AxisType

def fails(kind, text, f):
    try:
        f()
    except kind as e:
        assert text in str(e), e
    else:
        raise AssertionError(text)
"""


def test_a_specification_is_written_in_one_way(on_devices):
    on_devices(
        """
        import copy, pickle
        for a, b in [(P(("x",)), P("x")), (P(["x"]), P("x")), (P(()), P(None)), (P("x", []), P("x", None)), (P(["x", "y"]), P(("x", "y"))),
                     (P(None, ("x",), (U,)), P(None, "x", U))]:
            assert a == b and hash(a) == hash(b) and repr(a) == repr(b) and list(a) == list(b) and {a: 1}[b] == 1, (a, b)
        assert NamedSharding(mesh, P(("x",))) == NamedSharding(mesh, P("x"))
        assert P("x") != P("x", None) and P("x") != P(("x", "y")) and NamedSharding(mesh, P("x")) != NamedSharding(mesh, P("x", None))
        for p in [P("x", U), P(U), P(("x", "y"), None), P("x", unreduced={"y"}), P(None, reduced={"x"})]:
            assert copy.deepcopy(p) == p and pickle.loads(pickle.dumps(p)) == p, p
        assert pickle.loads(pickle.dumps(U)) is U and copy.copy(U) is U and repr(U) == "UNCONSTRAINED"
        assert P("x") + P("y") == P("x") + ("y",) == ("x",) + P("y") == P("x", "y")
        assert P("x") + P("y", unreduced={"z"}) == P("x", "y", unreduced={"z"})
        for p, name in [(P("y", unreduced={"z"}), "unreduced"), (P("y", reduced={"z"}), "reduced")]:
            fails(TypeError, f"has {name} in `__add__`", lambda: p + ("x",))
            fails(TypeError, f"has {name} in `__radd__`", lambda: ("x",) + p)
        assert P("x", ("y",)).index(("y",)) == 1 and P(("x",), None).count(["x"]) == 1
        fails(NotImplementedError, "", lambda: P("x") + ["y"])
        """
    )


def test_dimensions_that_are_not_cut_may_be_beyond_the_rank(on_devices):
    on_devices(
        """
        S = lambda *spec: NamedSharding(mesh, P(*spec))
        assert S("x", None).shard_shape((8,)) == (2,) and S(None, None).shard_shape(()) == () and S("x", None, None).shard_shape((8, 3)) == (2, 3)
        assert S("x", None).devices_indices_map((8,)) == S("x").devices_indices_map((8,))
        assert S("x", None).is_equivalent_to(S("x"), 1) and S("x").is_equivalent_to(S("x", None), 2) and not S("x", None).is_equivalent_to(S("y"), 1)
        assert S("x", None).num_devices == 8 and not S("x", None).is_fully_replicated
        fails(ValueError, "only valid for values of rank at least 2", lambda: S("x", None).check_compatible_aval((8,)))
        fails(ValueError, "only valid for values of rank at least 2", lambda: jax.device_put(np.ones(8), S("x", None)))
        abstract = mesh.abstract_mesh
        A = lambda *spec: NamedSharding(abstract, P(*spec))
        assert A("x").shard_shape((8, 2)) == (2, 2) and A("x").num_devices == 8 and A("x").is_equivalent_to(A("x", None), 2)
        assert not A("x").is_equivalent_to(A("y"), 1)
        fails(ValueError, "not implemented for `jax.sharding.AbstractMesh`", lambda: A("x").devices_indices_map((8,)))
        fails(ValueError, "device_set is not implemented for `jax.sharding.AbstractMesh`", lambda: A("x").device_set)
        """
    )


def test_unsupported_arguments(on_devices):
    on_devices(
        """
        fails(ValueError, "partitions cannot overlap with unreduced axes", lambda: P(("x", "z"), unreduced={"x"}))
        fails(ValueError, "partitions cannot overlap with reduced axes", lambda: P("x", reduced={"x"}))
        fails(ValueError, "`unreduced` and `reduced` argument to PartitionSpec cannot overlap", lambda: P(unreduced={"y"}, reduced={"y"}))
        for axes in ("y", ["y"], ("y",)):
            fails(TypeError, "unreduced argument of PartitionSpec should of type `frozenset` or `set`", lambda: P(unreduced=axes))
            fails(TypeError, "reduced argument of PartitionSpec should of type `frozenset` or `set`", lambda: P(reduced=axes))
        fails(ValueError, "unreduced cannot contain None", lambda: P(unreduced={None}))
        fails(ValueError, "Unreduced axes z is not found in mesh", lambda: NamedSharding(mesh, P(unreduced={"z"})))
        fails(ValueError, "Reduced axes z is not found in mesh", lambda: NamedSharding(mesh, P(reduced={"z"})))
        fails(ValueError, "Unreduced axes can only refer to mesh axes that is of type `Explicit`", lambda: NamedSharding(mesh, P(unreduced={"y"})))
        NamedSharding(explicit, P(unreduced={"y"})), NamedSharding(explicit, P("x", reduced={"y"}))
        for make in (jax.make_mesh, lambda shape, names: Mesh(np.array(devices).reshape(shape), names)):
            fails(ValueError, "Mesh axis names cannot be None. Got: ('x', None)", lambda: make((4, 2), ("x", None)))
        two = (AxisType.Auto, AxisType.Auto)
        fails(ValueError, "Got axis_names=('x',) and axis_types=(Auto, Auto)", lambda: jax.make_mesh((8,), ("x",), axis_types=two))
        fails(TypeError, "Got ('auto',) of type (<class 'str'>,)", lambda: Mesh(np.array(devices), ("x",), axis_types="auto"))
        for transformed in (jax.jit, jax.grad, jax.make_jaxpr):
            fails(ValueError, "`set_mesh` can only be used outside of `jax.jit`", lambda: transformed(lambda x: [jax.set_mesh(mesh), x][1])(1.0))
        fails(ValueError, "got sharding None which is not allowed", lambda: jax.lax.with_sharding_constraint(np.ones(8), None))
        fails(TypeError, "expected to be PartitionSpec instances or None, but got x", lambda: jax.lax.with_sharding_constraint(np.ones(8), "x"))
        """
    )


def test_structs_take_specifications_where_a_mesh_is_set(on_devices):
    on_devices(
        """
        struct = lambda *spec: jax.ShapeDtypeStruct((8, 2), np.float32, sharding=P(*spec))
        fails(TypeError, "the context mesh cannot be empty", lambda: struct("x").sharding)
        with jax.set_mesh(mesh):
            assert struct("x").sharding.spec == P("x") and struct(None, "y").sharding.mesh.axis_names == ("x", "y")
            assert struct("x").sharding.shard_shape((8, 2)) == (2, 2)
            fails(ValueError, "not found in mesh", lambda: struct("z").sharding)
            fails(ValueError, "rank", lambda: struct("x", "y", None))
        """
    )
