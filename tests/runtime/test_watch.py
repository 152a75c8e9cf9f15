"""Processes that die, end, are interrupted or go their own way: the others end a wait with an error that says why, in seconds, and nothing is left running."""

import os
import pathlib
import re
import subprocess
import sys
import time

import pytest
from processes import TRANSPORTS, command, lines, mpirun

pytestmark = pytest.mark.ours

BY = pytest.mark.parametrize("transport", TRANSPORTS)  # statuses go where messages go
MESH = """
import os, signal, sys, time
from ferrax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((jax.device_count(),), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
a = jax.device_put(np.arange(16.0 * jax.device_count(), dtype=np.float32), NamedSharding(mesh, P("x")))
step = jax.jit(lambda a: a * 0.5 + a.sum())
step(a).block_until_ready()

def told(f):
    try:
        f()
    except Exception as e:
        print(i, type(e).__name__, str(e).replace(chr(10), " "), flush=True)
"""


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@BY
@pytest.mark.parametrize("busy", ["computes", "exchanges", "sleeps"])
def test_a_process_that_is_killed_ends_the_others_which_name_it(busy, transport):
    work = {"computes": "b = step(b)", "exchanges": "m.process_allgather(n)", "sleeps": "time.sleep(0.2)"}[busy]
    begun = time.monotonic()
    done = mpirun(
        MESH
        + f"""
print("pid", os.getpid(), flush=True)
b = a
m.sync_global_devices("all are here")
for n in range(10_000):
    if i == 2 and n == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    {work}
b.block_until_ready()
""",
        processes=4,
        transport=transport,
    )
    pids = [int(x) for x in re.findall(r"pid (\d+)", done.stdout)]
    assert time.monotonic() - begun < 25 and done.returncode != 0
    assert re.search(r"process 2 \(pid \d+ on .*\) has died", done.stderr), done.stderr
    assert len(pids) == 4 and not any(lives(p) for p in pids)


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        ("jax.jit(lambda a: (a * 3).max())(a).block_until_ready()", r"run different programs in their call \d+.*They differ in line"),
        ("m.sync_global_devices('by myself')", r"run different programs in their call \d+"),
        ("m.process_allgather(3)", r"run different programs in their call \d+"),
        ("step(step(a)).block_until_ready(); step(a).block_until_ready()", r"run different programs in their call \d+|has ended after \d+ calls"),
    ],
)
def test_a_process_that_runs_one_program_more_raises_within_seconds(extra, says):
    begun = time.monotonic()
    out = lines(
        MESH
        + f"""
def work():
    if i == 1:
        {extra}
    for k in range(3):
        jax.jit(lambda a: (a + k).sum())(a).block_until_ready()
told(work)
"""
    )
    assert time.monotonic() - begun < 25
    assert any(re.search(says, line) for line in out), out
    assert len(out) == 2 or "ended" in out[0]


def test_programs_on_other_axes_are_compared_too():
    out = lines(
        MESH
        + """
grid = jax.make_mesh((2, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
b = jax.device_put(np.ones((4, 4), np.float32), NamedSharding(grid, P("x", "y")))
told(lambda: jax.jit(lambda b: b.sum(i % 2))(b).block_until_ready())
""",
        processes=4,
    )
    assert len(out) >= 2 and any("run different programs" in line and "They differ in line" in line for line in out), out


@pytest.mark.parametrize("how", ["sys.exit(0)", "os._exit(0)", "sys.exit(3)"])
def test_a_process_that_ends_early_ends_those_that_wait_for_it(how):
    begun = time.monotonic()
    done = mpirun(
        MESH
        + f"""
if i == 1:
    {how}
for _ in range(3):
    step(a).block_until_ready()
""",
        processes=3,
    )
    assert time.monotonic() - begun < 25 and done.returncode != 0
    assert re.search(r"process 1 has ended after \d+ calls|process 1 \(pid \d+ on .*\) has died", done.stderr), done.stderr


