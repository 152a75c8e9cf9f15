"""PyTorch's DataLoader with a collate of NumPy's: loaders in the process, in forked and in spawned workers, training from them, arrays to and from tensors."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

torch = pytest.importorskip("torch")

import torch.utils.data as td  # noqa: E402 - skipped before this where there is no PyTorch
from flax import linen as nn  # noqa: E402
from flax.training import train_state  # noqa: E402
from outcomes import ON_JAX, Programs  # noqa: E402
from torch_datasets import (  # noqa: E402
    Broken,
    Digits,
    OnArrays,
    Ragged,
    Records,
    Squares,
    Stream,
    array_collate,
    flattened,
    numpy_collate,
    padded_collate,
    seeded,
)


def loader(data, size=4, **how):
    return td.DataLoader(data, batch_size=size, **{"collate_fn": numpy_collate} | how)


def drawn(seed=0):
    return torch.Generator().manual_seed(seed)


def summed(batches):
    """How many batches there were, the shapes of the last, and a number for each that tells them and their order apart."""
    batches = [jax.tree.map(jnp.asarray, b) for b in batches]
    marks = [sum((leaf * jnp.arange(1.0, len(leaf) + 1).reshape(-1, *[1] * (leaf.ndim - 1))).sum() for leaf in jax.tree.leaves(b)) for b in batches]
    return len(batches), batches[-1], jnp.stack(marks)


def loaders(t):
    data = Squares()
    t("in order", lambda: summed(loader(data)))
    t("last dropped", lambda: summed(loader(data, 6, drop_last=True)))
    t("last kept", lambda: summed(loader(data, 6)))
    t("shuffled", lambda: summed(loader(data, shuffle=True, generator=drawn())))
    t("two epochs of one generator", lambda: [summed(epoch)[2] for it in [loader(data, shuffle=True, generator=drawn())] for epoch in (it, it)])
    t("a sampler", lambda: summed(loader(data, sampler=td.SequentialSampler(data))))
    t("weighted", lambda: summed(loader(data, sampler=td.WeightedRandomSampler(data.x**2, 12, generator=drawn(1)))))
    t("of a subset", lambda: summed(loader(data, sampler=td.SubsetRandomSampler([3, 1, 9, 2, 5], generator=drawn(2)))))
    t("a batch sampler", lambda: summed(td.DataLoader(data, batch_sampler=[[0, 5], [1, 2, 3]], collate_fn=numpy_collate)))
    t("split", lambda: [summed(loader(part))[2] for part in td.random_split(data, [15, 5], drawn(3))])
    t("joined", lambda: summed(loader(td.ConcatDataset([data, Squares(5)]))))
    t("subset", lambda: summed(loader(td.Subset(data, range(0, 20, 3)))))
    t("stacked", lambda: summed(loader(td.StackDataset(data, Squares(20)))))
    t("of tensors", lambda: summed(loader(td.TensorDataset(torch.arange(8.0), torch.eye(8)))))
    t("one at a time", lambda: summed(td.DataLoader(data, batch_size=None, collate_fn=lambda item: jax.tree.map(jnp.asarray, item))))
    t("their own collate", lambda: summed([[b.numpy() for b in pair] for pair in td.DataLoader(data, 4)]))
    t("collated to arrays", lambda: summed(loader(data, collate_fn=array_collate)))
    t("padded", lambda: [jax.tree.map(jnp.asarray, b) for b in loader(Ragged(7), collate_fn=padded_collate)])
    t("a stream", lambda: [jnp.asarray(b) for b in loader(Stream())])
    t("streams in a chain", lambda: [jnp.asarray(b) for b in loader(td.ChainDataset([Stream(3), Stream(4)]), 3)])
    t("records", lambda: [(jnp.asarray(b["x"]), jnp.asarray(b["at"][1][0]), list(map(str, b["name"]))) for b in loader(Records(6), 3)])
    t("length", lambda: (len(loader(data, 6)), len(loader(data, 6, drop_last=True)), len(data)))


def workers(t):
    data = Squares()
    for how in ("fork", "spawn"):
        mapped = {"num_workers": 2, "multiprocessing_context": how}
        t(f"{how}: in order", lambda: summed(loader(data, **mapped)))
        t(f"{how}: shuffled", lambda: summed(loader(data, shuffle=True, generator=drawn(), worker_init_fn=seeded, prefetch_factor=3, **mapped)))
        t(f"{how}: a stream", lambda: [jnp.asarray(b) for b in loader(Stream(), 2, **mapped)])
        t(f"{how}: records", lambda: [(jnp.asarray(b["x"]), str(b["name"][-1])) for b in loader(Records(6), 3, **mapped)])
        t(f"{how}: an item that fails", lambda: list(loader(Broken(), **mapped)), raises=KeyError, why="the data set raises it")
        t(f"{how}: persistent", lambda: [summed(epoch)[2] for it in [loader(data, persistent_workers=True, **mapped)] for epoch in (it, it)])
        t(f"{how}: trained", lambda: trained(loader(Digits(transform=flattened), 16, shuffle=True, generator=drawn(), **mapped)))
    t("spawn: computed there", lambda: [jnp.asarray(b) for b in loader(OnArrays(6), 3, num_workers=1, multiprocessing_context="spawn")])


def perceptron():
    keys = jax.random.split(jax.random.key(0), 2)
    return [(jax.random.normal(k, (m, n)) * 0.1, jnp.zeros(n)) for k, m, n in zip(keys, (16, 8), (8, 2), strict=True)]


def logits(params, x):
    (w, b), (v, c) = params
    return jnp.tanh(x @ w + b) @ v + c


@jax.jit
def update(params, x, y):
    loss = lambda p: optax.softmax_cross_entropy_with_integer_labels(logits(p, x), y).mean()
    value, grads = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.5 * g, params, grads), value


def trained(batches, epochs=2):
    """The losses of a perceptron, and its parameters, after some epochs."""
    params, losses = perceptron(), []
    for _ in range(epochs):
        for x, y in batches:
            params, loss = update(params, x, y)
            losses.append(loss)
    return jnp.stack(losses), params


def by_flax(batches):
    """A TrainState of Flax, with Adam, over an epoch; and how many labels it then guesses."""
    net = nn.Sequential([nn.Conv(4, (2, 2)), nn.relu, lambda x: x.reshape(len(x), -1), nn.Dense(2)])
    state = train_state.TrainState.create(apply_fn=net.apply, params=net.init(jax.random.key(0), jnp.ones((1, 4, 4, 1))), tx=optax.adam(0.02))

    @jax.jit
    def step(state, x, y):
        loss = lambda p: optax.softmax_cross_entropy_with_integer_labels(state.apply_fn(p, x[..., None]), y).mean()
        value, grads = jax.value_and_grad(loss)(state.params)
        return state.apply_gradients(grads=grads), value

    losses = []
    for x, y in batches:
        state, loss = step(state, x, y)
        losses.append(loss)
    data = Digits()
    right = (net.apply(state.params, data.pictures[..., None]).argmax(-1) == data.labels).mean()
    return jnp.stack(losses), right > 0.9


def resumed():
    """An epoch, the generator's state kept; another; and the second again from what was kept."""
    order = drawn(5)
    batches = loader(Digits(transform=flattened), 16, shuffle=True, generator=order)
    trained(batches, 1)
    kept = order.get_state()
    second = trained(batches, 1)[0]
    order.set_state(kept)
    return second, trained(batches, 1)[0]


