"""The web page of ``hpcrowd inspect``.

================== =============================================================================
:mod:`.subjects`   what is inspected (a trace, a scenario in a file, a folder of results), the
                   settings that the page offers, runs in progress, changes of users
:mod:`.panels`     what the page shows of a run at a moment, as data and as files
:mod:`.processes`  the processes that runs are simulated in, and the way to any second of a run
:mod:`.service`    the server: whom it answers, what it understands, the state of each page
``web``            the page itself: HTML, styles, and scripts that draw what the panels are
================== =============================================================================

Each folder uses only those above it. The first three do not depend on the web.
"""
