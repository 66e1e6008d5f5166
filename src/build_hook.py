"""The step of hatchling that compiles modules when hpcrowd is installed or packed."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any, override

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNELS = runpy.run_path(str(Path(__file__).with_name("build_kernels.py")))


class CompiledModules(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles the modules, and makes the wheel one of this machine and version of Python."""

    PLUGIN_NAME = "custom"

    @override
    def dependencies(self) -> list[str]:
        """Return what the step needs besides Cython: a compiler, where there is none."""
        return [] if KERNELS["compiler"]() else ["ziglang"]

    @override
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile."""
        try:
            KERNELS["build"](Path(self.root), self.app.display_waiting)
        except RuntimeError as error:
            self.app.abort(str(error))
        # Not what other versions of Python compiled, or modules that are not kernels any more.
        made = KERNELS["products"](Path(self.root))
        build_data["artifacts"] += [f"/src/hpcrowd/compiled/{name}" for name in made]
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
