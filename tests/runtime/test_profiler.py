"""Profiles, events, pictures of shardings, stops, and names that libraries ask for."""

import gzip
import importlib
import json
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.ours


@pytest.fixture
def module(jax):
    return lambda name: importlib.import_module(f"{jax.__name__}.{name}")


def test_a_profile_holds_annotations_traces_and_compilations(jax, module, tmp_path):
    profiler = module("profiler")

    @profiler.annotate_function
    def work():
        with profiler.TraceAnnotation("inner", size=3):
            return jax.jit(lambda x: x * 41.5)(1.0)

    with profiler.trace(tmp_path):
        with profiler.StepTraceAnnotation("train", step_num=7):
            work()
        with pytest.raises(RuntimeError, match="Profile has already been started"):
            profiler.start_trace(tmp_path)
    with pytest.raises(RuntimeError, match="No profile started"):
        profiler.stop_trace()
    (file,) = tmp_path.rglob("perfetto_trace.json.gz")
    events = {e["name"]: e for e in json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]}
    assert events["train"]["args"] == {"step_num": "7"} and events["inner"]["args"] == {"size": "3"} and events[work.__qualname__]["ph"] == "X"
    outer, inner = events["train"], events["inner"]
    assert outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]
    assert events["compile <lambda>"]["cat"] == "compile" and inner["ts"] <= events["trace <lambda>"]["ts"]
    with pytest.raises(NotImplementedError):
        profiler.start_server(9999)


def test_memory_profiles(jax, jnp, module, tmp_path):
    kept = jnp.ones((123, 7))
    found = json.loads(module("profiler").device_memory_profile())
    (mine,) = [e for device in found.values() for e in device if e["type"] == "float32[123,7]"]
    assert mine["count"] >= 1 and mine["bytes"] == mine["count"] * kept.nbytes
    module("profiler").save_device_memory_profile(tmp_path / "memory.json")
    assert json.loads((tmp_path / "memory.json").read_text())


def test_listeners_are_called_until_they_are_removed(jax, module, caplog):
    m, recorded = module("monitoring"), []
    tell = lambda *args, **kwargs: recorded.append((args, kwargs))
    for register, record, unregister, args in (
        (m.register_event_listener, m.record_event, m.unregister_event_listener, ("/e",)),
        (m.register_event_duration_secs_listener, m.record_event_duration_secs, m.unregister_event_duration_listener, ("/d", 0.5)),
        (m.register_event_time_span_listener, m.record_event_time_span, m.unregister_event_time_span_listener, ("/t", 1.0, 2.0)),
        (m.register_scalar_listener, m.record_scalar, m.unregister_scalar_listener, ("/s", 3)),
    ):
        register(tell)
        record(*args, k=1)
        unregister(tell)
        record(*args, k=2)
        assert recorded == [(args, {"k": 1})]
        recorded.clear()
        with pytest.raises(ValueError, match="is not registered"):
            unregister(tell)
    m.register_event_duration_secs_listener(tell)
    jax.jit(lambda x: x - 17.25)(1.0)
    m.clear_event_listeners()
    jax.jit(lambda x: x - 18.25)(1.0)
    assert [args[0] for args, _ in recorded] == ["/jax/core/compile/jaxpr_trace_duration", "/jax/core/compile/backend_compile_duration"]
    assert all(args[1] >= 0 and kwargs["fun_name"] == "<lambda>" for args, kwargs in recorded)


def test_pictures_of_shardings(jax, jnp, capsys):
    jax.debug.visualize_array_sharding(jnp.ones((4, 4)))
    eager = capsys.readouterr().out
    jax.jit(lambda x: jax.debug.visualize_array_sharding(x))(jnp.ones((4, 4)))
    jax.effects_barrier()
    assert eager == capsys.readouterr().out and "CPU 0" in eager and eager.count("\n") == 3
    with pytest.raises(ValueError, match="only works for shapes with 1 and 2 dimensions"):
        jax.debug.visualize_array_sharding(jnp.ones((2, 2, 2)))
    seen = []
    jax.jit(lambda x: jax.debug.inspect_array_sharding(x, callback=seen.append))(1.0)
    jax.effects_barrier()
    assert seen == [jnp.ones(()).sharding]


def test_pictures_of_parts(child):
    out = child(
        """
        from ferrax.sharding import *
        mesh = jax.make_mesh((2, 2), ("x", "y"))
        jax.debug.visualize_sharding((4, 4), NamedSharding(mesh, P("x", "y")))
        jax.debug.visualize_sharding((4, 4), NamedSharding(mesh, P(None, "y")))
        jax.debug.visualize_sharding((4,), NamedSharding(mesh, P(("x", "y"))))
        """,
        NUM_CPU_DEVICES="4",
    )
    boxes = [line.replace(" ", "") for line in out.splitlines() if "CPU" in line]
    assert boxes == ["│CPU0│CPU1│", "│CPU2│CPU3│", "│CPU0,2│CPU1,3│", "│CPU0│CPU1│CPU2│CPU3│"]


