"""The older spelling of `ferrax.example_libraries.optimizers`."""
