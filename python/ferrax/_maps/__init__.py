"""Maps over devices: `shard_map` and `pmap`."""
