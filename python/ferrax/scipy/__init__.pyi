"""The parts of SciPy's interface that are offered: `special`, and what is listed beside it."""

from . import stats as stats
from . import special as special
from . import spatial as spatial
from . import sparse as sparse
from . import signal as signal
from . import optimize as optimize
from . import ndimage as ndimage
from . import linalg as linalg
from . import interpolate as interpolate
from . import integrate as integrate
from . import fft as fft
from . import cluster as cluster
