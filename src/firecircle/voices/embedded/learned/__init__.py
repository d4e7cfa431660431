"""Voices whose judgement is learned: n-grams and sentence embeddings."""
