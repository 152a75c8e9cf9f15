"""Orbax: checkpoints of trees, of training states, by managers that keep some, in the background, restored as other types, and error paths."""

import pathlib
import tempfile

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
import pytest
from flax.training import train_state
from outcomes import Programs

TREE = {
    "a": jnp.arange(6.0).reshape(2, 3),
    "b": [jnp.ones(4, jnp.int32), {"c": jnp.float32(2.5)}],
    "h": jnp.arange(3, dtype=jnp.bfloat16),
    "f": jnp.array([True, False]),
}


def folder():
    return pathlib.Path(tempfile.mkdtemp())


def kept(tree, *args, **kwargs):
    """A tree, saved and restored by a StandardCheckpointer; `args` and `kwargs` say how it is restored."""
    place = folder() / "one"
    with ocp.StandardCheckpointer() as c:
        c.save(place, tree)
        c.wait_until_finished()
        return c.restore(place, *args, **kwargs)


def managed(options, steps=5, **save):
    """A manager of a folder to which some steps were saved."""
    m = ocp.CheckpointManager(folder(), options=options)
    for step in range(steps):
        m.save(step, args=ocp.args.StandardSave({"x": jnp.full(2, float(step))}), **{k: f(step) for k, f in save.items()})
    m.wait_until_finished()
    return m


def training():
    net = nn.Dense(3)
    x = jnp.linspace(-1, 1, 8).reshape(4, 2)
    state = train_state.TrainState.create(apply_fn=net.apply, params=net.init(jax.random.key(0), x), tx=optax.adam(0.1))

    @jax.jit
    def step(state):
        return state.apply_gradients(grads=jax.grad(lambda p: (state.apply_fn(p, x) ** 2).sum())(state.params))

    return state, step


def resumed():
    """Two steps, a checkpoint, two more: as many as four."""
    state, step = training()
    half = step(step(state))
    again = kept(half, jax.tree.map(ocp.utils.to_shape_dtype_struct, half))
    return step(step(again)).params, step(step(half)).params


def programs(t):
    abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, TREE)
    t("standard", lambda: kept(TREE))
    t("standard target", lambda: kept(TREE, TREE))
    t("standard abstract", lambda: kept(TREE, abstract))
    t("standard other dtype", lambda: kept({"a": jnp.arange(3.0)}, {"a": jax.ShapeDtypeStruct((3,), jnp.float16)}))
    t(
        "standard other shape",
        lambda: kept({"a": jnp.arange(3.0)}, {"a": jax.ShapeDtypeStruct((4,), jnp.float32)}),
        raises=ValueError,
        why="the stored array has another shape",
    )
    t(
        "standard other tree",
        lambda: kept({"a": jnp.arange(3.0)}, {"b": jax.ShapeDtypeStruct((3,), jnp.float32)}),
        raises=ValueError,
        why="the stored tree has other keys",
    )
    t("numpy", lambda: kept({"n": np.arange(3), "s": 3, "g": 2.5}))
    t("empty", lambda: kept({"x": jnp.zeros((0, 3)), "e": {}}), raises=ValueError, why="arrays without elements are not stored")
    t("key", lambda: jax.random.uniform(kept({"k": jax.random.key(3)})["k"]))
    t("absent", lambda: ocp.StandardCheckpointer().restore(folder() / "none"), raises=FileNotFoundError, why="nothing is stored there")
    t(
        "twice",
        lambda: (lambda p, c: (c.save(p, TREE), c.wait_until_finished(), c.save(p, TREE)))(folder() / "x", ocp.StandardCheckpointer()),
        raises=ValueError,
        why="the folder exists",
    )
    t(
        "forced",
        lambda: (lambda p, c: (c.save(p, TREE), c.save(p, {"z": jnp.ones(2)}, force=True), c.wait_until_finished(), c.restore(p))[-1])(
            folder() / "x", ocp.StandardCheckpointer()
        ),
    )
    t("no arrays", lambda: kept({"x": object()}), raises=ValueError, why="an object is not an array")
    t("resumed", resumed)
    t("optimizer state", lambda: (lambda s: kept(s, s))(optax.chain(optax.clip(1.0), optax.adamw(0.1)).init({"w": jnp.ones(3)})))

    def tree_handler():
        place = folder() / "t"
        c = ocp.Checkpointer(ocp.PyTreeCheckpointHandler())
        c.save(place, TREE)
        how = {"a": ocp.ArrayRestoreArgs(dtype=jnp.float16), "b": [ocp.RestoreArgs(restore_type=np.ndarray), {"c": ocp.ArrayRestoreArgs()}], "h": ocp.ArrayRestoreArgs(), "f": ocp.ArrayRestoreArgs()}  # fmt: skip
        return c.restore(place), c.restore(place, args=ocp.args.PyTreeRestore(TREE, restore_args=how))

    t("tree handler", tree_handler)

    def in_background():
        place = folder() / "t"
        with ocp.AsyncCheckpointer(ocp.PyTreeCheckpointHandler()) as c:
            c.save(place, args=ocp.args.PyTreeSave({"x": (x := jnp.arange(1000.0))}))
            x.delete()  # it has been copied
            c.wait_until_finished()
            return c.restore(place)["x"].sum()

    t("in the background", in_background)
    t("manager latest", lambda: (lambda m: (m.latest_step(), m.all_steps(), m.restore(m.latest_step())))(managed(ocp.CheckpointManagerOptions())))
    t("manager keeps two", lambda: list(managed(ocp.CheckpointManagerOptions(max_to_keep=2)).all_steps()))
    t("manager every second", lambda: list(managed(ocp.CheckpointManagerOptions(save_interval_steps=2)).all_steps()))
    best = ocp.CheckpointManagerOptions(max_to_keep=2, best_fn=lambda m: m["loss"], best_mode="min")
    t("manager best", lambda: (lambda m: (m.best_step(), list(m.all_steps())))(managed(best, metrics=lambda s: {"loss": abs(s - 2.2)})))
    t("manager delete", lambda: (lambda m: (m.delete(1), list(m.all_steps()))[1])(managed(ocp.CheckpointManagerOptions())))
    t("manager reached", lambda: managed(ocp.CheckpointManagerOptions()).should_save(9))
    t("manager absent", lambda: managed(ocp.CheckpointManagerOptions()).restore(17), raises=FileNotFoundError, why="there is no such step")
    t(
        "manager abstract",
        lambda: managed(ocp.CheckpointManagerOptions()).restore(3, args=ocp.args.StandardRestore({"x": jax.ShapeDtypeStruct((2,), jnp.float32)})),
    )

    def composite():
        m = ocp.CheckpointManager(folder())
        m.save(0, args=ocp.args.Composite(state=ocp.args.StandardSave(TREE), notes=ocp.args.JsonSave({"n": 3, "name": "run"})))
        m.wait_until_finished()
        back = m.restore(0, args=ocp.args.Composite(state=ocp.args.StandardRestore(abstract), notes=ocp.args.JsonRestore()))
        return back.state, back.notes, [x.shape for x in jax.tree.leaves(m.item_metadata(0).state)]

    t("composite", composite)

    def placed():
        where = jax.sharding.SingleDeviceSharding(jax.devices()[0])
        return kept({"a": jnp.arange(3.0)}, {"a": jax.ShapeDtypeStruct((3,), jnp.float32, sharding=where)})["a"].sharding == where

    t("placed", placed)


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_orbax(name):
    PROGRAMS.check(name)
