"""How many arrays are alive, once what runs beside the test has let go of its own."""

import time


def settled(jax, patience=20):
    """The number of live arrays, once two readings agree.

    The thread that ran a program lets go of its arrays a moment after the program is done. A reading that came
    before that moment would count arrays that are about to go. (`live_arrays` collects garbage first.)
    """
    jax.effects_barrier()
    last = len(jax.live_arrays())
    for _ in range(patience):
        time.sleep(0.02)
        count = len(jax.live_arrays())
        if count == last:
            break
        last = count
    return count
