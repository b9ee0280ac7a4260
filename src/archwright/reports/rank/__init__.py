"""What `archwright rank` and `archwright score` show: tables for the terminal, pages that open from disk."""

from archwright.reports.rank.page import rank_html
from archwright.reports.rank.score import score_html, score_table
from archwright.reports.rank.terminal import papers_table, rank_table, xray_table

__all__ = ["papers_table", "rank_html", "rank_table", "score_html", "score_table", "xray_table"]
