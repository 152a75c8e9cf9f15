"""What a process may read of arrays that several processes hold, and what each gives of its own: nothing is read that is not there, and values that differ are refused."""

import os
import pathlib
import subprocess
import sys

import pytest
from processes import lines, mpirun

pytestmark = pytest.mark.ours

EACH = pytest.mark.parametrize("devices", [1, 2])
BEGIN = """
import copy, io, pickle
from ferrax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((jax.process_count(), jax.local_device_count()), ("p", "d"), axis_types=(jax.sharding.AxisType.Auto,) * 2)

def put(x, *spec):
    return jax.device_put(x, NamedSharding(mesh, P(*spec)))

def told(name, f):
    try:
        got = f()
    except Exception as e:
        print(name, type(e).__name__, str(e)[:70], flush=True)
    else:
        print(name, "gives", got, flush=True)
"""
FETCHED = "RuntimeError Fetching value for `jax.Array` that spans non-addressable (non process"


@EACH
def test_a_part_of_an_array_over_processes_is_never_read_as_the_whole(devices):
    out = lines(
        BEGIN
        + """
readers = dict(
    asarray=np.asarray, array=np.array, copied=lambda a: np.array(a, copy=True), method=lambda a: a.__array__(), dtype=lambda a: np.asarray(a, np.float64),
    value=lambda a: a._value, tolist=lambda a: a.tolist(), item=lambda a: a.item(3), tobytes=lambda a: a.tobytes(), device_get=jax.device_get,
    pickle=pickle.dumps, save=lambda a: np.save(io.BytesIO(), a), jax_save=lambda a: jnp.save(io.BytesIO(), a), ufunc=lambda a: np.add(a, 1),
    concatenate=lambda a: np.concatenate([a, a]),
)
for dtype in ("float32", "int8", "bool", "complex64", "bfloat16", "float16", "uint4"):
    for spec in (("p",), (("p", "d"),), ("d", "p")):
        x = np.arange(32).reshape(4, 8) % 2
        a = put(jnp.array(x, dtype), *spec)
        for name, f in readers.items():
            told(name, lambda: f(a))
        for f in (memoryview, lambda a: a.__dlpack__(max_version=(1, 0)), np.from_dlpack, lambda a: a.unsafe_buffer_pointer()):
            try:
                f(a)
            except Exception as e:
                assert type(e).__name__ in ("BufferError", "JaxRuntimeError", "RuntimeError"), (type(e), e)
            else:
                print("was read", dtype, spec)
        for text in (str(a), repr(a), f"{a}", "%s" % a):
            assert text == f"Array(shape=(4, 8), dtype={dtype})", text
        for again in (copy.copy(a), copy.deepcopy(a), a.copy()):
            assert again.sharding == a.sharding
        for s in a.addressable_shards:
            assert np.asarray(s.data).tobytes() == np.asarray(jnp.array(x[s.index], dtype)).tobytes()
keys = put(jax.random.split(jax.random.key(0), 8), ("p", "d"))
told("keys", lambda: pickle.dumps(keys))
assert repr(keys).startswith("Array(shape=(8,), dtype=key")
""",
        devices=devices,
    )
    names = {line.split()[0] for line in out}
    assert len(names) == 16 and all(line.split(" ", 1)[1].startswith(FETCHED[:60]) for line in out), out
    assert len(out) == 2 * (7 * 3 * 15 + 1)


@EACH
def test_a_process_reads_arrays_that_its_devices_hold_completely(devices):
    """Copies, and parts that the devices of one process hold together."""
    assert (
        lines(
            BEGIN
            + """
x = np.arange(16.0, dtype=np.float32).reshape(4, 4)
for spec in ((), ("d",), (None, "d")):
    a = put(x, *spec)
    assert not a.is_fully_addressable and np.array_equal(np.asarray(a), x) and a.tolist() == x.tolist()
    assert np.array_equal(jax.device_get(a), x) and np.array_equal(pickle.loads(pickle.dumps(a)), x)
whole = put(x)
assert str(whole) == str(x) and all(np.array_equal(np.asarray(whole.addressable_data(k)), x) for k in range(2))
s = put(np.float32(2.5))
assert (float(s), int(s), bool(s), complex(s), s.item(), f"{s:.1f}") == (2.5, 2, True, 2.5, 2.5, "2.5")
total = jax.jit(lambda a: a.sum())(put(x, "p"))
assert float(total) == x.sum() and int(jax.jit(lambda a: a.argmax())(put(x, None, "p"))) == 15
told("iteration", lambda: [float(r.sum()) for r in put(x, "p")])
""",
            devices=devices,
        )
        == ["iteration gives [6.0, 22.0, 38.0, 54.0]"] * 2
    )


@EACH
def test_bad_numbers_are_looked_for_in_the_parts_of_a_process(devices):
    out = lines(
        BEGIN
        + """
a = put(np.arange(8.0, dtype=np.float32), ("p", "d"))
with jax.debug_nans(True):
    told("good", lambda: (a + 1).is_fully_addressable)
    told("jit", lambda: jax.jit(lambda a: jnp.log(a + 1))(a).is_fully_addressable)
    told("bad", lambda: jax.jit(lambda a: jnp.log(-a - 1))(a))
""",
        devices=devices,
    )
    assert [line for line in out if not line.startswith("bad")] == ["good gives False"] * 2 + ["jit gives False"] * 2
    assert sum(line.startswith("bad FloatingPointError invalid value (nan) encountered in") for line in out) == 2, out


