"""Functions for neural networks: activations, normalisation over an axis, attention,
initializers.
"""

from ..scipy._softmax import log_softmax, softmax
from ..scipy.special import logsumexp
from . import initializers
from ._activations import (
    celu, elu, gelu, glu, hard_sigmoid, hard_silu, hard_swish, hard_tanh, identity, leaky_relu, log1mexp, log_sigmoid, mish, relu, relu6,
    selu, sigmoid, silu, soft_sign, softplus, sparse_plus, sparse_sigmoid, squareplus, swish, tanh,
)
from ._attention import dot_product_attention
from ._normalized import logmeanexp, one_hot, standardize
from ._scaled import get_scaled_dot_general_config, scaled_dot_general, scaled_matmul

# Normalisation under the name that the founding documents use.
normalize = standardize

__all__ = [
    "celu", "dot_product_attention", "elu", "gelu", "get_scaled_dot_general_config", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity",
    "initializers", "leaky_relu", "log1mexp", "log_sigmoid", "log_softmax", "logmeanexp", "logsumexp", "mish", "normalize", "one_hot", "relu", "relu6",
    "scaled_dot_general", "scaled_matmul", "selu", "sigmoid", "silu", "soft_sign", "softmax", "softplus", "sparse_plus", "sparse_sigmoid", "squareplus", "standardize", "swish",
    "tanh",
]
