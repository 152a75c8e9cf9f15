"""PyTorch's part of `steady.py --torch`: a process of its own, since its environment is its own, that times a row when it is asked to.

Each message is one pickled object: first the names of all rows that have a counterpart here go out. Then (name, arguments) brings the
results as NumPy arrays, and a number brings the seconds of that many calls.
"""

import gc
import pickle
import sys
import time

import torch
from workloads.pytorch import PEERS


def arrays(out):
    """The leaves of a result; bfloat16, which NumPy lacks, as float32."""
    if isinstance(out, (list, tuple)):
        return [x for o in out for x in arrays(o)]
    out = out.detach().resolve_conj().resolve_neg()
    return [(out.float() if out.dtype == torch.bfloat16 else out).numpy()]


def main():
    f = args = None

    def send(message):
        pickle.dump(message, sys.stdout.buffer)
        sys.stdout.buffer.flush()

    send((str(torch.__version__), list(PEERS)))
    gc.disable()
    while True:
        try:
            asked = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        if isinstance(asked, int):
            start = time.perf_counter()
            for _ in range(asked):
                f(*args)
            send(time.perf_counter() - start)
        else:
            gc.collect()
            f, args = PEERS[asked[0]], [torch.as_tensor(a) for a in asked[1]]
            try:
                send(arrays(f(*args)))
            except Exception as error:  # this row has no counterpart, then; the others go on
                send(str(error))


if __name__ == "__main__":
    main()
