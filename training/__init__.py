"""Scripts and authored texts from which the numbers of the learned voices are made."""
