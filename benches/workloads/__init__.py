"""What `steady.py` measures."""

from workloads import dense, dtypes, fields, kernels, nests, programs
from workloads.registry import ROWS
