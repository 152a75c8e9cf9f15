"""A wheel in an environment of its own: installed, adopted, and a Flax program trained with Optax, with no JAX on disk.

    python tests/fresh_environment.py dist/ferrax-*.whl

It prints what was installed beside what JAX would have brought. Packages come from the index that pip is set to.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import venv
import zipfile

PROGRAM = """
import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from flax.training.train_state import TrainState


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(1)(nn.tanh(nn.Dense(32)(nn.tanh(nn.Dense(32)(x)))))[..., 0]


key, data_key = jax.random.split(jax.random.key(0))
x = jax.random.uniform(data_key, (256, 2), minval=-1, maxval=1)
y = jnp.sin(3 * x[:, 0]) * x[:, 1]
net = Net()
state = TrainState.create(apply_fn=net.apply, params=net.init(key, x), tx=optax.adam(1e-2))


@jax.jit
def step(state, x, y):
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((state.apply_fn(p, x) - y) ** 2))(state.params)
    return state.apply_gradients(grads=grads), loss


losses = [0.0] * 300
for i in range(300):
    state, losses[i] = step(state, x, y)
print("loss", float(losses[0]), "to", float(losses[-1]))
assert losses[-1] < 0.01 * losses[0], losses[-1]
"""

# Expectations of the environment after the program has run.
QUESTION = """
import importlib.metadata as m, json, pathlib, sys
sites = [pathlib.Path(p) for p in sys.path if p.endswith("site-packages")]
size = lambda name: sum(pathlib.Path(f.locate()).stat().st_size for f in m.files(name) or [] if pathlib.Path(f.locate()).is_file())
names = sorted({d.metadata["Name"] for d in m.distributions()})
print(json.dumps({
    "sizes": {n: size(n) for n in names},
    "versions": {n: m.version(n) for n in names},
    "summary": {n: m.metadata(n)["Summary"] for n in ("jax", "jaxlib")},
    "compiled": [str(p) for s in sites for p in s.glob("jax*/**/*.so")],
}))
"""


def run(*command, **more):
    print("$", *(str(c).strip().split("\n")[0] for c in command), flush=True)
    return subprocess.run([str(c) for c in command], check=True, text=True, **more)


def jax_brings(folder):
    """What the wheels of JAX and what it alone depends on hold, unpacked, in bytes."""
    run(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest", folder, "jax==0.10.2", "jaxlib==0.10.2")
    return {w.name.split("-")[0]: sum(i.file_size for i in zipfile.ZipFile(w).infolist()) for w in pathlib.Path(folder).glob("*.whl")}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("wheel", type=pathlib.Path)
    wheel = parser.parse_args().wheel.resolve()
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder, "env")
        venv.create(home, with_pip=True)
        python = home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run(*pip, wheel)
        run(python, "-m", "ferrax", "adopt", cwd=folder)
        run(*pip, "flax", "optax")
        run(python, "-I", "-c", PROGRAM, cwd=folder)
        found = json.loads(run(python, "-I", "-c", QUESTION, cwd=folder, stdout=subprocess.PIPE).stdout)
        assert not found["compiled"], found["compiled"]
        assert all("Ferrax" in (s or "") for s in found["summary"].values()), found["summary"]
        ours = {n: found["sizes"][n] for n in ("ferrax", "jax", "jaxlib")}
        theirs = jax_brings(pathlib.Path(folder, "wheels"))
    print({n: found["versions"][n] for n in ("ferrax", "flax", "optax", "numpy")})
    for name, sizes in [("installed", ours), ("JAX's", theirs)]:
        print(f"{name}: {sum(sizes.values()) / 1e6:.1f} MB ({', '.join(f'{n} {s / 1e6:.1f}' for n, s in sizes.items())})")
    print(f"the wheel: {wheel.stat().st_size / 1e6:.1f} MB")
    assert sum(ours.values()) < sum(theirs.values()) / 4


if __name__ == "__main__":
    main()
