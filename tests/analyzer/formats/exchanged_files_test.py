"""Files that people exchange, written by the tools that write them or by Python's own library, and read by the program.

    exchanged_files_test.py PROGRAM SOURCE_FOLDER
"""
import gzip
import io
import json
import lzma
import os
import pickle
import sqlite3
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

PROGRAM, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
SNAPSHOT = os.path.join(ROOT, 'docs', 'examples', 'training_oom.pickle')


def explain(path, *flags):
    return subprocess.run([PROGRAM, 'explain', *flags, path], capture_output=True, check=False)


def refused(test, path, *words):
    done = explain(path)
    said = done.stderr.decode()
    test.assertEqual(done.returncode, 3, said)
    test.assertEqual(len(said.strip().splitlines()), 1, said)
    for word in words:
        test.assertIn(word, said)


def zipped(files, method=zipfile.ZIP_DEFLATED, large=False):
    out = io.BytesIO()
    with zipfile.ZipFile(out, 'w', method) as archive:
        for name, content in files.items():
            with archive.open(name, 'w', force_zip64=large) as member:
                member.write(content)
    return out.getvalue()


class Folder(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        with open(SNAPSHOT, 'rb') as file:
            cls.snapshot = file.read()
        cls.answer = explain(SNAPSHOT, '--json').stdout

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def write(self, name, content):
        path = os.path.join(self.scratch.name, name)
        with open(path, 'wb') as file:
            file.write(content)
        return path

    def is_the_snapshot(self, name, content):
        done = explain(self.write(name, content), '--json')
        self.assertEqual(done.stderr, b'', name)
        self.assertEqual(done.stdout, self.answer, name)


class Packed(Folder):
    def test_each_packing_gives_the_answer_of_what_is_in_it(self):
        for name, content in {
                'a.gz': gzip.compress(self.snapshot), 'a.xz': lzma.compress(self.snapshot),
                'two.xz': lzma.compress(self.snapshot[:1000]) + lzma.compress(self.snapshot[1000:]),
                'a.zip': zipped({'run/snapshot.pickle': self.snapshot}),
                'stored.zip': zipped({'s': self.snapshot}, zipfile.ZIP_STORED),
                'large.zip': zipped({'s': self.snapshot}, large=True),
                'mac.zip': zipped({'s.pickle': self.snapshot, '__MACOSX/._s.pickle': b'x', 'dir/': b''}),
                'read.zip': zipped({'README.md': b'see the pickle', 's.pkl': self.snapshot}),
                'saved.pt': zipped({'archive/data.pkl': self.snapshot, 'archive/version': b'3\n', 'archive/byteorder': b'little'},
                                   zipfile.ZIP_STORED)}.items():
            self.is_the_snapshot(name, content)

    def test_every_cut_is_one_line(self):
        for packed in (lzma.compress(self.snapshot[:300]), zipped({'s': self.snapshot[:300]})):
            for size in range(6, len(packed), 7):
                refused(self, self.write('cut', packed[:size]))

    def test_damage_is_noticed(self):
        packed = bytearray(zipped({'s': self.snapshot}, zipfile.ZIP_STORED))
        packed[len(packed) // 2] ^= 0x55
        refused(self, self.write('damaged.zip', bytes(packed)), 'zip', 'checksum')

    def test_a_bomb_costs_the_limit(self):
        bomb = zipped({'s': bytes(64 << 20)})
        done = subprocess.run(['bash', '-c', f'ulimit -v 2000000; exec "{PROGRAM}" explain "{self.write("bomb.zip", bomb)}"'],
                              capture_output=True, check=False)
        self.assertEqual(done.returncode, 3, done.stderr)

    def test_what_is_meant_must_be_told(self):
        refused(self, self.write('two.zip', zipped({'a.pickle': b'1', 'b.pickle': b'2'})), '2 files', 'a.pickle, b.pickle')
        refused(self, self.write('none.zip', zipped({})), 'zip file with 0 files')
        locked = bytearray(zipped({'s': self.snapshot}))
        central = locked.rindex(b'PK\x01\x02')
        locked[central + 8] |= 1
        refused(self, self.write('locked.zip', bytes(locked)), 'encrypted')


class Json(Folder):
    def test_a_snapshot_as_json_has_the_answer_of_its_pickle(self):
        self.is_the_snapshot('s.json', json.dumps(pickle.loads(self.snapshot)).encode())
        self.is_the_snapshot('s.json.gz', gzip.compress(json.dumps(pickle.loads(self.snapshot), indent=1).encode()))

    def test_cut_json_is_one_line(self):
        text = json.dumps(pickle.loads(self.snapshot)).encode()
        for size in (200, 5000, len(text) - 1):
            refused(self, self.write('cut.json', text[:size]), 'JSON')

    def memory(self, time, size, address, **more):
        args = {'Total Reserved': 20 << 20, 'Total Allocated': 3 << 20, 'Bytes': size, 'Addr': address, 'Device Id': 0, 'Device Type': 1}
        return {'ph': 'i', 's': 't', 'name': '[memory]', 'pid': 1, 'tid': 2, 'ts': time, 'args': args | more}

    def test_memory_events_of_a_chrome_trace_are_requests(self):
        other = {'ph': 'X', 'name': 'aten::mm', 'pid': 1, 'tid': 2, 'ts': 1.5, 'dur': 1, 'args': {'Bytes': 77, 'name': '[memory]'}}
        events = [self.memory(3.25, 2 << 20, 0x2000), self.memory(1.0, 1 << 20, 0x1000, **{'Total Allocated': 9 << 20}), other,
                  self.memory(4.0, -(1 << 20), 0x1000), self.memory(2.0, -512, 0x9000), self.memory(2.5, 64, 0x50, **{'Device Type': 0}),
                  self.memory(2.6, 4096, 0x60, **{'Device Id': 1})]
        for content in ({'schemaVersion': 1, 'deviceProperties': [{'name': '[memory]', 'args': {'Bytes': 5}}], 'traceEvents': events}, events):
            path = self.write('trace.json', json.dumps(content).encode())
            answer = json.loads(explain(path, '--json').stdout)
            self.assertEqual(answer['peak']['allocated_bytes'], 3 << 20)
            notes = ' | '.join(note['message'] for note in answer['notes'])
            for word in ('20.00 MiB', '8.00 MiB', 'frees of what was there', 'of other devices', 'of the host'):
                self.assertIn(word, notes)

    def test_a_chrome_trace_without_them_says_how_to_get_them(self):
        refused(self, self.write('t.json', b'{"traceEvents": [{"ph": "X", "name": "a", "pid": 1}]}'), 'profile_memory=True')


def varint(value):
    out = b''
    while value >= 0x80:
        out, value = out + bytes([value & 0x7f | 0x80]), value >> 7
    return out + bytes([value])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


class Profile(Folder):
    """pprof messages, written by the definition of the format."""

    def message(self, samples, types=(('allocations', 'count'), ('space', 'bytes')), packed=True):
        texts = ['']
        def text(word):
            if word not in texts:
                texts.append(word)
            return texts.index(word)
        out = b''.join(field(1, field(1, text(a)) + field(2, text(b))) for a, b in types)
        frames = {}
        for stack, values, labels in samples:
            ids = [frames.setdefault(frame, len(frames) + 1) for frame in stack]
            body = field(1, b''.join(map(varint, ids))) if packed else b''.join(field(1, one) for one in ids)
            body += field(2, b''.join(map(varint, values)))
            body += b''.join(field(3, field(1, text(key)) + field(2, text(value))) for key, value in labels.items())
            out += field(2, body)
        for (file, line, name), number in frames.items():
            out += field(4, field(1, number) + field(4, field(1, number) + field(2, line)))
            out += field(5, field(1, number) + field(2, text(name)) + field(4, text(file)))
        return out + b''.join(field(6, word.encode()) for word in texts)

    def test_bytes_by_line(self):
        main = ('/home/u/run.py', 9, '<module>')
        samples = [([('/home/u/net.py', 40, 'layer'), main], (3, 3 << 20), {'kind': 'buffer', 'device': 'gpu:1'}),
                   ([('/home/u/net.py', 41, 'norm'), main], (1, 1001), {'kind': 'buffer', 'device': 'gpu:1'}),
                   ([main], (1, 5000), {'kind': 'buffer', 'device': 'gpu:0'}), ([], (2, 0), {'kind': 'executable'})]
        for content in (self.message(samples), gzip.compress(self.message(samples)), self.message(samples, packed=False)):
            answer = json.loads(explain(self.write('memory.prof', content), '--json').stdout)
            self.assertEqual(answer['source'], 'a memory profile (pprof) of JAX, gpu:1')
            self.assertEqual([(row['label'], row['bytes'], row['blocks']) for row in answer['stacks']],
                             [('net.py:40 layer', 3 << 20, 3), ('net.py:41 norm', 1001, 1)])
            self.assertIsNone(answer['accounting']['reserved_bytes'])
        answer = json.loads(explain(self.write('memory.prof', content), '--json', '--device', '0').stdout)
        self.assertEqual(answer['accounting']['live_bytes'], 5000)

    def test_two_profiles_are_compared(self):
        main = ('/home/u/run.py', 9, '<module>')
        paths = [self.write(name, self.message([([main], (count, count * 4096), {'kind': 'buffer', 'device': 'cuda:0'})]))
                 for name, count in (('before.prof', 2), ('after.prof', 5))]
        done = subprocess.run([PROGRAM, 'diff', *paths], capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('run.py:9 <module>', done.stdout.decode())

    def test_other_profiles_and_cuts_are_one_line(self):
        refused(self, self.write('heap.prof', self.message([([], (1, 5), {})], (('alloc_objects', 'count'), ('alloc_space', 'bytes')))),
                'save_device_memory_profile')
        whole = self.message([([('/a.py', 1, 'f')], (1, 4096), {'kind': 'buffer', 'device': 'gpu:0'})])
        for size in range(1, len(whole)):
            done = explain(self.write('cut.prof', whole[:size]))
            self.assertIn(done.returncode, (0, 3))
            self.assertLessEqual(len(done.stderr.decode().splitlines()), 1)


class Nsys(Folder):
    COLUMNS = ('start INTEGER, globalPid INTEGER, deviceId INTEGER, contextId INTEGER, address INTEGER, pc INTEGER, bytes INTEGER, '
               'memKind INTEGER, memoryOperationType INTEGER, name TEXT, correlationId INTEGER, streamId INTEGER')

    def database(self, rows, more=()):
        path = os.path.join(self.scratch.name, 'run.sqlite')
        if os.path.exists(path):
            os.remove(path)
        base = sqlite3.connect(path)
        base.execute('CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)')
        if rows is not None:
            base.execute(f'CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS ({self.COLUMNS})')
            base.executemany('INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (?,?,0,1,?,0,?,?,?,NULL,?,7)', rows)
        for statement in more:
            base.execute(statement)
        base.commit()
        base.close()
        return path

    def test_memory_events_are_device_calls(self):
        one, two = 11 << 24, 22 << 24
        rows = [(9000, one, 0x5000, 4 << 20, 2, 0, 1), (12000, one, 0x9000000, 1 << 20, 2, 0, 2), (15000, one, 0x5000, 4 << 20, 2, 1, 3),
                (10000, one, 0x7000, 8 << 20, 1, 0, 4), (11000, two, 0x5000, 4096, 2, 0, 5)]  # pinned, another process
        stacks = ['CREATE TABLE CUDA_CALLCHAINS (id INTEGER, symbol INTEGER, module INTEGER, stackDepth INTEGER)',
                  'CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (correlationId INTEGER, globalTid INTEGER, callchainId INTEGER)',
                  "INSERT INTO StringIds VALUES (1, 'grow'), (2, 'main'), (3, '/opt/solver')",
                  'INSERT INTO CUDA_CALLCHAINS VALUES (70, 1, 3, 0), (70, 2, 3, 1)',
                  f'INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (2, {one + 5}, 70)']
        for more in ([], stacks):
            answer = json.loads(explain(self.database(rows, more), '--json').stdout)
            self.assertEqual(answer['source'], 'device calls from Nsight Systems, device 0, 7 events')
            self.assertEqual(answer['peak']['allocated_bytes'], 5 << 20)
            self.assertEqual(answer['live_at_end']['bytes'], 1 << 20)
            self.assertIn('other processes', json.dumps(answer['notes']))
        self.assertIn('grow', json.dumps(answer['live_at_end']))

    def test_other_databases_are_one_line(self):
        refused(self, self.database(None), 'cuda-memory-usage')
        refused(self, self.database([]), 'no allocation of device memory')
        with open(self.database([]), 'rb') as file:
            content = file.read()
        refused(self, self.write('cut.sqlite', content[:700]))
        base = sqlite3.connect(os.path.join(self.scratch.name, 'view.sqlite'))
        base.execute('CREATE VIEW CUDA_GPU_MEMORY_USAGE_EVENTS AS SELECT 1 AS globalPid')
        base.commit()
        base.close()
        refused(self, os.path.join(self.scratch.name, 'view.sqlite'), 'no export of Nsight Systems')


class Refused(Folder):
    def test_what_is_none_is_named(self):
        elf = b'\x7fELF\x02\x01\x01' + bytes(9)
        for content, word in (
                (b'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n', 'git lfs pull'),
                (b'\n<!DOCTYPE html><html><body>Sign in</body></html>', 'HTML page'), (elf + b'\x04\0' + bytes(200), 'core dump'),
                (elf + b'\x03\0' + bytes(200), 'a program or a library'), (b'\x89PNG\r\n\x1a\n' + bytes(50), 'picture'),
                (b'%PDF-1.7\n' + bytes(50), 'PDF'), (bytes(257) + b'ustar\x00' + bytes(300), 'tar archive'),
                (b'BZh91AY&SY' + bytes(50), 'bunzip2'), (struct.pack('<Q', 60) + b'{"a":{"dtype":"F16"}}' + bytes(60), 'safetensors')):
            refused(self, self.write('given', content), word)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