def test_unread_results_are_computed_for_the_others():
    out = lines(
        MESH
        + """
for _ in range(20):
    b = step(a)
if i == 0:
    sys.exit()
b.block_until_ready()
print("done")
""",
        processes=3,
    )
    assert out == ["done", "done"]


@BY
def test_an_interrupt_in_one_process_reaches_those_that_wait_and_all_continue(transport):
    out = lines(
        MESH
        + """
import threading
def interrupted(f):
    if i == 1:
        threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    if i == 2:
        time.sleep(3)
    try:
        return f()
    except KeyboardInterrupt:
        print(i, "interrupted", flush=True)

twice = jax.jit(lambda a: a * (a / a.sum()).max())
twice(a).block_until_ready()
# what it has sent already is there; what it would have sent later is not
told(lambda: interrupted(lambda: m.process_allgather(i)))
told(lambda: interrupted(lambda: twice(a).block_until_ready()))
m.sync_global_devices("after")
print(i, "goes on", float(m.process_allgather(step(a)).sum()) > 0)
""",
        processes=3,
        transport=transport,
    )
    assert [line for line in out if "goes on" in line] == [f"{k} goes on True" for k in range(3)]
    assert out.count("1 interrupted") == 2 and sum("process 1 has given up" in line for line in out) == 2, out


def test_a_callback_that_fails_in_one_process_fails_the_call_in_all():
    out = lines(
        MESH
        + """
from ferrax.experimental import io_callback
def check(x):
    if i == 0:
        raise ValueError("too large")
    return x
def f(a):
    b = io_callback(check, jax.ShapeDtypeStruct((), np.float32), a.sum())
    return (a * b).sum()
told(lambda: jax.jit(f)(a).block_until_ready())
print(i, "goes on", float(step(a).addressable_data(0)[0]) > 0)
"""
    )
    assert sum("goes on True" in line for line in out) == 2, out
    assert any("0" == line[0] and "too large" in line for line in out) and any("1" == line[0] and "given up" in line for line in out), out


def test_a_waiting_process_names_the_other_and_the_lines_of_both():
    done = mpirun(
        MESH
        + """
from ferrax._runtime import processes as _processes
_processes.REPORT_AFTER = 1.0
def loads_data():
    time.sleep(4)
if i == 1:
    loads_data()
m.process_allgather(i)
"""
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"process 0 has waited 1 s for process 1, at <string>:\d+ in <module>; process 1 is at <string>:\d+ in loads_data", done.stderr), (
        done.stderr
    )


@pytest.mark.parametrize("work", ["time.sleep(7)", "ctypes.PyDLL(None).sleep(4)"])
def test_a_process_that_computes_long_is_no_error(work):
    """It answers, also while one of its threads keeps the interpreter to itself."""
    out = lines(
        f"""
import ctypes, time
from ferrax._runtime import processes as _processes
_processes.REPORT_AFTER = 0.5
_processes.engine().set_bounds(2.0, 3.0)
if i == 1:
    {work}
print(m.process_allgather(i).tolist())
"""
    )
    assert out == ["[0, 1]"] * 2


def test_processes_that_wait_for_each_other_in_a_circle_are_named():
    out = lines(
        MESH
        + """
from ferrax._runtime import processes as _processes
e = _processes.engine()
e.set_bounds(None, 2.0)
told(lambda: e.exchange("circle", [(i + 1) % 3], [b""]))
""",
        processes=3,
    )
    assert len(out) == 3 and any("TimeoutError" in line and "wait for each other" in line for line in out), out


EACH = pytest.mark.parametrize("devices", [1, 2])


@EACH
@BY
def test_the_first_call_that_differs_is_reported_in_both(devices, transport):
    """One process is further than the other when the difference is found: the first call that differs counts, not the one in which one of them waits."""
    out = lines(
        MESH
        + """
def work():
    if i:
        step(a).sum().block_until_ready()
    (a * 2).max().block_until_ready()
told(work)
""",
        devices=devices,
        transport=transport,
    )
    calls = {re.search(r"run different programs in their call (\d+)", line).group(1) for line in out}
    assert len(out) == 2 and len(calls) == 1, out


