"""What `steady.py` measures."""

from workloads import kernels, programs
from workloads.registry import ROWS
