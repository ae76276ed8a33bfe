"""The page in a notebook: a frame that can neither read nor change the notebook.

    _frame.of(page.html)                # HTML of an output
    _frame.within(page.html, 40_000)    # of a smaller page of the same answer

The page's program is the larger part of a page, and the same for all. In a kernel's outputs it lies once: in the first
one, and again where a cell is run anew, which may have taken it away. The frames hand it to one another (_frame.js). Where
none has it, as after the first output was cleared, the frame says so. Thread rule: the kernel's main thread.
"""

import base64
import gzip
import hashlib
import html as html_text
import json
import pkgutil
import re
from typing import Dict, Optional

from ashlar_gpu import _cells, _small_page

HEIGHT = 900  # pixels
SANDBOX = 'sandbox="allow-scripts" title="ashlar report"'
# What `ashlar report` writes (docs/internals/page.md).
PAGE = re.compile(
    r'<title>(?P<title>.*?)</title>\s*<style>(?P<style>.*?)</style>.*?'
    r'<script type="application/json" id="ashlar-document">(?P<document>.*?)</script>(?P<blobs>.*?)'
    r"<script>(?P<script>.*)</script>\s*</body>", re.DOTALL)
GONE = ("The page is not drawn here: its program lay in another output of this notebook, which is gone. Run this cell again. "
        "The answer stands around this frame.")


class _Shown(object):
    """When the cells of this kernel ran last, and when the page's program was last put into an output."""

    def __init__(self) -> None:
        self.ran: Dict[str, int] = {}
        self.program_at: Optional[int] = None

    def needs_program(self) -> bool:
        """Outside of a kernel; in the first output; where the cell is run again and the output that has it was not made since."""
        running = _cells.running()
        if running is None:
            return True
        cell, run = running
        last = self.ran.get(cell, -1)
        self.ran[cell] = run
        if self.program_at is not None and (last < self.program_at or last == run):
            return False
        self.program_at = run
        return True


_shown = _Shown()


def of(page: str) -> str:
    """All of the page."""
    parts = PAGE.search(page)
    return _frame(page if parts is None else _document(parts.groupdict(), _shown.needs_program()))


def within(page: str, most: int) -> Optional[str]:
    """As much of it as so many characters hold, beside the page's program; None where that is too little."""
    for small in _small_page.smaller(page, most):
        parts = PAGE.search(small)
        if parts is not None and len(_frame(_document(parts.groupdict(), False))) <= most:
            return _frame(_document(parts.groupdict(), _shown.needs_program()))
    return None


def _frame(document: str) -> str:
    return (f'<iframe {SANDBOX} style="width:100%;height:{HEIGHT}px;border:0" '
            f'srcdoc="{html_text.escape(document, quote=True)}"></iframe>')


def _document(parts: Dict[str, str], has_program: bool) -> str:
    """The page with its document packed, and its program packed or left out."""
    start = (pkgutil.get_data("ashlar_gpu", "_frame.js") or b"").decode()
    style, script = parts["style"], parts["script"]
    policy = (f"default-src 'none'; script-src {_hash(start)} {_hash(script)}; style-src {_hash(style)}; img-src data:; "
              "base-uri 'none'; form-action 'none'")
    program = _packed("program", json.dumps({"style": style, "script": script})) if has_program else ""
    return (f'<!doctype html><html lang="en" data-program="{_hash(style + script)}"><head><meta charset="utf-8">'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}"><meta name="color-scheme" content="light dark">'
            f'<title>{parts["title"]}</title></head><body><div id="page"><p id="waiting" hidden>{GONE}</p></div>'
            f'{_packed("document", parts["document"])}{parts["blobs"].strip()}{program}<script>{start}</script></body></html>')


def _packed(name: str, text: str) -> str:
    packed = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
    return f'<script type="application/octet-stream" id="packed-{name}">{packed}</script>'


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"