# a program is one, and what it meets differs by device
APART = {
    "branch": "jax.shard_map(lambda x: jax.lax.cond(jax.lax.axis_index('x') < N // 2, lambda x: jax.lax.psum(x, 'x'), lambda x: x, x), check_vma=False, **over)(a)",
    "trips": """jax.shard_map(
        lambda x: jax.lax.while_loop(lambda c: c[0] < 2 + jax.lax.axis_index('x'), lambda c: (c[0] + 1, jax.lax.ppermute(c[1], 'x', turn)), (0, x))[1], check_vma=False, **over)(a)""",
    "gather": "jax.shard_map(lambda x: jax.lax.cond(jax.lax.axis_index('x') > 0, lambda x: jax.lax.all_gather(x, 'x').sum(0), lambda x: x, x), check_vma=False, **over)(a)",
}
OVER = """
N = jax.device_count()
turn = [(k, (k + 1) % N) for k in range(N)]
over = dict(mesh=mesh, in_specs=P("x"), out_specs=P("x"))
"""


@EACH
@pytest.mark.parametrize("program", APART)
@pytest.mark.parametrize("then", ["ends", "goes on", "computes"])
def test_a_collective_that_only_some_devices_come_to_is_an_error(program, then, devices):
    after = {"ends": "", "goes on": "told(lambda: step(a).block_until_ready())", "computes": "time.sleep(3)"}[then]
    done = mpirun(MESH + OVER + f"told(lambda: jax.jit(lambda a: {APART[program]})(a).block_until_ready())\n{after}\n", devices=devices, timeout=90)
    assert "every device must come to the same collectives in the same order" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("program", APART)
def test_devices_of_one_process_that_run_other_collectives_are_an_error(program):
    env = {**os.environ, "FERRAX_NUM_CPU_DEVICES": "4"}
    begin = "import ferrax as jax, numpy as np\nimport ferrax.numpy as jnp\ni = 0\n"
    code = begin + MESH + OVER + f"told(lambda: jax.jit(lambda a: {APART[program]})(a).block_until_ready())\nprint(float(step(a)[0]))\n"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=90)
    assert done.returncode == 0 and "every device must come to the same collectives in the same order" in done.stdout, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "2016.0"


def started(settings, program, transport="MpiTransport"):
    """The program in processes that call `initialize` with these settings."""
    run, env = command(2)
    begin = "import os, signal, sys, time\nimport ferrax as jax, numpy as np\nimport ferrax.numpy as jnp\n"
    code = begin + f"jax.distributed.initialize({settings})\ni = jax.process_index()\n" + MESH + program
    return subprocess.run([*run, "-c", code], env=env | TRANSPORTS[transport], capture_output=True, text=True, timeout=90)


STOPPED = """
from ferrax.experimental import multihost_utils as m
m.sync_global_devices("both are here")
if i == 1:
    os.kill(os.getpid(), signal.SIGSTOP)
"""


@BY
def test_a_stopped_process_does_not_keep_the_others_at_their_end(transport):
    done = started("heartbeat_timeout_seconds=2", STOPPED, transport)
    assert done.returncode != 0 and "nothing was heard from process 1 for 2 s (heartbeat_timeout_seconds)" in done.stderr, done.stderr
    done = started("heartbeat_timeout_seconds=0, shutdown_timeout_seconds=2", STOPPED, transport)
    assert done.returncode != 0 and "process 1 did not end within 2 s (shutdown_timeout_seconds)" in done.stderr, done.stderr


@BY
def test_a_stopped_process_is_waited_for_no_longer_than_the_heartbeat(transport):
    done = started("heartbeat_timeout_seconds=2", STOPPED + "told(lambda: step(a).block_until_ready())\n", transport)
    assert done.returncode != 0 and "0 TimeoutError process 0 has waited" in done.stdout and "nothing was heard from process 1" in done.stderr, (
        done.stdout + done.stderr
    )


