"""Snapshots as Python sees them, before and after `ashlar convert` to a recording and back: every key of every record.

    round_trip.py ASHLAR [FILE...]

Without files: those of docs/examples, and of the captures and the corpus of ASHLAR_SHARED_DIR, where there is one, those
of up to 50 KiB, which take seconds. A record must come back with the value of every key that it had. What may differ is told here, and nowhere else:

- what PyTorch writes for "nothing" and leaving the key out are the same: frames [], user_metadata '', compile_context
  'N/A' or '', external_annotations [], fx_node_... None;
- a frame's line of 2^64-1 comes back as -1: both say that it is not known;
- active_awaiting_free and active_pending_free are one state, of two releases;
- blocks with `history` (up to 2.0) have its newest frames; the sums of segments are made anew;
- keys and actions that the reader does not know: each is named on standard error.
"""
import glob
import gzip
import os
import pickle
import subprocess
import sys
import tempfile

SKIPPED = 77
MOST_BYTES = 50 << 10
HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, '..', '..', '..', '..', 'docs', 'examples')
SAYS_NOTHING = {'frames': ([],), 'user_metadata': ('',), 'internal_metadata': ('',), 'compile_context': ('N/A', ''),
                'fx_node_op': (None, ''), 'fx_node_name': (None, ''), 'fx_node_target': (None, ''),
                'fx_original_trace': (None, '')}
MADE_ANEW = ('allocated_size', 'active_size', 'requested_size')


def load(path):
    with open(path, 'rb') as file:
        data = file.read()
    return pickle.loads(gzip.decompress(data) if data[:2] == b'\x1f\x8b' else data)


def says_nothing(key, value):
    return key in SAYS_NOTHING and value in SAYS_NOTHING[key]


def comparable(key, value):
    """The value of a key without the differences named above."""
    if isinstance(value, dict):
        return {k: comparable(k, v) for k, v in value.items() if not says_nothing(k, v)}
    if isinstance(value, list):
        return [comparable(key, item) for item in value]
    if key == 'line' and value == 2**64 - 1:
        return -1
    return 'active_pending_free' if value == 'active_awaiting_free' else value


def without_sums(segments):
    kept = [{k: v for k, v in segment.items() if k not in MADE_ANEW} for segment in segments]
    return sorted(kept, key=lambda segment: (segment['device'], segment['address']))


def parts(snapshot):
    """{name: list of records}"""
    out = {name: without_sums(comparable('', snapshot.get(name, []))) for name in ('segments', 'host_segments')}
    for device, trace in enumerate(snapshot['device_traces']):
        out[f'device_traces[{device}]'] = comparable('', trace)
    for name in ('host_traces', 'external_annotations'):
        out[name] = comparable('', snapshot.get(name, []))
    out['allocator_settings'] = [snapshot.get('allocator_settings', {})]
    return out


def difference(path, before, after):
    """The first difference, or None."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(set(before) | set(after), key=str):
            if key not in after or key not in before:
                return f'{path}.{key}: {before.get(key, "absent")!r} -> {after.get(key, "absent")!r}'
            found = difference(f'{path}.{key}', before[key], after[key])
            if found:
                return found
        return None
    if isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            return f'{path}: {len(before)} -> {len(after)} items'
        found = (difference(f'{path}[{i}]', a, b) for i, (a, b) in enumerate(zip(before, after)))
        return next((one for one in found if one), None)
    return None if before == after and type(before) is type(after) else f'{path}: {before!r} -> {after!r}'


def compare(before, after):
    old, new = parts(before), parts(after)
    for name in sorted(set(old) | set(new)):
        found = difference(name, old.get(name, []), new.get(name, []))
        if found:
            return found
    return None


def is_comparable(snapshot):
    """A dict of a release whose blocks have addresses and frames."""
    if not isinstance(snapshot, dict) or 'device_traces' not in snapshot:
        return False
    blocks = [block for segment in snapshot['segments'] for block in segment['blocks']]
    return all('history' not in block and 'address' in block for block in blocks)


def round_trip(program, path, folder):
    recording, back = os.path.join(folder, 'run.ashlar'), os.path.join(folder, 'back.pickle')
    for source, target in ((path, recording), (recording, back)):
        done = subprocess.run([program, 'convert', source, target], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return None, f'convert to {os.path.basename(target)}: {done.stderr.strip()}'
        if target == recording:
            said = done.stderr
    return load(back), said


def proves_itself():
    """The comparison can fail: a value, a key and a record that are gone are seen."""
    whole = {'segments': [], 'device_traces': [[{'action': 'alloc', 'addr': 1, 'user_metadata': 'a'}, {'action': 'oom'}]]}
    for spoil in (lambda s: s['device_traces'][0][0].update(addr=2), lambda s: s['device_traces'][0][0].pop('user_metadata'),
                  lambda s: s['device_traces'][0].pop(), lambda s: s.update(host_traces=[{'action': 'alloc'}])):
        spoilt = pickle.loads(pickle.dumps(whole))
        spoil(spoilt)
        assert compare(whole, spoilt), 'a difference was not seen'
    assert compare(whole, whole) is None


def files():
    out = glob.glob(os.path.join(EXAMPLES, '*.pickle'))
    assert out, f'no example in {EXAMPLES}'
    shared = os.environ.get('ASHLAR_SHARED_DIR', '')
    for folder in ('captures', 'corpus'):
        out += glob.glob(os.path.join(shared, folder, '*.pickle.gz')) if shared else []
    return sorted(path for path in out if os.path.getsize(path) <= MOST_BYTES or path.startswith(EXAMPLES))


def main():
    proves_itself()
    program, paths = sys.argv[1], sys.argv[2:] or files()
    failed = compared = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            before = load(path)
            if not is_comparable(before):
                continue
            after, said = round_trip(program, path, folder)
            found = said if after is None else compare(before, after)
            compared += 1
            if found:
                failed += 1
                print(f'{os.path.basename(path)}: {found}')
    print(f'{compared} files, {failed} came back otherwise')
    return 1 if failed else 0 if compared else SKIPPED


if __name__ == '__main__':
    sys.exit(main())
