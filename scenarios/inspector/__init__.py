"""The page that shows users: ``hpcrowd inspect``, one idea a file.

=================== ============================================================================
:mod:`.controls`    what a reader of the page may set, and what it may be set to
:mod:`.subject`     what is inspected: a trace, a scenario in a file, a folder of results
:mod:`.course`      a run as far as it has come, simulated or played back
:mod:`.sitting`     what one page holds: one or two courses, moved on together
:mod:`.links`       a view as the query of an address, and back
:mod:`.exports`     what is on the page as files: PNG, SVG, CSV
:mod:`.page`        the page, and the other files that draw parts of it with Solara
:mod:`.server`      the server behind it
=================== ============================================================================

The first six know nothing of the web.
"""
