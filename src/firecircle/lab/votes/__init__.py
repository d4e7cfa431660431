"""How many independent voices do several judges amount to? Votes from any table."""

from firecircle.lab.votes.figures import Independence, VotesReport, independence, report_on_votes
from firecircle.lab.votes.reading import read_votes
from firecircle.lab.votes.table import Votes

__all__ = [
    "Independence",
    "Votes",
    "VotesReport",
    "independence",
    "read_votes",
    "report_on_votes",
]
