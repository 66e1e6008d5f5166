"""The modules that are compiled when hpcrowd is installed, and which form of them is imported.

They are ordinary typed Python. ``src/translate_kernels.py`` turns their annotations into types of C
and compiles them into the folder ``compiled``, next to this file. Where that has not been done, or
their sources have changed since, they run as Python, with the same results, and a line says so.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import Any, override

#: The modules, each after those whose classes it uses.
KERNELS = (
    "hpcrowd.environment.schedulers.arithmetic",
    "hpcrowd.environment.engine.kernel.heap",
    "hpcrowd.environment.engine.kernel.sleeping",
    "hpcrowd.environment.engine.kernel.cluster",
    "hpcrowd.environment.engine.kernel.scheduling",
    "hpcrowd.environment.engine.kernel.loop",
    "hpcrowd.environment.engine.kernel.accounts",
    "hpcrowd.environment.engine.kernel.believed",
    "hpcrowd.environment.engine.kernel.outlook",
    "hpcrowd.environment.engine.kernel.ordered",
    "hpcrowd.environment.engine.kernel.formula",
    "hpcrowd.environment.engine.kernel.scored",
    "hpcrowd.environment.engine.passes.site_rules",
    "hpcrowd.environment.engine.kernel.profile",
    "hpcrowd.environment.engine.kernel.gains",
    "hpcrowd.environment.engine.kernel.plan",
    "hpcrowd.environment.engine.kernel.nodes.site",
    "hpcrowd.environment.engine.kernel.nodes.placement",
    "hpcrowd.environment.engine.kernel.nodes.limits",
    "hpcrowd.environment.engine.kernel.nodes.queue",
    "hpcrowd.environment.engine.kernel.nodes.preemption",
    "hpcrowd.environment.engine.kernel.nodes.suspension",
    "hpcrowd.environment.engine.kernel.nodes.main_pass",
    "hpcrowd.environment.engine.kernel.nodes.releases",
    "hpcrowd.environment.engine.kernel.nodes.backfill",
    "hpcrowd.environment.engine.kernel.nodes.beginning",
    "hpcrowd.environment.engine.kernel.nodes.loop",
    "hpcrowd.environment.engine.kernel.nodes.foretelling",
    "hpcrowd.environment.grid.kernel.queue",
    "hpcrowd.environment.grid.kernel.loop",
    "hpcrowd.environment.schedulers.predictors.kernel.experience",
    "hpcrowd.environment.schedulers.predictors.kernel.prediction",
    "hpcrowd.agents.learned.kernel",
    "hpcrowd.analysis.models.jobs.placing",
    "hpcrowd.analysis.views.attribution",
)  # fmt: skip

#: Modules whose functions need no objects of Python, and those of them that let other threads run.
RELEASED: dict[str, tuple[str, ...]] = {
    "hpcrowd.environment.schedulers.predictors.kernel.experience": (),
    "hpcrowd.environment.schedulers.predictors.kernel.prediction": ("follow",),
}

#: A compiled module with what all of them use.
SHARED = "hpcrowd.compiled.shared"

#: Where they are when they are compiled.
COMPILED = Path(__file__).parent / "compiled"

#: How to get them.
CURE = "install hpcrowd again, or in a checkout run `python src/build_kernels.py`"


def source_of(name: str, package: Path = COMPILED.parent) -> Path:
    """Return the file of a module of the package in a folder."""
    return package.joinpath(*name.split(".")[1:]).with_suffix(".py")


def checksum(package: Path = COMPILED.parent) -> str:
    """Return a checksum of the sources."""
    import hashlib

    found = hashlib.sha256()
    for name in KERNELS:
        found.update(hashlib.sha256(source_of(name, package).read_bytes()).digest())
    return found.hexdigest()


def file_of(name: str) -> Path:
    """Return the file of a compiled module, for this version of Python and this machine."""
    return COMPILED / f"{name}{EXTENSION_SUFFIXES[0]}"


def sources_file() -> Path:
    """Return the file with the checksum of the sources that were compiled."""
    return COMPILED / f"sources{EXTENSION_SUFFIXES[0]}.txt"


@cache
def missing() -> str:
    """Return why the modules run as Python; nothing if they are compiled."""
    if os.environ.get("HPCROWD_PURE", "") not in ("", "0"):
        return "HPCROWD_PURE is set; unset it"
    try:
        compiled = sources_file().read_text()
    except OSError:
        return f"they are not compiled; {CURE}"
    try:
        now = checksum()
    except OSError:  # installed without sources
        return ""
    return "" if compiled == now else f"their sources are newer than what is compiled; {CURE}"


@cache
def _say_missing() -> None:
    """Say once that the modules run as Python, in the first process only."""
    import multiprocessing

    if multiprocessing.parent_process() is None and sys.stderr is not None:
        print(
            f"hpcrowd: compiled modules run as plain Python, many times slower: {missing()}",
            file=sys.stderr,
            flush=True,
        )


class KernelFinder(MetaPathFinder):
    """Finds the compiled form of a module of :data:`KERNELS`, if there is one of this source."""

    @override
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return where the compiled form is, None for its source and for other modules."""
        if name not in KERNELS and name != SHARED:
            return None
        if missing():
            _say_missing()
            return None
        file = str(file_of(name))
        return spec_from_file_location(name, file, loader=ExtensionFileLoader(name, file))


def install() -> None:
    """Let imports find the compiled modules."""
    if not any(isinstance(finder, KernelFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, KernelFinder())
