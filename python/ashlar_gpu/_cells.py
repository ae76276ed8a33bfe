"""What a notebook calls its cells, for the file names that IPython gives them."""

import sys
from typing import Dict


def names() -> Dict[str, str]:
    """/tmp/ipykernel_12/3446.py is "In[4].py"; empty outside of IPython."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    known = getattr(getattr(shell, "compile", None), "_filename_map", None) or {}
    return {name: f"In[{number}].py" for name, number in known.items()}


def current() -> str:
    """The cell that runs: "In[4]"; empty outside of a notebook's kernel."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    number = getattr(shell, "execution_count", None)
    return f"In[{number}]" if number is not None and getattr(shell, "kernel", None) is not None else ""


def renamed(text: str) -> str:
    """A traceback with these names."""
    for name, cell in names().items():
        text = text.replace(f'"{name}"', f'"{cell}"')
    return text
