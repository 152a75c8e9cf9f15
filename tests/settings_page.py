"""The page of settings. `python tests/settings_page.py` in the repository writes docs/settings.md from the table of flags.

page()          # the text of the page
"""

import pathlib

import ferrax
from ferrax._base import config as _config
from ferrax._base.flags import FLAGS

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "settings.md"

HEAD = """# Settings

A setting has JAX's name. It can be set in three ways; a later one in this list takes precedence:

- an environment variable, read at import: `FERRAX_ENABLE_X64=1` sets `jax_enable_x64`;
- `jax.config.update("jax_enable_x64", True)`, for all threads;
- a context manager or decorator, for this thread, where the tables name one: `with jax.enable_x64(True):`.

```pycon
>>> import ferrax as jax, ferrax.numpy as jnp
>>> jax.config.jax_enable_x64, jnp.arange(2.0).dtype
(False, dtype('float32'))
>>> with jax.enable_x64(True):
...     jnp.arange(2.0).dtype
dtype('float64')
>>> with jax.numpy_rank_promotion("raise"):
...     jnp.ones((2, 3)) + jnp.ones(3)
Traceback (most recent call last):
ValueError: ...
```

A value that a setting does not take raises a `ValueError`. This page is made from the table in `ferrax._base.flags`.
"""

VARIABLES = """## Environment variables

Beside the variable of each setting:

| variable | what it does |
|---|---|
| `FERRAX_NUM_THREADS` | the number of threads of the CPU backend; `jax.set_num_threads` changes it later. Results do not depend on it |
| `FERRAX_GPU` | which GPUs are devices: by default those that are hardware; `software`, `all`, a number, or a part of a name ([devices](devices.md)) |
| `FERRAX_GPU_PACE` | the operations in a second that a GPU is taken to do, by which work is divided, in place of what is measured ([devices](devices.md)) |
| `FERRAX_CPU` | the vector instructions that are used, if they are to be fewer than the processor has: `portable`, `avx2`, `avx512` |
| `FERRAX_STRICT_PLANS` | a plan whose bounds cannot be proved is an error; without it, it is compiled without fusion |
"""


def managers():
    """The name of the context manager of each flag that has one."""
    found = {}
    for name in sorted(dir(ferrax)):
        value = getattr(ferrax, name)
        if isinstance(value, _config._Setting):
            found.setdefault(value._flag.name, name)
    return found


def rows(flags, last):
    """Rows of a table of flags; `last(flag)` is the last cell."""
    named = managers()
    for flag in flags:
        manager = f"`{named[flag.name]}`" if flag.name in named else ""
        yield f"| `{flag.name}` | `{flag.default!r}` | {flag.doc} | {last(flag) if last else manager} |"


def page():
    """The text of the page."""
    effective = [f for f in FLAGS.values() if not f.inert and not f.refused]
    partly = [f for f in FLAGS.values() if f.refused]
    inert = [f for f in FLAGS.values() if f.inert and not f.refused]
    why = lambda f: "; ".join([f"`{value!r}`: {reason}" for value, reason in f.refused.items()])
    parts = [
        HEAD,
        "## Settings that have an effect\n",
        "| setting | default | what it does | context manager |\n|---|---|---|---|",
        *rows(effective, None),
        "",
        "`jax_platform_name` can be set and not read: it sets `jax_platforms`.\n",
        VARIABLES,
        "## Values that are refused\n",
        "| setting | default | what it does in JAX | refused |\n|---|---|---|---|",
        *rows(partly, why),
        "",
        "## Settings without effect\n",
        "They are accepted, so that programs that set them run. Another value than the default warns once.\n",
        "| setting | default | what it does in JAX | why it has no effect |\n|---|---|---|---|",
        *rows(inert, lambda f: f.inert),
        "",
    ]
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
