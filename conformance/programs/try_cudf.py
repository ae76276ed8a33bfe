"""cuDF: a table, a join, groups and a sort. Its library has a CUDA runtime linked in, without names, and kernels.

    python try_cudf.py
"""

import json

import cudf
import numpy

ROWS = 1 << 20
table = cudf.DataFrame({"key": numpy.arange(ROWS) % 1000, "value": numpy.arange(ROWS, dtype=numpy.float32)})
other = cudf.DataFrame({"key": numpy.arange(1000), "name": numpy.arange(1000)})
made = [len(table.sort_values("value")), len(table.merge(other, on="key")), len(table.groupby("key").sum())]
print(json.dumps({"program": "try_cudf", "version": cudf.__version__, "rows": made}))
