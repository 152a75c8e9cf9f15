"""What `test_torch_data.py` loads: in a module of its own, for workers that are spawned import it by name and run none of the programs."""

import jax
import jax.numpy as jnp
import numpy as np
import torch.utils.data as td


class Squares(td.Dataset):
    """Points of a parabola: `(x, y)` of float32 of shape [1]."""

    def __init__(self, n=20):
        self.x = np.linspace(-1, 1, n, dtype=np.float32)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i, None], self.x[i, None] ** 2


class Records(Squares):
    """Dictionaries with numbers, texts and nested tuples."""

    def __getitem__(self, i):
        return {"x": self.x[i], "at": (i, [self.x[i] * 2, i % 3 == 0]), "name": f"row {i}"}


class OnArrays(Squares):
    """Items that are computed by the library in the worker."""

    def __getitem__(self, i):
        return np.asarray(jnp.sin(jnp.float32(i)) + jax.jit(lambda a: a**2)(self.x[i]))


class Digits(td.Dataset):
    """Small pictures of two classes, with a transformation of each."""

    def __init__(self, n=64, transform=None):
        rng = np.random.RandomState(0)
        self.labels = rng.randint(0, 2, n)
        self.pictures = rng.rand(n, 4, 4).astype(np.float32) + self.labels[:, None, None] * np.eye(4, dtype=np.float32)
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return (self.transform or (lambda p: p))(self.pictures[i]), self.labels[i]


class Stream(td.IterableDataset):
    """The numbers below `n`, shared among workers."""

    def __init__(self, n=11):
        self.n = n

    def __iter__(self):
        worker = td.get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        return (np.float32(i) for i in range(first, self.n, step))


class Broken(Squares):
    """Has an item that cannot be read."""

    def __getitem__(self, i):
        if i == 7:
            raise KeyError("no such row")
        return super().__getitem__(i)


class Ragged(Squares):
    """Items of different lengths."""

    def __getitem__(self, i):
        return np.ones(i % 3 + 1, np.float32)


def flattened(picture):
    """A picture as a row."""
    return np.ravel(np.asarray(picture, dtype=np.float32))


def numpy_collate(items):
    """Items of a batch, put together leaf by leaf: as JAX's tutorial of data loading does."""
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *items)


def padded_collate(items):
    """Items of different lengths, with zeros after them, and how long they are."""
    longest = max(len(item) for item in items)
    return np.stack([np.pad(item, (0, longest - len(item))) for item in items]), np.array([len(item) for item in items])


def array_collate(items):
    """Arrays of the library, put together where the loader runs."""
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *items)


def seeded(worker):
    """What a worker runs first: NumPy's generator of its own."""
    np.random.seed(worker)
