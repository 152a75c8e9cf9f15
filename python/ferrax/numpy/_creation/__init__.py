"""Creation of arrays."""
