"""Memory histories of PyTorch, event by event: what two runs did in the same way, and where they part.

Addresses are compared relative to the first segment of a device, so that two runs need not lie at the same place.
"""
import gzip
import pickle

SEGMENTS = ('segment_alloc', 'segment_map')


def load(path):
    """A snapshot as torch.cuda.memory._snapshot() gives it; gzip is told by its first bytes."""
    with open(path, 'rb') as file:
        data = file.read()
    return pickle.loads(gzip.decompress(data) if data[:2] == b'\x1f\x8b' else data)


def events(snapshot, device=0):
    """(action, address from the first segment on, size, stream) of each event; streams by their first appearance."""
    trace = snapshot['device_traces'][device]
    base = next((entry['addr'] for entry in trace if entry['action'] in SEGMENTS), 0)
    streams = {}
    out = []
    for entry in trace:
        if entry['action'] in ('snapshot', 'user_defined'):
            continue
        address = entry.get('addr', 0)
        if entry['action'] == 'oom':
            out.append(('oom', 0, entry['size'], entry.get('device_free', 0)))
            continue
        stream = streams.setdefault(entry['stream'], len(streams))
        out.append((entry['action'], address - base, entry['size'], stream))
    return out


def first_difference(left, right):
    """None where both are the same, else a line that says which event differs, and how."""
    for i, (one, other) in enumerate(zip(left, right)):
        if one != other:
            return f'event {i}: {one} and {other}'
    if len(left) != len(right):
        return f'{len(left)} and {len(right)} events, the first {min(len(left), len(right))} of them the same'
    return None


def order_of_frees_apart(of):
    """The same events, those that free in one go in one order: autocast frees what it kept by addresses of the host."""
    out, together = [], []
    for event in of:
        if event[0].startswith('free_'):
            together.append(event)
            continue
        out += sorted(together) + [event]
        together = []
    return out + sorted(together)


RESERVED = {'segment_alloc': 1, 'segment_map': 1, 'segment_free': -1, 'segment_unmap': -1}


def peak_reserved(snapshot, device=0):
    """Bytes at most, of a history that begins with an empty device."""
    now, most = 0, 0
    for entry in snapshot['device_traces'][device]:
        now += RESERVED.get(entry['action'], 0) * entry['size']
        most = max(most, now)
    return most


def failures(snapshot, device=0):
    return sum(entry['action'] == 'oom' for entry in snapshot['device_traces'][device])
