"""A call after a module's import: after("torch", call) calls call(module) once the program has imported torch.

It imports nothing itself. Thread rule: any thread; the call runs in the thread that imports.
"""

import importlib.abc
import importlib.machinery
import sys
import types
from typing import Any, Callable, Dict, List, Optional, Sequence

Call = Callable[[types.ModuleType], None]


class _After(importlib.abc.MetaPathFinder):
    """Finds nothing itself: it lets the others find, and watches the loader."""

    def __init__(self) -> None:
        self.calls: Dict[str, List[Call]] = {}
        self.is_finding = False

    def find_spec(self, name: str, path: Optional[Sequence[str]] = None,
                  target: Optional[types.ModuleType] = None) -> Optional[importlib.machinery.ModuleSpec]:
        if name not in self.calls or self.is_finding:
            return None
        self.is_finding = True
        try:
            found = (finder.find_spec(name, path, target) for finder in sys.meta_path if hasattr(finder, "find_spec"))
            spec = next((one for one in found if one is not None), None)
        finally:
            self.is_finding = False
        if spec is not None and spec.loader is not None:
            self._watch(name, spec.loader)
        return spec

    def _watch(self, name: str, loader: Any) -> None:
        original = loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            original(module)
            for call in self.calls.pop(name, ()):
                call(module)

        loader.exec_module = exec_module  # of this loader alone: it keeps its type


_finder = _After()


def after(name: str, call: Call) -> None:
    module = sys.modules.get(name)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        call(module)
        return
    _finder.calls.setdefault(name, []).append(call)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
