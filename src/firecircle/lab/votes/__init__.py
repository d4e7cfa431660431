"""How many independent voices do several judges amount to? Votes from any table."""

from firecircle.lab.votes.figures import VotesIndependence, VotesReport, independence, report_on_votes
from firecircle.lab.votes.reading import Votes, read_votes

__all__ = [
    "Votes",
    "VotesIndependence",
    "VotesReport",
    "independence",
    "read_votes",
    "report_on_votes",
]