@EACH
def test_host_values_that_differ_are_refused(devices):
    """As JAX: what is put on devices of several processes must be the same on all of them, whether it is cut or not."""
    out = lines(
        BEGIN
        + """
values = dict(
    array=lambda k: np.full(4, k), cut=lambda k: np.full(4, k), number=lambda k: k, real=lambda k: 0.5 + k, numpy=lambda k: np.float32(k), local=lambda k: jnp.full(4, k),
    committed=lambda k: jax.device_put(jnp.full(4, k), jax.local_devices()[0]), key=lambda k: jax.random.key(k), sign=lambda k: np.array([1.0, -1.0])[k] * 0.0,
    tree=lambda k: {"same": np.ones(3), "other": np.full(4, k)},
)
for name, make in values.items():
    spec = (("p", "d"),) if name == "cut" else ()
    told(name, lambda: put(make(i), *spec))
    put(make(1), *spec)
s = NamedSharding(mesh, P())
for name, f in dict(
    asarray=lambda k: jnp.asarray(np.full(4, k), device=s), listed=lambda k: jnp.array([k, k], device=s), full=lambda k: jnp.full(4, k, device=s),
    lax_full=lambda k: jax.lax.full((4,), k, sharding=s), moved=lambda k: jnp.full(4, k).to_device(s), cast=lambda k: jnp.full(4, k).astype("int8", device=s),
).items():
    told(name, lambda: f(i))
    f(1)
told("nan", lambda: np.isnan(put(np.nan)).item())
""",
        devices=devices,
    )
    refused = [line for line in out if "AssertionError <class " in line and "passed to device_put" in line]
    assert len(refused) == 32 and [line for line in out if line not in refused] == ["nan gives True"] * 2, out


@EACH
@pytest.mark.parametrize("which", range(10))
def test_values_that_each_process_passes_must_be_equal(which, devices):
    """Captured arrays, arguments of the host, and computed scalars: the program is one, and so are its inputs.

    Of programs in which the processes send nothing, the next one in which they do tells it."""
    out = lines(
        BEGIN
        + f"""
a = put(np.arange(8.0, dtype=np.float32), ("p", "d"))
whole = put(np.arange(8.0, dtype=np.float32))
then_sum = lambda _: a.sum()

def case(k):
    captured, scalar = jnp.full(8, k, jnp.float32), jnp.float32(k) * 1
    return [
        lambda: jax.jit(lambda a: (a * captured).sum())(a),
        lambda: jax.jit(lambda a: (a * scalar).sum())(a),
        lambda: jax.jit(lambda a, b: (a * b).sum())(a, np.full(8, k, np.float32)),
        lambda: (a * np.full(8, k, np.float32)).sum(),
        lambda: jax.jit(lambda a, key: (a * jax.random.uniform(key, (8,))).sum())(a, jax.random.key(k)),
        lambda: then_sum(jax.jit(lambda a, b: a * b)(a, np.full(8, k, np.float32))),
        lambda: then_sum(jax.jit(lambda a, b: a * b)(whole, np.full(8, k, np.float32))),
        lambda: then_sum(whole + jnp.full(8, k, jnp.float32)),
        lambda: then_sum(whole.at[np.array([k])].set(5.0)),
        lambda: then_sum(jnp.where(whole > 3, whole, np.float32(k))),
    ][{which}]

for _ in range(2):
    assert {which} >= 4 or float(case(3)()) == 84
try:
    case(i)().block_until_ready()
except RuntimeError as e:
    print("of which each process gave its own" in str(e) and "every process must run the same programs" in str(e))
""",
        devices=devices,
    )
    assert out == ["True"] * 2


def test_device_put_refuses_devices_of_another_process():
    out = lines(
        BEGIN
        + """
other = jax.devices()[1 - i]
told("put", lambda: jax.device_put(np.ones(2), other))
told("number", lambda: jax.device_put(1.0, other))
told("array", lambda: jax.device_put(jnp.ones(2), other))
told("named", lambda: jnp.asarray(np.ones(2), device=other))
told("sharding", lambda: jax.device_put(np.ones(2), jax.sharding.SingleDeviceSharding(other)))
"""
    )
    assert len(out) == 10 and all("ValueError" in line for line in out), out


@pytest.mark.parametrize("launcher", [("SLURM_PROCID", "SLURM_NTASKS"), ("PMI_RANK", "PMI_SIZE"), ("FLUX_TASK_RANK", "FLUX_JOB_SIZE")])
@pytest.mark.parametrize("rank", ["0", "1"])
def test_a_launcher_that_started_more_than_mpi_knows_of_is_refused(launcher, rank):
    pytest.importorskip("mpi4py")
    import ferrax

    clean = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMIX_", "PMI_", "SLURM_"))}
    root = str(pathlib.Path(ferrax.__file__).parents[1])
    env = {**clean, launcher[0]: rank, launcher[1]: "4", "PYTHONPATH": root}
    run = lambda program: subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=100)
    done = run("import ferrax as jax; jax.distributed.initialize(); print(jax.process_index(), jax.process_count())")
    assert done.returncode != 0 and "each would be a run of its own" in done.stderr and "mpirun -n 4" in done.stderr, done.stderr + done.stdout
    done = run("import ferrax as jax; jax.distributed.initialize(num_processes=1); print(jax.process_count())")
    assert done.returncode == 0 and done.stdout == "1\n", done.stderr


def test_device_put_of_different_values_raises():
    done = mpirun(BEGIN + "\ntold('shapes', lambda: put(np.ones(2 + 2 * i), 'p'))\n")
    assert done.returncode == 0 and done.stdout.count("run different programs") == 2, done.stdout + done.stderr
