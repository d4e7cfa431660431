"""Voices on hosted endpoints: requests, limits, providers and prices."""
