"""`firecircle harden`."""
