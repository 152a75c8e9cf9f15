"""Keys and barriers that the processes of a run share: by threads in the place of processes over real connections, and under `mpirun`."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from ferrax._runtime.coordination import Client, Service, Store, serve
from hypothesis import given, settings, strategies as st
from processes import lines

pytestmark = pytest.mark.ours  # JAX's client has no server of its own to try


def run_of(size):
    """The store of a run, and the client of each process: that of process 0 calls it, the others ask over TCP."""
    store = Store(size)
    place = serve(store, alone=True)
    secret = bytes.fromhex(place["secret"])
    return store, [Client(p, size, Service(place["addresses"], secret, None if p else store).ask, 1) for p in range(size)]


STORE, (OWN, REMOTE) = run_of(2)
keys = st.sampled_from(["a", "a/b", "/a//c/", "a/b/d", "e", "ab", ""])
values = st.text(max_size=5) | st.integers(-9, 9).map(str)
requests = st.one_of(
    st.tuples(st.just("key_value_set"), keys, values, st.booleans()),
    st.tuples(st.sampled_from(["key_value_try_get", "key_value_delete", "key_value_dir_get", "key_value_dir_get_bytes", "key_value_try_get_bytes"]), keys),
    st.tuples(st.just("key_value_increment"), keys, st.integers(-9, 9)),
    st.tuples(st.sampled_from(["blocking_key_value_get", "blocking_key_value_get_bytes"]), keys, st.just(1)),
)


def expected(known, what, key, *rest):
    """What a request gives, of a dict from paths to texts."""
    path = "/".join(p for p in key.split("/") if p)
    found = known.get(path)
    as_wanted = (lambda x: x.encode()) if what.endswith("bytes") else (lambda x: x)
    if what == "key_value_set":
        if found is not None and not rest[1]:
            return f"ALREADY_EXISTS: key {path} already exists."
        known[path] = rest[0]
        return None
    if what == "key_value_increment":
        try:
            after = int(found or "0" if found is None else found) + rest[0]
        except ValueError:
            return f'FAILED_PRECONDITION: Failed to parse value "{found}" as an integer.'
        known[path] = str(after)
        return after
    below = sorted((k, v) for k, v in known.items() if k.startswith(path + "/"))
    if what == "key_value_delete":
        for k in [path, *(k for k, _ in below)]:
            known.pop(k, None)
        return None
    if what.startswith("key_value_dir_get"):
        return [(k, as_wanted(v)) for k, v in below]
    if found is not None:
        return as_wanted(found)
    return f"NOT_FOUND: Config key {path} not found." if "try" in what else f"DEADLINE_EXCEEDED: GetKeyValue() timed out with key: {path} and duration: 1ms"


def attempt(f, *args):
    try:
        return f(*args)
    except RuntimeError as e:
        assert type(e).__name__ == "JaxRuntimeError"
        return str(e)


@given(st.lists(st.tuples(st.booleans(), requests), max_size=20))
def test_requests_of_all_processes_are_those_of_one_table(sequence):
    STORE._values.clear()
    known = {}
    for remote, (what, *given_) in sequence:
        wanted = expected(known, what, *given_)
        assert attempt(getattr(REMOTE if remote else OWN, what), *given_) == wanted, (what, given_)
    assert known == {k: v.encode("latin-1").decode() for k, v in STORE._values.items()}


def test_a_value_is_awaited_and_may_be_any_bytes():
    big = bytes(range(256)) * 4000
    with ThreadPoolExecutor() as pool:
        found = [pool.submit(c.blocking_key_value_get_bytes, "awaited", 20_000) for c in (OWN, REMOTE)]
        time.sleep(0.05)
        REMOTE.key_value_set_bytes("awaited", big)
        assert [f.result() for f in found] == [big, big]


@settings(max_examples=20)
@given(st.data())
def test_a_barrier_passes_once_all_its_members_have_come(data):
    size = data.draw(st.integers(1, 4))
    names = data.draw(st.lists(st.sampled_from("xyz"), min_size=1, max_size=4))
    members = {n: data.draw(st.none() | st.sets(st.integers(0, size - 1), min_size=1)) for n in set(names)}
    store, clients = run_of(size)
    came = []

    def process(p):
        for k, n in enumerate(names):
            if members[n] is None or p in members[n]:
                came.append((k, p))
                clients[p].wait_at_barrier(n, 20_000, members[n])
                assert {(k, q) for q in members[n] or range(size)} <= set(came)

    with ThreadPoolExecutor(size) as pool:
        for f in [pool.submit(process, p) for p in range(size)]:
            f.result()
    assert not store._open and not store._rounds and not store._failed  # nothing is left of names that all have passed


@pytest.mark.parametrize(("size", "late"), [(2, {0}), (3, {0, 2}), (4, {1})])
def test_a_barrier_that_fails_fails_for_all_and_can_be_met_again(size, late):
    store, clients = run_of(size)
    words = f"DEADLINE_EXCEEDED: Barrier timed out. Id: x::0. Number of tasks already at the barrier: {size - len(late)}/{size}. Missing: {sorted(late)}"
    with ThreadPoolExecutor(size) as pool:
        early = [pool.submit(attempt, clients[p].wait_at_barrier, "x", 2000) for p in range(size) if p not in late]
        assert {f.result() for f in early} == {words}
        begun = time.monotonic()
        assert {attempt(clients[p].wait_at_barrier, "x", 60_000) for p in late} == {words} and time.monotonic() - begun < 30
        again = [pool.submit(attempt, c.wait_at_barrier, "x", 20_000) for c in clients]
        assert {f.result() for f in again} == {None}
    assert not store._rounds and not store._failed


def test_processes_that_name_other_members_get_one_error():
    _, clients = run_of(3)
    with ThreadPoolExecutor() as pool:
        found = [pool.submit(attempt, clients[p].wait_at_barrier, "x", 20_000, m) for p, m in ((0, [0, 1]), (2, [2, 0]))]
        assert {f.result() for f in found} <= {
            f"INVALID_ARGUMENT: Unexpected task ({p}) that is not in the cluster called the barrier. Barrier Id: x::0" for p in (1, 2)
        }
    assert attempt(clients[2].wait_at_barrier, "y", 20_000, [0, 1]) == (
        "INVALID_ARGUMENT: Unexpected task (2) that is not in the cluster called the barrier. Barrier Id: y::0"
    )
    assert "Unexpected task (7)" in attempt(clients[0].wait_at_barrier, "z", 20_000, [0, 7])


def test_who_has_no_secret_is_refused_and_nothing_else_is_disturbed():
    store = Store(2)
    place = serve(store, alone=True)
    stranger = Client(1, 2, Service(place["addresses"], b"guess", None).ask, 1)
    text = attempt(stranger.key_value_set, "a", "b")
    assert text.startswith("UNAVAILABLE: process 0 cannot be reached: 127.0.0.1:") and not store._values
    friend = Client(1, 2, Service(place["addresses"], bytes.fromhex(place["secret"]), None).ask, 1)
    assert attempt(friend._ask, "_fail", "a") == "INTERNAL: ValueError(\"unknown request '_fail'\")"
    friend.key_value_set("a", "b")
    assert store._values == {"a": "b"} and friend.get_live_nodes([0, 1, 5]) == {0: 2, 1: 3}


def test_many_threads_ask_at_once():
    _, clients = run_of(2)

    def count(k):
        return [clients[k % 2].key_value_increment("n", 1) for _ in range(50)]

    with ThreadPoolExecutor(16) as pool:
        got = [x for xs in pool.map(count, range(16)) for x in xs]
    assert sorted(got) == list(range(1, 801)) and threading.active_count() < 100


@pytest.mark.parametrize("processes", [1, 3])
def test_processes_of_a_run_meet(processes):
    program = """
        import os
        from ferrax._runtime import coordination
        n, c = jax.process_count(), coordination.client()
        assert (c is None) == (n == 1)
        if n > 1:
            c.key_value_set(f"a/{i}", str(i * i))
            c.wait_at_barrier("b", 60_000)
            assert c.key_value_dir_get("a") == [(f"a/{p}", str(p * p)) for p in range(n)]
            pid = os.fork()
            if not pid:  # neither the parent's connections nor its store
                c.key_value_set(f"child/{i}", "here")
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0 and c.blocking_key_value_get(f"child/{(i + 1) % n}", 60_000) == "here"
            jnp.ones(3).sum().block_until_ready()
        print(i)
        """
    assert lines(program, processes=processes) == [str(p) for p in range(processes)]
