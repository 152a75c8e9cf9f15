"""What libraries build on: programs as objects, primitives of one's own."""

from . import source_info_util as source_info_util
from . import sharding as sharding
from . import random as random
from . import linear_util as linear_util
from . import core as core
from . import backend as backend

__all__ = ["backend", "core", "linear_util", "random", "sharding", "source_info_util"]