def accumulated():
    """The gradients of several batches, put together by Optax, before a step."""
    how = optax.MultiSteps(optax.sgd(0.5), 2)
    params = perceptron()
    state = how.init(params)
    loss = jax.jit(jax.grad(lambda p, x, y: optax.softmax_cross_entropy_with_integer_labels(logits(p, x), y).mean()))
    for x, y in loader(Digits(transform=flattened), 16):
        updates, state = how.update(loss(params, x, y), state, params)
        params = optax.apply_updates(params, updates)
    return params


def called_back():
    """Batches that a program asks for while it runs."""
    batches = iter(loader(Digits(transform=flattened), 16))
    shapes = (jax.ShapeDtypeStruct((16, 16), np.float32), jax.ShapeDtypeStruct((16,), np.int32))

    def fetch():
        x, y = next(batches)
        return x, y.astype(np.int32)

    def body(params, _):
        x, y = jax.experimental.io_callback(fetch, shapes, ordered=True)
        return update(params, x, y)

    return jax.jit(lambda p: jax.lax.scan(body, p, None, 4))(perceptron())


def training(t):
    flat = Digits(transform=flattened)
    t("trained", lambda: trained(loader(flat, 16, shuffle=True, generator=drawn())))
    t("trained from tensors", lambda: trained([(jnp.from_dlpack(x), jnp.from_dlpack(y)) for x, y in td.DataLoader(flat, 16)]))
    t("trained by flax", lambda: by_flax(loader(Digits(), 16, shuffle=True, generator=drawn())))
    t("trained on a split", lambda: trained(loader(td.random_split(flat, [0.75, 0.25], drawn())[0], 12)))
    t("resumed", resumed)
    t("accumulated", accumulated)
    t("called back", called_back)
    t(
        "whole epochs in a scan",
        lambda: jax.lax.scan(lambda p, b: update(p, *b), perceptron(), jax.tree.map(jnp.asarray, numpy_collate(list(loader(flat, 16))))),
    )
    t("the last batch smaller", lambda: trained(loader(flat, 24)))
    t("labels of 64 bits", lambda: [b[1].dtype.name for b in loader(flat, 32)] + [jnp.asarray(b[1]) for b in loader(flat, 32)])


