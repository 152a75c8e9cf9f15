"""What carries messages between processes: the MPI library itself, and mpi4py where the library takes calls of one thread at a time. Both do the same."""

import pathlib

import pytest
from processes import TRANSPORTS, lines

pytestmark = pytest.mark.ours

EACH = pytest.mark.parametrize("transport", TRANSPORTS)
WIRE = """
from ferrax._runtime import processes
engine = processes.engine()
wire, others = engine.transport, engine.others()
assert type(wire).__name__ == NAME

def arrived(transfer):
    while (found := transfer.poll()) is None:
        pass
    return found

def together():
    m.sync_global_devices("together")
"""


def told(program, transport, **options):
    return lines(WIRE.replace("NAME", repr(transport)) + program, transport=transport, **options)


@EACH
def test_messages_of_all_lengths_arrive_in_any_order(transport):
    """Many transfers are under way at once, begun in one order and asked for in others on each process; some share a tag."""
    out = told(
        """
SIZES = [0, 1, 100, 3071, 3072, 3073, 4096, 65_535, 65_536, 65_537, 1_000_003]
tags = min(engine.comm.Get_attr(engine.mpi.TAG_UB) or 32767, (1 << 31) - 1)

def message(source, to, number):
    r = np.random.default_rng([source, to, number])
    return r.bytes(SIZES[r.integers(len(SIZES))])

for seed in range(20):
    same = np.random.default_rng(seed)
    base = 1000 + 50 * seed
    numbers = [base + int(k) % 5 + tags * int(same.integers(1, 4)) * 100 + tags * int(k) for k in range(12)]
    mine = np.random.default_rng([seed, i])
    transfers = {n: wire.begin(n, n + 7, others, [message(i, p, n) for p in others], others) for n in mine.permutation(numbers).tolist()}
    while transfers:  # a long message leaves when its receiver asks for it
        for n in mine.permutation(list(transfers)).tolist():
            if (found := transfers[n].poll()) is not None:
                assert found == [message(p, i, n) for p in others], (seed, n)
                del transfers[n]
print("all")
""",
        transport,
        processes=3,
    )
    assert out == ["all"] * 3


@EACH
def test_messages_of_other_programs_are_kept_apart_and_an_abandoned_call_disturbs_none(transport):
    out = told(
        """
together()
before = wire.sent(), wire.taken()
big = bytes(range(256)) * 1000
for n, size in enumerate((10, len(big))):
    wrong = wire.begin(100 + n, i, others, [big[:size]], others)  # each by a digest of its own
    while not wrong.wrong():
        assert wrong.poll() is None
    assert wrong.wrong() == others and wrong.missing() == others
    wrong.cancel()
    given_up = wire.begin(200 + n, 0, others, [big[:size]], others)
    given_up.cancel()
    del given_up
    assert arrived(wire.begin(300 + n, 0, others, [big], others)) == [big]
assert wire.sent()[others[0]] - before[0][others[0]] == 6 and wire.sent()[i] == 0
# a peer that has sent all that it sends has sent nothing for this one
lone = wire.begin(400, 0, [], [], others)
together()
sent = wire.sent()[others[0]]
assert lone.receives_from(others[0]) and not lone.receives_from(i) and lone.poll() is None
together()
print("told apart", lone.has_none(others[0], sent))
lone.cancel()
""",
        transport,
    )
    assert out == ["told apart True"] * 2


@EACH
def test_one_message_for_all_and_messages_one_way(transport):
    out = told(
        """
data = bytes(100_000)
assert arrived(wire.begin(1, 0, others, [data] * 3, others)) == [data] * 3
hop = wire.begin(2, 0, [(i + 1) % 4], [str(i).encode() * 5000], [(i - 1) % 4])
print(arrived(hop)[0][:1].decode() == str((i - 1) % 4))
assert arrived(wire.begin(3, 0, [], [], [])) == []
""",
        transport,
        processes=4,
    )
    assert out == ["True"] * 4


def test_messages_of_devices_do_not_pass_the_interpreter():
    out = told(
        """
def refused(*args):
    raise AssertionError("a message by the interpreter")

P, mesh = jax.sharding.PartitionSpec, jax.sharding.Mesh(np.array(jax.devices()), ("x",))
engine.begin = refused
f = jax.jit(jax.shard_map(lambda x: (jax.lax.psum(x, "x"), jax.lax.all_gather(x, "x"), jax.lax.ppermute(x, "x", [(0, 1)])), mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))
before = sum(wire.sent())
jax.block_until_ready(f(np.ones((4, 1000), np.float32)))
print(sum(wire.sent()) > before)
del engine.begin
""",
        "MpiTransport",
        devices=2,
    )
    assert out == ["True"] * 2


def test_random_programs_by_mpi4py_give_what_one_device_gives():
    out = told(
        f"""
import sys
sys.path.insert(0, {str(pathlib.Path(__file__).parents[1])!r})
from process_programs import check
for seed in range(15):
    for problem in check(jax, seed):
        print(problem)
print("done")
""",
        "Transport",
        devices=2,
        timeout=300,
    )
    assert out == ["done"] * 2
