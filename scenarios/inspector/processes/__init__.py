"""The processes behind the page: each run is simulated in one of its own.

A run is simulated to its end at once by a *scout*, which leaves *checkpoints* on its way: forks of
itself that wait. To show a second, earlier or later, the server lets the closest checkpoint before
it fork, and the fork, a *worker*, goes on to that second. Nothing of a run has to be copied or
written for this, so it works for any users and schedulers, and when a page is closed the memory of
its runs goes with their processes.

================ ===========================================================================
:mod:`.wire`     messages between the processes
:mod:`.worker`   the keeper, which holds what was read and starts scouts; what scouts,
                 checkpoints and workers do
:mod:`.runs`     the side of the server: runs, and the way to any second of them
================ ===========================================================================
"""