DTYPES = ("float32", "float16", "bfloat16", "int32", "int16", "int8", "uint8", "bool", "complex64")


def exchange(t):
    for name in DTYPES:
        there = torch.arange(6).reshape(2, 3).to(getattr(torch, name))
        here = jnp.arange(6).reshape(2, 3).astype(name)
        t(f"from {name}", lambda: (jnp.from_dlpack(there), jnp.from_dlpack(there).dtype.name))
        t(f"to {name}", lambda: (str(torch.from_dlpack(here).dtype), jnp.asarray(torch.from_dlpack(here).to(torch.float32).numpy())))
        t(f"there and back {name}", lambda: jnp.from_dlpack(torch.from_dlpack(here)))
    t("from 64 bits", lambda: (jnp.asarray(torch.arange(3)), jnp.asarray(torch.ones(2, dtype=torch.float64))))
    t("from a scalar", lambda: jnp.from_dlpack(torch.tensor(2.5)))
    t("to a scalar", lambda: float(torch.from_dlpack(jnp.float32(2.5))))
    t("from nothing", lambda: jnp.from_dlpack(torch.zeros(0, 3)))
    t("to nothing", lambda: list(torch.from_dlpack(jnp.zeros((0, 3))).shape))
    t("from a transpose", lambda: jnp.from_dlpack(torch.arange(6.0).reshape(2, 3).T))
    t("from rows", lambda: jnp.from_dlpack(torch.arange(12.0).reshape(3, 4)[1:]))
    t("from every other", lambda: jnp.asarray(torch.arange(12.0)[::2]))
    t("from a broadcast", lambda: jnp.asarray(torch.ones(3, 1).expand(3, 2)))
    t("from channels last", lambda: jnp.from_dlpack(torch.arange(16.0).reshape(1, 2, 2, 4).contiguous(memory_format=torch.channels_last)))
    t(
        "from what wants gradients",
        lambda: jnp.from_dlpack(torch.ones(2, requires_grad=True)),
        raises=BufferError,
        why="PyTorch exports no tensor that requires gradients",
    )
    t("from what wanted gradients", lambda: jnp.from_dlpack(torch.ones(2, requires_grad=True).detach()))
    t("copied", lambda: jnp.from_dlpack(torch.arange(4.0), copy=True))
    t("by numpy", lambda: jnp.asarray(torch.arange(4.0).numpy()))
    t("by an array", lambda: (jnp.asarray(torch.arange(4.0)), jnp.array(torch.eye(2))))
    t("to by numpy", lambda: jnp.asarray((torch.from_numpy(np.array(jnp.arange(4.0))) * 2).numpy()))
    t("as a tensor", lambda: jnp.asarray(torch.as_tensor(np.asarray(jnp.eye(2))).numpy()))
    t("in an operation", lambda: jnp.add(jnp.ones(3), torch.arange(3.0).numpy()))
    t("by jit", lambda: jax.jit(lambda a: a * 2)(jnp.from_dlpack(torch.arange(3.0))))
    t("a jit's result there", lambda: float(torch.from_dlpack(jax.jit(lambda a: a * 2)(jnp.ones(3))).sum()))
    t("gradients there and here", lambda: gradients())
    t("a tree of tensors", lambda: jax.tree.map(jnp.from_dlpack, {"w": torch.eye(2), "b": [torch.ones(2)]}))
    t("a module's parameters", lambda: weights())
    t("one after the other", lambda: jnp.from_dlpack(torch.from_dlpack(jnp.from_dlpack(torch.arange(3.0)) + 1) * 2))
    t("a tensor in a program", lambda: jax.jit(lambda a: a + 1)(torch.ones(3)), raises=TypeError, why="a tensor is not an array")
    t("from a sparse one", lambda: jnp.from_dlpack(torch.eye(3).to_sparse()), raises=BufferError, why="the tensor is sparse")
    t("kept after its tensor", kept)


