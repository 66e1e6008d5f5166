"""What the server of this process shows, and which pages are open.

The server runs one program for all pages, which finds here what the command was told. Nothing of it
can be changed from a browser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakSet

if TYPE_CHECKING:
    from hpcrowd.scenarios.inspector.subject import Subject


#: What is inspected, one or two.
SUBJECTS: list[Subject] = []

#: The desks of the pages that are open, or were until lately.
OPEN: WeakSet[Any] = WeakSet()
