"""Functions from documents to plotly's data and layout."""
