"""`firecircle scan`: screen a large corpus with the embedded circle."""
