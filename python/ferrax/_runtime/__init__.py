"""Devices, meshes, processes, callbacks, and the records of the runtime."""
