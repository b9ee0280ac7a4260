"""Pictures of finished runs: self-contained pages, and tables and plots for the terminal. Knows no torch."""

from archwright.reports.compare import compare_html, compare_plot, compare_table
from archwright.reports.page import preview_html, report_html
from archwright.reports.protocol import protocol_html, protocol_table
from archwright.reports.rank import papers_table, rank_html, rank_table, score_html, score_table, xray_table
from archwright.reports.terminal import front_plot, front_table, preview_text

__all__ = [
    "compare_html",
    "compare_plot",
    "compare_table",
    "front_plot",
    "front_table",
    "papers_table",
    "preview_html",
    "preview_text",
    "protocol_html",
    "protocol_table",
    "rank_html",
    "rank_table",
    "report_html",
    "score_html",
    "score_table",
    "xray_table",
]
