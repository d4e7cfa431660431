"""How many independent voices do several judges amount to? Votes from any table."""

from firecircle.lab.votes.figures import VotesIndependence, VotesReport, independence, report_on_votes
from firecircle.lab.votes.reading import read_votes
from firecircle.lab.votes.table import Votes

__all__ = [
    "Votes",
    "VotesIndependence",
    "VotesReport",
    "independence",
    "read_votes",
    "report_on_votes",
]
