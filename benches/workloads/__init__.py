"""What `steady.py` measures."""

from workloads import dense, fields, kernels, nests, programs
from workloads.registry import ROWS
