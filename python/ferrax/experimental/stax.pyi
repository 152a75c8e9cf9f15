"""The older spelling of `ferrax.example_libraries.stax`."""

from ferrax.example_libraries.stax import Elu as Elu
from ferrax.example_libraries.stax import Exp as Exp
from ferrax.example_libraries.stax import FanInSum as FanInSum
from ferrax.example_libraries.stax import Flatten as Flatten
from ferrax.example_libraries.stax import Gelu as Gelu
from ferrax.example_libraries.stax import Identity as Identity
from ferrax.example_libraries.stax import LeakyRelu as LeakyRelu
from ferrax.example_libraries.stax import LogSoftmax as LogSoftmax
from ferrax.example_libraries.stax import Relu as Relu
from ferrax.example_libraries.stax import Selu as Selu
from ferrax.example_libraries.stax import Sigmoid as Sigmoid
from ferrax.example_libraries.stax import Softmax as Softmax
from ferrax.example_libraries.stax import Softplus as Softplus
from ferrax.example_libraries.stax import Tanh as Tanh
