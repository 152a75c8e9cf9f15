"""Arrays on disk and in buckets, by TensorStore: `serialization` and `tensorstore_impl`."""
