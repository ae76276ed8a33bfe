"""What a notebook calls its cells, for the file names that IPython gives them."""

import sys
from typing import Any, Dict, Optional, Tuple


def names() -> Dict[str, str]:
    """/tmp/ipykernel_12/3446.py is "In[4].py"; empty outside of IPython."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    known = getattr(getattr(shell, "compile", None), "_filename_map", None) or {}
    return {name: f"In[{number}].py" for name, number in known.items()}


def current() -> str:
    """The cell that runs: "In[4]"; empty outside of a notebook's kernel."""
    number = _number(_shell_of_kernel())
    return "" if number is None else f"In[{number}]"


def running() -> Optional[Tuple[str, int]]:
    """What stays the same of the cell that runs when it runs again, and the number of this run; None outside of a notebook's
    kernel. The notebook's name of the cell, or its text where the notebook tells none."""
    shell = _shell_of_kernel()
    number = _number(shell)
    if number is None:
        return None
    try:
        asked = shell.get_parent()
        name = asked.get("metadata", {}).get("cellId") or asked.get("content", {}).get("code")
    except Exception:  # a kernel of another kind
        name = None
    return str(name or ""), number


def _number(shell: Any) -> Optional[int]:
    """A late IPython 9 counts a cell before it runs; what shows its output has the cell's own number."""
    count = getattr(shell, "execution_count", None)
    number = getattr(getattr(shell, "displayhook", None), "prompt_count", count)
    return number if isinstance(number, int) else None


def is_notebook() -> bool:
    """IPython with a kernel."""
    return _shell_of_kernel() is not None


def _shell_of_kernel() -> Any:
    """Nothing is imported: a notebook has done that."""
    shell_of = getattr(sys.modules.get("IPython"), "get_ipython", None)
    try:
        shell = None if shell_of is None else shell_of()
        return shell if getattr(shell, "kernel", None) is not None else None
    except Exception:  # a shell that is half made
        return None


def renamed(text: str) -> str:
    """A traceback with these names."""
    for name, cell in names().items():
        text = text.replace(f'"{name}"', f'"{cell}"')
    return text
