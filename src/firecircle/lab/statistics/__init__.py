"""Statistics of a run: pure functions from columns of figures to frozen shapes.

This package uses no voice, file or screen. An unavailable figure is None with a reason. Scores are F, high
means alarm, and a score at or above the threshold is an alarm.
"""
