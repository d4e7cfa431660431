"""Benchmarks: they print ratios and counts, and are never asserted in tests."""
