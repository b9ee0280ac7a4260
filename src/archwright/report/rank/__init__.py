"""What `archwright rank` and `archwright score` show: tables for the terminal, pages that open from disk."""

from archwright.report.rank.page import rank_html
from archwright.report.rank.score import score_html, score_table
from archwright.report.rank.terminal import rank_table

__all__ = ["rank_html", "rank_table", "score_html", "score_table"]
