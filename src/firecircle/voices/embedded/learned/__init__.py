"""Voices whose judgement is learned: n-grams and sentence embeddings."""

from __future__ import annotations

LEARNT_TYPES = (
    "temporal_inconsistency",
    "cross_layer_fabrication",
    "polite_extraction",
    "educational_escalation",
    "context_saturation",
    "role_confusion",
    "fabricated_progression",
    "false_authority",
)
"""The pattern types in the trained weights, in their order.

A newer type is named by the rules alone until the readers are trained again.
"""
