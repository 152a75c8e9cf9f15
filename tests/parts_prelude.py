"""What programs over eight CPU devices begin with: meshes, specs of arrays of rank two, and a check of what is refused."""

PRELUDE = """
import copy, itertools, pickle
from {library}.sharding import *
def refused(error, words, f):
    try: f()
    except error as e: assert words in str(e), e
    else: raise AssertionError(words)
devices = jax.devices()
mesh = Mesh(np.array(devices[:6]).reshape(2, 3), ("x", "y"))
S = lambda *spec, mesh=mesh: NamedSharding(mesh, P(*spec))
SPECS = [(), ("x",), ("y",), (None, "x"), ("x", "y"), ("y", "x"), (("x", "y"),), (("y", "x"),), (None, ("x", "y")), (None, ("y", "x")), (None, None, "x")]
"""
