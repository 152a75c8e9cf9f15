"""Products of arrays and convolutions."""
