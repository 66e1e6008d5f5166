"""Show names in docstrings as names: ``:func:`clean``` becomes ``clean`` on a page."""

from __future__ import annotations

import re
from typing import Any

#: A role, and what it names; after a tilde only the last part of that is shown.
ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):<code>(~?)([\w.]+)</code>")


def on_page_content(html: str, **kwargs: Any) -> str:
    """Return a page without the roles, which MkDocs calls for each page."""
    return ROLE.sub(
        lambda found: f"<code>{found[2].rpartition('.')[2] if found[1] else found[2]}</code>", html
    )
