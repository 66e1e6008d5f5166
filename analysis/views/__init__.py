"""Views of a run at a moment: tables and pictures, live or played back.

Each view is a pair: a pandas table and a matplotlib picture. The public names are listed in
``__init__.pyi``; each is loaded when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
