"""Voices behind OpenAI-compatible endpoints: transport, limits, providers and prices."""
