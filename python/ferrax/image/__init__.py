"""Images resized, scaled and moved: products with one matrix of weights for each axis.

Output element i corresponds to position `(i + 1/2 - translation) / scale - 1/2` of the input's
axis, and is the mean of the elements around this position, weighted by a kernel. Where the image
shrinks and `antialias` is set, the kernel is wider by the same factor. Invariant: the weights of an
element add up to one, or to zero where its position is outside of the image.

    >>> import ferrax.image
    >>> ferrax.image.resize(jnp.array([0.0, 2.0, 4.0, 6.0]), (2,), "linear", antialias=False)
    Array([1., 5.], dtype=float32)
"""

from ._resizing import ResizeMethod as ResizeMethod, resize as resize, scale_and_translate as scale_and_translate
