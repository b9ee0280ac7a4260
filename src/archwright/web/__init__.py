"""`archwright serve`: the live page. Knows no torch; what needs a network is done by a process beside it.

`folder.py` finds runs and documents, `live.py` follows a running search, `pages.py` makes HTML of the parts of
`reports`, `api.py` answers in JSON, `jobs.py` exports and starts runs as processes, `models.py` asks networks,
`security.py` decides who may ask, `app.py` puts them together and `server.py` runs it.
"""
