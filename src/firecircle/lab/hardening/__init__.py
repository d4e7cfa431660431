"""Hardening a system prompt: what its wording leaves open, what could be added, and what that changes."""
