"""
What outlives the daemon: records, documents, blobs and leases in a directory.

The core is synchronous and knows no reactor.  docs/store-format.md specifies every byte,
docs/durability.md what survives what.
"""
