"""notebook_frames.py MOST PAGE.html...: what one kernel puts into a notebook for these pages, as a JSON list of HTML: within so
many characters, 0 for all of each page.
"""

import json
import os
import sys
import types

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "python"))

from ashlar_gpu import _frame  # noqa: E402

shell = types.SimpleNamespace(kernel=object(), execution_count=0)
sys.modules["IPython"] = types.SimpleNamespace(get_ipython=lambda: shell)
outputs = []
most = int(sys.argv[1])
for path in sys.argv[2:]:
    shell.execution_count += 1
    shell.get_parent = lambda: {"metadata": {"cellId": str(shell.execution_count)}}
    with open(path, encoding="utf-8") as text:
        outputs.append(_frame.within(text.read(), most) if most else _frame.of(text.read()))
print(json.dumps(outputs))
