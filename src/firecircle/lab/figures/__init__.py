"""All figures of a run's records, computed once and shown in many places."""
