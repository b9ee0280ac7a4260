"""What `archwright rank` and `archwright score` show: tables for the terminal, pages that open from disk."""
