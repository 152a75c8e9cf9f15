"""Checkpoints that several processes write together, by TensorStore; also where a process fails to write."""

import pytest
from processes import lines

pytestmark = pytest.mark.ours

BEGIN = """
from ferrax.experimental.array_serialization.serialization import GlobalAsyncCheckpointManager
from ferrax.sharding import NamedSharding, PartitionSpec as P
n = jax.process_count()
rows = NamedSharding(jax.make_mesh((len(jax.devices()),), ("x",)), P("x"))
x = jax.jit(lambda: jnp.arange(32.0).reshape(16, 2), out_shardings=rows)() if 16 % n == 0 else None
manager = GlobalAsyncCheckpointManager(timeout_secs=60)
def attempt(f):
    try:
        f()
    except Exception as e:
        return f"{type(e).__name__}: {e}"
def part(value):
    class Future:
        def result(self):
            if isinstance(value, Exception):
                raise value
            return value
    return Future()
"""


@pytest.mark.parametrize(("processes", "devices"), [(2, 2), (4, 1)])
def test_a_checkpoint_is_complete_once_all_have_written(tmp_path, processes, devices):
    pytest.importorskip("tensorstore")
    program = """
        done = []
        for k in range(3):
            paths = [f"ROOT/{k}/x", f"ROOT/{k}/y"]
            manager.serialize_with_paths([x * k, x.astype(int) + k], paths, on_commit_callback=lambda k=k: done.append(k))
        back, whole = manager.deserialize_with_paths([rows, rows], paths)
        assert done == ([0, 1, 2] if i == 0 else []), done
        assert back.sharding == rows
        np.testing.assert_array_equal(m.process_allgather(back, tiled=True), np.arange(32.0).reshape(16, 2) * 2)
        np.testing.assert_array_equal(m.process_allgather(whole, tiled=True), np.arange(32).reshape(16, 2) + 2)
        print(i)
        """
    assert lines(BEGIN + program.replace("ROOT", str(tmp_path)).replace("\n        ", "\n"), processes=processes, devices=devices) == [
        str(p) for p in range(processes)
    ]


def test_a_failure_of_one_process_is_told_to_all():
    program = """
def bad():
    raise OSError("disk full")
for k in range(2):
    manager._add_futures([part(OSError("part of 1")) if i == 1 else part(None)])
    manager._start_async_commit(None)
    text = attempt(manager.wait_until_finished)
    assert text == ("OSError: part of 1" if i == 1 else "RuntimeError: the checkpoint is not complete: process 1 raised OSError('part of 1')"), text
    manager._add_futures([part(None)])
    manager._start_async_commit(bad)
    text = attempt(manager.wait_until_finished)
    assert text == ("OSError: disk full" if i == 0 else "RuntimeError: the checkpoint is not complete: process 0 raised OSError('disk full')"), text
    manager._add_futures([part(None)])
    manager._start_async_commit(lambda: None)
    manager.wait_until_finished()
m.sync_global_devices("before one is missing")
if i != 1:
    manager = GlobalAsyncCheckpointManager(timeout_secs=0.2)
    manager._add_futures([])
    manager._start_async_commit(None)
    assert attempt(manager.wait_until_finished).startswith("BarrierTimeoutError: not all processes have written"), text
m.sync_global_devices("end")
print(i)
"""
    assert lines(BEGIN + program, processes=3) == ["0", "1", "2"]
