"""How many arrays are alive, once what runs beside the test has let go of its own."""

import gc
import time


def settled(jax, patience=20):
    """The number of live arrays, once it has stood still for three readings.

    The thread that ran a program lets go of its arrays a moment after the program is done. A reading that came
    before that moment would count arrays that are about to go.
    """
    jax.effects_barrier()
    last, still = None, 0
    for _ in range(patience):
        gc.collect()
        count = len(jax.live_arrays())
        still = still + 1 if count == last else 0
        if still == 2:
            break
        last = count
        time.sleep(0.02)
    return count
