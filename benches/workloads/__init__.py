"""What `steady.py` measures."""

from workloads import dense, kernels, nests, programs
from workloads.registry import ROWS
