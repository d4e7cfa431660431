"""`firecircle quorum`."""
