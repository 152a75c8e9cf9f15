"""How arrays are distributed over devices: specs, shardings, shards, transfers."""
