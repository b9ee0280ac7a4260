"""Pictures of a finished run: a self-contained page, and tables and plots for the terminal. Knows no torch."""

from archwright.report.page import preview_html, report_html
from archwright.report.terminal import front_plot, front_table, preview_text

__all__ = ["front_plot", "front_table", "preview_html", "preview_text", "report_html"]
