"""The page that shows users: ``hpcrowd inspect``, one idea a file.

=================== ============================================================================
:mod:`.settings`    what a reader of the page may set, and what it may be set to
:mod:`.subject`     what is inspected: a trace, a scenario in a file, a folder of results
:mod:`.course`      runs as far as they have come, simulated or played back; those of one page
:mod:`.sharing`     what a reader takes along: a view as an address, and files (PNG, SVG, CSV)
:mod:`.desk`        what one page knows, and what its buttons do
:mod:`.page`        the page; :mod:`.parts`, what it shows of the cluster and the users
:mod:`.server`      the server behind it
=================== ============================================================================

The first four know nothing of the web.
"""