def test_stops_show_values(jax, monkeypatch, capsys):
    seen = []
    monkeypatch.setattr(sys, "breakpointhook", lambda **kwargs: seen.append(dict(sys._getframe(1).f_locals)))

    def f(x, n):
        y = x * 2
        jax.debug.breakpoint()
        return y

    f(1.0, 2)
    assert float(jax.jit(f)(3.0, 4)) == 6.0
    jax.vmap(lambda x: f(x, 0))(np.arange(2.0, dtype=np.float32))
    jax.effects_barrier()
    assert [(float(s["x"]), int(s["n"]), float(s["y"])) for s in seen] == [(1.0, 2, 2.0), (3.0, 4, 6.0), (0.0, 0, 0.0), (1.0, 0, 2.0)]
    assert "(f)" in capsys.readouterr().out


def test_values_that_programs_depend_on(jax):
    context = jax.make_user_context(2)
    f = jax.jit(lambda x: x * context.value)
    assert int(f(3)) == 6 and int(f(3)) == 6
    with context(5):
        assert int(f(3)) == 15 and context.value == 5
    assert int(f(3)) == 6
    context.set_global(7)
    assert int(f(3)) == 21 and context.get_global() == 7


def test_one_process(jax, jnp, module):
    d, m = module("distributed"), module("experimental.multihost_utils")
    assert not d.is_initialized()
    d.initialize(num_processes=1, process_id=0)
    assert d.is_initialized()
    with pytest.raises(RuntimeError, match="only be called once"):
        d.initialize()
    d.shutdown()
    with pytest.raises(RuntimeError, match="no launcher started this process"):
        d.initialize("localhost:1", 2, 0)
    x = {"a": jnp.arange(3)}
    assert m.process_allgather(x)["a"].tolist() == [[0, 1, 2]] and m.process_allgather(x, tiled=True)["a"].tolist() == [0, 1, 2]
    assert m.broadcast_one_to_all(x)["a"].tolist() == [0, 1, 2]
    m.sync_global_devices("here"), m.assert_equal(x)
    assert not m.reached_preemption_sync_point(3)
    mesh = jax.make_mesh((1,), ("x",))
    y = m.host_local_array_to_global_array(x, mesh, m.P("x"))
    assert m.global_array_to_host_local_array(y, mesh, {"a": m.P("x")})["a"].tolist() == [0, 1, 2]
    with m.live_devices(jax.devices()) as alive:
        assert alive == jax.devices()


def test_queries_of_running_transformations(jax, jnp, module):
    core = module("extend.core")
    state = lambda: (
        core.unsafe_am_i_under_a_jit_DO_NOT_USE(),
        core.unsafe_am_i_under_a_vmap_DO_NOT_USE(),
        core.unsafe_get_axis_names_DO_NOT_USE(),
        core.nonempty_axis_env_DO_NOT_USE(),
    )
    seen = [state()]
    jax.vmap(lambda x: (seen.append(state()), x)[1], axis_name="i")(jnp.ones(2))
    jax.jit(lambda x: (seen.append(state()), x)[1])(1.0)
    assert seen == [(False, False, [], False), (False, True, ["i"], True), (True, False, [], False)]
    outside = core.get_opaque_trace_state()
    inside = []
    jax.jit(lambda x: (inside.extend([core.get_opaque_trace_state(), core.get_opaque_trace_state()]), x)[1])(1.0)
    assert outside == core.get_opaque_trace_state() and inside[0] == inside[1] != outside
    # settings, meshes and devices are not part of it
    mesh = jax.make_mesh((1,), ("i",))
    settings = {
        "set_mesh": lambda: jax.set_mesh(mesh),
        "use_abstract_mesh": lambda: jax.sharding.use_abstract_mesh(mesh.abstract_mesh),
        "default_device": lambda: jax.default_device(jax.devices()[0]),
        "default_matmul_precision": lambda: jax.default_matmul_precision("float32"),
        "named_scope": lambda: jax.named_scope("a"),
        "enable_x64": lambda: jax.enable_x64(True),
        "numpy_rank_promotion": lambda: jax.numpy_rank_promotion("raise"),
        "numpy_dtype_promotion": lambda: jax.numpy_dtype_promotion("strict"),
        "debug_nans": lambda: jax.debug_nans(True),
        "disable_jit": lambda: jax.disable_jit(),
        "default_prng_impl": lambda: jax.default_prng_impl("rbg"),
        "log_compiles": lambda: jax.log_compiles(),
        "transfer_guard": lambda: jax.transfer_guard("allow"),
        "ensure_compile_time_eval": lambda: jax.ensure_compile_time_eval(),
    }
    for name, setting in settings.items():
        with setting():
            assert core.get_opaque_trace_state(convention="flax") == outside, name
    seen = []
    note = lambda x: (seen.append(core.get_opaque_trace_state()), x)[1]
    jax.vmap(note)(jnp.ones(2)), jax.grad(note)(1.0), jax.jvp(note, (1.0,), (1.0,)), jax.make_jaxpr(note)(1.0), jax.eval_shape(note, 1.0)
    jax.lax.scan(lambda c, _: (note(c), None), 1.0, None, length=1), jax.checkpoint(note)(1.0)
    assert all(s != outside for s in seen) and len(seen) >= 7


