"""`jaxlib`, served by Ferrax: made by `python -m ferrax`, and undone by `pip uninstall jax jaxlib`
where that adopted an environment.
"""

FERRAX = True

from ferrax.compat import install

install()
