"""Loads modules of contrib/bench that need no others of it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

BENCH = Path(__file__).resolve().parents[2] / "contrib" / "bench"


def load(name: str) -> ModuleType:
    """Import a module of the benchmarks by its path."""
    spec = importlib.util.spec_from_file_location(f"contrib_bench_{name}", BENCH / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module
