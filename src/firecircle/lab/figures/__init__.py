"""What a run's records add up to: every figure of every arm, computed once and shown in many places."""
