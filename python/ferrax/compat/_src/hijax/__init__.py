"""`jax._src.hijax`: types, values and primitives that consist of arrays."""
