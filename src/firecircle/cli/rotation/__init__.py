"""`firecircle rotation`."""
