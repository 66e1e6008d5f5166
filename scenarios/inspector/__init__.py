"""The web page of ``hpcrowd inspect``, one idea per file.

=================== ============================================================================
:mod:`.settings`    the settings that the page offers, and their permitted values
:mod:`.subject`     what is inspected: a trace, a scenario in a file, a folder of results
:mod:`.course`      runs in progress, simulated or played back; the runs of one page
:mod:`.sharing`     views as addresses, and files to save (PNG, SVG, CSV)
:mod:`.desk`        the state of one page, and the actions of its buttons
:mod:`.page`        the page; :mod:`.parts`, its views of the cluster and the users
:mod:`.server`      the server behind it
=================== ============================================================================

The first four do not depend on the web.
"""
