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


@pytest.mark.parametrize("launcher", [("SLURM_PROCID", "SLURM_NTASKS"), ("PMI_RANK", "PMI_SIZE"), ("PALS_RANKID", "PALS_NRANKS")])
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


def test_a_process_that_puts_something_else_is_told():
    done = mpirun(BEGIN + "\ntold('shapes', lambda: put(np.ones(2 + 2 * i), 'p'))\n")
    assert done.returncode == 0 and done.stdout.count("run different programs") == 2, done.stdout + done.stderr
