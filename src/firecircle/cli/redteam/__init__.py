"""`firecircle redteam`."""