def test_names_of_core(jax, module):
    core = module("core")
    assert isinstance(jax.typeof(1.0), core.AbstractValue) and core.max_dim(1, 2) == 2 and core.min_dim(1, 2) == 1 and core.ParamDict
    custom = module("custom_derivatives")
    assert jax.lax.linear_solve_p.name == "custom_linear_solve"
    f = jax.custom_jvp(lambda x: x)
    f.defjvp(lambda p, t: (p[0], t[0]))
    assert jax.make_jaxpr(f)(1.0).eqns[0].primitive is custom.custom_jvp_call_p


def test_equations_with_functions_can_be_bound_again(jax, jnp):
    """What `eval_jaxpr` written by hand does: `eqn.primitive.bind(*values, **eqn.params)`."""
    seen = []

    def f(x):
        jax.debug.callback(lambda v: seen.append(float(v)), x)
        y = jax.pure_callback(lambda v: np.asarray(v) * 2, jax.ShapeDtypeStruct((), np.float32), x)
        return custom(y)

    custom = jax.custom_vjp(lambda x: x * 3)
    custom.defvjp(lambda x: (x * 3, None), lambda _, ct: (ct * 100,))

    def by_hand(x):
        program = jax.make_jaxpr(f)(np.float32(1))
        env = {program.jaxpr.invars[0]: x}
        for eqn in program.eqns:
            outs = eqn.primitive.bind(*[env[v] for v in eqn.invars], **eqn.params)
            env.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs], strict=True))
        return env[program.jaxpr.outvars[0]]

    assert float(by_hand(jnp.float32(2))) == 12.0
    jax.effects_barrier()
    assert seen == [2.0]
    eqn = jax.make_jaxpr(custom)(1.0).eqns[0]
    assert float(jax.grad(lambda x: eqn.primitive.bind(x, **eqn.params)[0])(1.0)) == 100.0
    callback = next(e for e in jax.make_jaxpr(f)(np.float32(1)).eqns if "debug" in e.primitive.name).params["callback"]
    assert callable(callback.callback_func) and callback == callback and hash(callback) == hash(callback)


def test_functions_of_leaves(jax, jnp, module):
    lu, au, pe = module("extend.linear_util"), module("api_util"), module("interpreters.partial_eval")
    wrapped = lambda f, *args, **kwargs: lu.wrap_init(f, debug_info=au.debug_info("test", f, args, kwargs))
    f = lambda x, *, k: {"a": x["p"] * k, "b": (x["q"],)}
    args = ({"p": 2.0, "q": 3.0},), {"k": 5.0}
    leaves, tree = jax.tree.flatten(args)
    flat, out_tree = au.flatten_fun(wrapped(f, *args[0], **args[1]), tree)
    assert flat.call_wrapped(*leaves) == [10.0, 3.0] and out_tree() == jax.tree.structure({"a": 0, "b": (0,)})
    flat, _ = au.flatten_fun_nokwargs(wrapped(lambda x, y: (x * 2, jnp.sin(y)), 0, 0), jax.tree.structure((0, 0)))
    aval = au.shaped_abstractify(jax.ShapeDtypeStruct((), np.float32))
    jaxpr, avals, consts = pe.trace_to_jaxpr_dynamic(flat, [aval, aval])
    assert len(jaxpr.eqns) == 2 and consts == [] and [a.shape for a in avals] == [(), ()]
    cut, used = pe.dce_jaxpr(jaxpr, [False, True])
    assert used == [False, True] and [e.primitive.name for e in cut.eqns] == ["sin"]
    assert pe.dce_jaxpr(jaxpr, [False, True], True)[1] == [True, True] and len(pe.dce_jaxpr(jaxpr, False)[0].eqns) == 0
    np.testing.assert_allclose(jax.core.eval_jaxpr(cut, [], 0.5)[0], np.sin(0.5), rtol=1e-6)
    g, dyn = au.argnums_partial(wrapped(lambda a, b, c: (a, b, c), 1, 2, 3), (2, 0), (1, 2, 3))
    assert dyn == (3, 1) and g.call_wrapped(7, 8) == (8, 2, 7)
    assert au.rebase_donate_argnums((1, 3), (0, 2)) == (0, 1)


def test_older_names(jax, jnp, module):
    mesh = jax.sharding.Mesh(module("experimental.mesh_utils").create_device_mesh((1,), jax.devices()[:1]), ("x",))
    P = jax.sharding.PartitionSpec
    f = module("experimental.shard_map").shard_map(lambda x: jax.lax.psum(x, "x"), mesh, P("x"), P())
    assert f(jnp.arange(3)).tolist() == [0, 1, 2]
    s = jax.sharding.NamedSharding(mesh, P("x"))
    assert module("experimental.pjit").pjit(lambda x: x + 1, in_shardings=s)(jnp.arange(3)).tolist() == [1, 2, 3]
