"""PyTorch's own torch.cuda._memory_viz over a snapshot that was written here. No download: flamegraph.pl is given.

    memory_viz.py SNAPSHOT FLAMEGRAPH_PL      {"segsum": "...", "trace": 1234, "lengths": {...}}
"""
import functools
import json
import pickle
import sys
import warnings

warnings.simplefilter('ignore')
from torch.cuda import _memory_viz as viz  # noqa: E402

with open(sys.argv[1], 'rb') as snapshot_file:
    data = pickle.load(snapshot_file)
flame = functools.partial(viz.format_flamegraph, flamegraph_script=sys.argv[2])
told = {'segsum': viz.segsum(data), 'trace': viz.trace(data), 'memory': viz.memory(data, flame),
        'segments': viz.segments(data, flame), 'compare': viz.compare(data['segments'][:-1], data['segments'], flame),
        'segment_plot': viz.segment_plot(data), 'trace_plot': viz.trace_plot(data)}
print(json.dumps({'segsum': told['segsum'], 'trace': told['trace'].count('\n'),
                  'lengths': {name: len(text) for name, text in told.items()}}))
