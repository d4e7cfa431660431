"""Scripts and authored texts from which the numbers of the learned voices are made."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VOICES = ROOT / "src" / "firecircle" / "voices" / "embedded"
"""Where the numbers are shipped."""
