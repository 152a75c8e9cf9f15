"""Small libraries in the style of the founding documents: layers (`stax`) and optimizers."""

from . import stax as stax
from . import optimizers as optimizers
