"""Sections that docstrings have in common: as if they had been written whole."""

import inspect
import subprocess
import sys

import pytest

pytestmark = pytest.mark.ours
SECTIONS = """
    Args:
        x: a number,
          or two.

    Returns:
        It.
    """


def whole_with_an_example():
    """A sentence.

    More of it.

    Args:
        x: a number,
          or two.

    Returns:
        It.

    >>> f(1)
    1

    >>> f(2)
    2
    """


def without_sections():
    """A sentence.

    More of it.

    >>> f(1)
    1

    >>> f(2)
    2
    """


def whole():
    """A sentence.

    Args:
        x: a number,
          or two.

    Returns:
        It.
    """


def without():
    """A sentence."""


@pytest.mark.parametrize(("part", "expected"), [(without_sections, whole_with_an_example), (without, whole)])
def test_a_docstring_is_as_if_it_were_written_whole(part, expected):
    from ferrax._base.docstrings import sections

    assert sections(SECTIONS)(part) is part
    assert inspect.getdoc(part) == inspect.getdoc(expected)
    assert part.__doc__.rstrip() == expected.__doc__.rstrip()  # also without inspect's cleaning


def test_without_docstrings_there_are_no_sections():
    program = "import ferrax.numpy as jnp; assert jnp.exp.__doc__ is None and jnp.max.__doc__ is None"
    subprocess.run([sys.executable, "-OO", "-c", program], check=True, timeout=120)
