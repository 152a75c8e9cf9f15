"""Images resized, scaled and moved: products with one matrix of weights for each axis.

An output element i stands at `(i + 1/2 - translation) / scale - 1/2` of the input's axis, and is the mean of the elements around that place, weighted by a
kernel; where the image shrinks and `antialias` is set, the kernel is as much wider. Invariant: weights of an element add up to one, but to nothing where its
place lies outside of the image.

    >>> import ferrax.image
    >>> ferrax.image.resize(jnp.array([0.0, 2.0, 4.0, 6.0]), (2,), "linear", antialias=False)
    Array([1., 5.], dtype=float32)
"""

from ._resizing import ResizeMethod as ResizeMethod, resize as resize, scale_and_translate as scale_and_translate
