"""Reductions, running sums, statistics, histograms."""
