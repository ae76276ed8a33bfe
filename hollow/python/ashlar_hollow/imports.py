"""A call after a module's import: after("torch", f) calls f(module) once torch is imported, and imports nothing.

Thread rule: any thread; f runs in the thread that imports, under the module's import lock.
"""

import sys


class _After(object):
    """A finder that finds nothing itself: it lets the others find, and watches the loader."""

    def __init__(self):
        self.calls = {}
        self.finding = set()

    def find_spec(self, name, path=None, target=None):
        if name not in self.calls or name in self.finding:
            return None
        self.finding.add(name)
        try:
            spec = None
            for finder in sys.meta_path:
                find = getattr(finder, "find_spec", None)
                if finder is not self and find is not None:
                    spec = find(name, path, target)
                    if spec is not None:
                        break
        finally:
            self.finding.discard(name)
        if spec is not None and spec.loader is not None:
            self._watch(name, spec.loader)
        return spec

    def _watch(self, name, loader):
        def exec_module(module):
            type(loader).exec_module(loader, module)
            for call in self.calls.pop(name, ()):
                _guarded(call, module)

        try:
            loader.exec_module = exec_module  # of this loader alone: it keeps its type
        except AttributeError:
            _say("%s is loaded in a way that cannot be watched" % name)


def _say(text):
    sys.stderr.write("ashlar: %s\n" % text)


def _guarded(call, module):
    try:
        call(module)
    except Exception as error:
        _say("%s in this program: %s: %s" % (call.__name__, type(error).__name__, error))


_finder = _After()


def after(name, call):
    module = sys.modules.get(name)
    if module is not None:
        _guarded(call, module)
        return
    _finder.calls.setdefault(name, []).append(call)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
