"""Pictures of finished runs: self-contained pages, and tables and plots for the terminal. Knows no torch.

Every report has a function from its document to sections (`rank_sections`), one to a page (`render_rank_page`) and one
to a table for `Console.print` (`rank_table`). `page.py` is the page, `tables.py` the table, `numbers.py` the format of
numbers, `figures/` the plots, `templates/` and `static/` the HTML, scripts and styles.
"""
