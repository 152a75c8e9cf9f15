"""Where the parts of arrays lie: specs, shardings, shards, transfers."""
