"""`firecircle voices` and `firecircle doctor`."""