def test_a_process_that_computes_past_the_shutdown_timeout_is_ended():
    done = started("shutdown_timeout_seconds=2", "from ferrax.experimental import multihost_utils as m\nm.sync_global_devices('here')\nif i: time.sleep(60)\n")
    assert done.returncode != 0 and "process 1 did not end within 2 s (shutdown_timeout_seconds); process 1 is at" in done.stderr, done.stderr


def test_processes_that_do_not_appear_in_time_are_an_error():
    run, env = command(2)
    code = "import os, time\nif os.environ['OMPI_COMM_WORLD_RANK'] == '1': time.sleep(40)\nimport ferrax as jax\njax.distributed.initialize(initialization_timeout=2)\n"
    done = subprocess.run([*run, "-c", code], env=env, capture_output=True, text=True, timeout=90)
    assert done.returncode != 0 and "not all of the run's 2 processes have appeared within 2 s (initialization_timeout); process 0 ends" in done.stderr, (
        done.stderr
    )


@EACH
@pytest.mark.parametrize("leaves", ["os._exit(0)", "sys.exit(0)", "raise ValueError('of the child')"])
def test_a_forked_child_takes_no_part_in_the_run(leaves, devices):
    """It computes by itself; what several processes do is refused there, and its end is not theirs."""
    done = mpirun(
        MESH
        + f"""
import warnings
warnings.simplefilter("ignore")
sys.stdout.flush()
pid = os.fork()
if pid == 0:
    for name, f in dict(
        jit=lambda: step(a).block_until_ready(), eager=lambda: (a + a.sum()).block_until_ready(), gather=lambda: m.process_allgather(1),
        barrier=lambda: m.sync_global_devices("x"), put=lambda: jax.device_put(np.ones(4), NamedSharding(mesh, P())), end=jax.distributed.shutdown,
    ).items():
        try:
            f()
        except RuntimeError as e:
            print("child", name, "was forked from process" in str(e), flush=True)
    print("child", float(jax.jit(lambda x: (x * 2).sum())(jnp.ones(8))), [float(x.data[0]) for x in a.addressable_shards][0] >= 0, flush=True)
    {leaves}
os.waitpid(pid, 0)
print("parent", float(step(a).sum()) > 0, flush=True)
""",
        devices=devices,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(
        [f"child {name} True" for name in ("jit", "eager", "gather", "barrier", "put", "end")] * 2 + ["child 16.0 True", "parent True"] * 2
    ), done.stdout + done.stderr


def run_alone(program, **variables):
    env = {**os.environ, **variables}
    return subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=60)


ALONE = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}


def test_without_mpi4py_the_error_names_the_remedy():
    done = run_alone("import sys; sys.modules['mpi4py'] = None\nimport ferrax\nferrax.distributed.initialize()", **ALONE)
    assert done.returncode != 0 and "pip install mpi4py" in done.stderr


def test_an_mpi_without_threads_is_refused():
    program = """
import sys, types
mpi = types.ModuleType("mpi4py.MPI")
mpi.THREAD_SERIALIZED, mpi.Query_thread = 2, lambda: 1
package = types.ModuleType("mpi4py")
package.MPI = mpi
sys.modules |= {"mpi4py": package, "mpi4py.MPI": mpi}
import ferrax
ferrax.distributed.initialize()
"""
    done = run_alone(program, **ALONE)
    assert done.returncode != 0 and "takes calls from one thread only" in done.stderr and "thread_level" in done.stderr


def test_a_short_soak():
    """A round of each mode of `soak_processes.py`; `cargo xtask soak processes --seconds 3600` is the long form."""
    command(2)  # skips where there is no MPI
    soak = pathlib.Path(__file__).parents[1].joinpath("soak_processes.py")
    done = subprocess.run([sys.executable, soak, "--seconds", "15", "--processes", "3", "--devices", "1"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