def gradients():
    """One function here and there: the differences of values and gradients."""
    x = np.linspace(-1, 1, 6, dtype=np.float32)
    there = torch.tensor(x, requires_grad=True)
    value = (torch.tanh(there) ** 2).sum()
    value.backward()
    here, grad = jax.value_and_grad(lambda a: (jnp.tanh(a) ** 2).sum())(x)
    return jnp.abs(here - float(value)) < 1e-5, jnp.abs(grad - jnp.from_dlpack(there.grad)).max() < 1e-5


def weights():
    """A perceptron of PyTorch's, and one here with its parameters."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    p = {name: jnp.asarray(value.numpy()) for name, value in net.state_dict().items()}
    x = np.arange(6, dtype=np.float32).reshape(2, 3) / 6
    here = jnp.tanh(x @ p["0.weight"].T + p["0.bias"]) @ p["2.weight"].T + p["2.bias"]
    return here, jnp.abs(here - jnp.asarray(net(torch.tensor(x)).detach().numpy())).max() < 1e-5


def kept():
    """An array whose tensor is gone."""
    there = torch.arange(100.0)
    here = jnp.from_dlpack(there)
    del there
    torch.full((100,), -1.0)
    return here.sum()


def mistakes(t):
    t("ragged", lambda: list(loader(Ragged())), raises=ValueError, why="the items have other lengths")
    t("an item that fails", lambda: list(loader(Broken())), raises=KeyError, why="the data set raises it")
    t("beyond its end", lambda: list(loader(Squares(), sampler=[0, 99])), raises=IndexError, why="the sampler goes beyond the data")
    t("shuffled stream", lambda: loader(Stream(), shuffle=True), raises=ValueError, why="a stream has no order to shuffle")
    t("of other width", lambda: update(perceptron(), *next(iter(loader(Squares())))), raises=TypeError, why="the layer has other inputs")
    t("pictures not flattened", lambda: trained(loader(Digits(), 16)), raises=TypeError, why="the layer has other inputs")
    t("texts", lambda: jnp.asarray(next(iter(loader(Records(4))))["name"]), raises=TypeError, why="texts are not numbers")
    t("no batch", lambda: loader(Squares(), 0), raises=ValueError, why="a batch has elements")
    t("a list of tensors", lambda: jnp.asarray([torch.tensor(1.0), torch.tensor(2.0)]))


def programs(t):
    loaders(t)
    workers(t)
    training(t)
    exchange(t)
    mistakes(t)


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_torch_data(name):
    PROGRAMS.check(name)


@pytest.mark.skipif(ON_JAX, reason="JAX refuses strides with gaps, and its threads do not survive a fork")
class TestWhatJaxRefuses:
    def test_a_part_of_a_tensor_is_read(self):
        there = torch.arange(12.0).reshape(3, 4)
        np.testing.assert_array_equal(jnp.from_dlpack(there[1:, :2]), [[4, 5], [8, 9]])
        np.testing.assert_array_equal(jnp.from_dlpack(there[:, ::2].T), [[0, 4, 8], [2, 6, 10]])

    def test_forked_workers_compute(self):
        want = np.sin(np.arange(6, dtype=np.float32)) + np.linspace(-1, 1, 6, dtype=np.float32) ** 2
        got = list(loader(OnArrays(6), 3, num_workers=2, multiprocessing_context="fork"))
        np.testing.assert_allclose(np.concatenate(got), want, rtol=1e-6)

    def test_forked_workers_send_arrays(self):
        got = list(loader(Squares(), 5, collate_fn=array_collate, num_workers=2, multiprocessing_context="fork"))
        assert all(isinstance(leaf, jax.Array) for pair in got for leaf in pair)
        np.testing.assert_allclose(np.concatenate([x for x, _ in got])[:, 0], np.linspace(-1, 1, 20), rtol=1e-6)
