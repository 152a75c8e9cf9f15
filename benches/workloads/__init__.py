"""What `steady.py` measures."""

from workloads import kernels, nests, programs
from workloads.registry import ROWS
