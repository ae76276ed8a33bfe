"""What `ashlar convert` writes for other tools, read by Python's own library and held to `explain --json`.

    files_test.py PROGRAM SOURCE_FOLDER
"""
import csv
import json
import os
import pickle
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
SNAPSHOT = os.path.join(ROOT, 'docs', 'examples', 'training_oom.pickle')


def run(*words, code=0):
    done = subprocess.run([PROGRAM, *words], capture_output=True, check=False)
    assert done.returncode == code, f'{words} ended with {done.returncode}: {done.stderr.decode()}'
    return done


def unpickled(path):
    with open(path, 'rb') as file:
        return pickle.load(file)


def answer():
    return json.loads(run('explain', '--json', SNAPSHOT).stdout)


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = cls.scratch.name
        cls.answer = answer()

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def convert(self, name, *flags, source=SNAPSHOT):
        out = os.path.join(self.folder, name)
        self.said = run('convert', source, out, *flags).stderr.decode()
        return out

    def read(self, name, *flags, source=SNAPSHOT):
        with open(self.convert(name, *flags, source=source), encoding='utf-8') as file:
            return file.read()

    def test_folded_bytes_are_the_allocated_ones(self):
        lines = self.read('a.folded').splitlines()
        weights = [int(line.rsplit(' ', 1)[1]) for line in lines]
        self.assertEqual(sum(weights), self.answer['accounting']['allocated_bytes'])
        self.assertIn('events, of which the state at one moment is written (', self.said)
        # Outermost first: where explain names a line, it stands behind its callers.
        deepest = max(lines, key=lambda line: line.count(';')).rsplit(' ', 1)[0].split(';')
        self.assertGreater(len(deepest), 1)
        self.assertEqual(len(lines), len({line.rsplit(' ', 1)[0] for line in lines}))

    def test_speedscope_profiles_add_up(self):
        out = json.loads(self.read('a.speedscope.json'))
        self.assertEqual(out['$schema'], 'https://www.speedscope.app/file-format-schema.json')
        live, stranded = out['profiles']
        self.assertEqual(sum(live['weights']), self.answer['accounting']['allocated_bytes'])
        self.assertEqual(sum(stranded['weights']), self.answer['accounting']['stranded_bytes'])
        frames = out['shared']['frames']
        for profile in out['profiles']:
            self.assertEqual(profile['unit'], 'bytes')
            self.assertEqual(profile['endValue'], sum(profile['weights']))
            self.assertEqual(len(profile['samples']), len(profile['weights']))
            self.assertTrue(all(0 <= frame < len(frames) for sample in profile['samples'] for frame in sample))
        folded = {line.rsplit(' ', 1)[0].split(';')[0] for line in self.read('b.folded').splitlines()}
        roots = {frames[sample[0]]['name'] for sample in live['samples']}
        self.assertTrue(all(any(text.startswith(root) for text in folded) for root in roots))

    def test_events_have_the_sums_after_them(self):
        rows = list(csv.DictReader(self.read('a.events.csv').splitlines()))
        self.assertEqual(max(int(row['allocated_bytes']) for row in rows), self.answer['peak']['allocated_bytes'])
        self.assertEqual(max(int(row['reserved_bytes']) for row in rows), self.answer['peak']['reserved_bytes'])
        self.assertEqual([int(row['event']) for row in rows], list(range(len(rows))))
        by_flag = run('convert', SNAPSHOT, '-', '--to', 'events').stdout.decode()
        self.assertEqual(list(csv.DictReader(by_flag.splitlines())), rows)
        self.assertIn('id,lower,upper,size', self.read('a.csv'))  # its meaning stayed

    def test_rmm_log_asks_for_the_same(self):
        log = self.convert('a.rmm.csv')
        self.assertIn('events that are no request', self.said)
        again = self.convert('b.trace', source=log)
        straight = self.convert('c.trace')
        peak = [json.loads(run('replay', '--cold', '--json', path).stdout)['peak_requested'] for path in (again, straight)]
        self.assertEqual(*peak)
        with open(log, encoding='utf-8') as file:
            rows = list(csv.DictReader(file))
        self.assertTrue(all(re.fullmatch(r'\d\d:\d\d:\d\d\.\d{6}', row['Time']) for row in rows))
        self.assertEqual(sum(row['Action'] == 'allocate failure' for row in rows), 1)
        live = {}
        for row in rows:  # as RMM's own replay walks it
            pointer = 0 if row['Pointer'] == '(nil)' else int(row['Pointer'], 16)
            if row['Action'] == 'allocate':
                self.assertNotIn(pointer, live)
                live[pointer] = row['Size']
            elif row['Action'] == 'free':
                self.assertEqual(live.pop(pointer), row['Size'])

    def test_openmetrics_figures_are_the_answers(self):
        text = self.read('a.prom')
        self.assertTrue(text.endswith('# EOF\n'))
        parts = dict(re.findall(r'ashlar_part_bytes\{device="0",part="(\w+)"\} (\d+)', text))
        known = {key: value for key, value in self.answer['accounting'].items() if value is not None}
        self.assertEqual({f'{key}_bytes': int(value) for key, value in parts.items()}, known)
        found = {cause['name'] for cause in self.answer['causes'] if cause['finding'] == 'found'}
        self.assertEqual(set(re.findall(r'ashlar_cause_bytes\{device="0",cause="(\w+)"', text)), found)

    def test_database_answers_the_documents_queries(self):
        database = sqlite3.connect(self.convert('a.sqlite'))
        self.addCleanup(database.close)
        with open(os.path.join(ROOT, 'docs', 'guide', 'tables.md'), encoding='utf-8') as page:
            text = page.read()
        queries = re.findall(r'```sql\n(.*?)```', text, re.S)
        self.assertEqual(len(queries), 5)
        answers = [database.execute(query).fetchall() for query in queries]
        self.assertTrue(all(answers[:4]))
        holders = [(row['label'], row['bytes'], row['blocks']) for row in self.answer['stacks']]
        self.assertEqual(answers[0][:len(holders)], holders[:5])
        best = min(row['peak_reserved_bytes'] for row in self.answer['what_if'])
        self.assertEqual(answers[3][0][1], best)
        for table in re.findall(r'^\| `(\w+)` \|.*\| (.*) \|$', text, re.M):  # the schema is as documented
            columns = [row[1] for row in database.execute(f'PRAGMA table_info({table[0]})')]
            documented = re.findall(r'`(\w+)`', re.sub(r'\([^)]*\)', '', table[1]))
            self.assertEqual(columns, documented, table[0])

    def test_database_adds_up(self):
        database = sqlite3.connect(self.convert('b.db'))
        self.addCleanup(database.close)
        def one(query):
            return database.execute(query).fetchone()[0]
        accounting = dict(database.execute('SELECT part, bytes FROM accounting'))
        self.assertEqual(accounting, {key.removesuffix('_bytes'): bytes for key, bytes in self.answer['accounting'].items()})
        self.assertEqual(one("SELECT sum(size_bytes) FROM blocks WHERE state_at_moment = 'live'"),
                         accounting['allocated'])
        self.assertEqual(one('SELECT sum(bytes_at_moment) FROM segments'), accounting['reserved'])
        self.assertEqual(one('SELECT count(*) FROM what_if'), len(self.answer['what_if']))
        self.assertEqual(one('SELECT count(*) FROM causes'), len(self.answer['causes']))
        self.assertEqual(one("SELECT value FROM meta WHERE key = 'verdict'"), self.answer['verdict'])
        self.assertEqual(one('SELECT count(*) FROM events JOIN blocks USING (device, block) '
                             'WHERE events.address != blocks.address'), 0)
        self.assertEqual(one('PRAGMA integrity_check'), 'ok')

    def named(self):
        """The snapshot, every second live block of which a list holds and the others nobody."""
        snapshot = unpickled(SNAPSHOT)
        live = [block['address'] for segment in snapshot['segments'] for block in segment['blocks']
                if block['state'] == 'active_allocated']
        snapshot['ashlar_names'] = {
            'version': 1, 'when': 'out_of_memory', 'seconds': 0.25, 'objects': 1234, 'bound': None,
            'live_bytes': 0,  # not read
            'holders': [{'kind': 'element', 'name': 'losses[]', 'file': '/a/train.py', 'line': 31, 'function': 'train',
                         'container': 'list', 'bytes': 0, 'blocks': 0, 'traits': ['in_call']},
                        {'kind': 'not_found', 'name': 'not found', 'bytes': 0, 'blocks': 0}],
            'blocks': [[address, i % 2, [1] if i % 2 == 0 else []] for i, address in enumerate(sorted(live))]}
        path = os.path.join(self.folder, 'named.pickle')
        with open(path, 'wb') as file:
            pickle.dump(snapshot, file)
        return path

    def test_names_stay_in_recordings_and_tables(self):
        path = self.named()
        named = json.loads(run('explain', '--json', path).stdout)['held']
        self.assertEqual(named['holders'][0]['name'], 'losses[]')
        recording = self.convert('named.ashlar', source=path)
        self.assertEqual(json.loads(run('explain', '--json', recording).stdout)['held'], named)
        back = self.convert('back.pickle', source=recording)
        self.assertEqual(json.loads(run('explain', '--json', back).stdout)['held'], named)
        database = sqlite3.connect(self.convert('named.sqlite', source=recording))
        rows = dict(database.execute('SELECT name, bytes FROM holders'))
        self.assertEqual(rows, {one['name']: one['bytes'] for one in named['holders']})
        joined = dict(database.execute('SELECT name, count(*) FROM blocks JOIN holders USING (device, holder) GROUP BY name'))
        self.assertEqual(joined, dict(database.execute('SELECT name, blocks FROM holders')))
        self.convert('named.trace', source=path)
        self.assertIn('names of who holds the memory', self.said)

    def test_folder_has_the_tables_of_the_database(self):
        folder = self.convert('tables/')
        database = sqlite3.connect(self.convert('c.sqlite'))
        self.addCleanup(database.close)
        names = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        self.assertEqual(sorted(os.listdir(folder)), sorted(f'{name}.csv' for name in names))
        for name in names:
            with open(os.path.join(folder, f'{name}.csv'), encoding='utf-8', newline='') as file:
                header, *rows = csv.reader(file)
            wanted = database.execute(f'SELECT * FROM {name}')
            self.assertEqual(header, [column[0] for column in wanted.description])
            of_database = [list(row) for row in wanted]
            self.assertEqual(len(rows), len(of_database), name)
            of_files = [[float(text) if isinstance(cell, float) else text for text, cell in zip(row, cells)]
                        for row, cells in zip(rows, of_database)]  # real numbers to the last bit
            self.assertEqual(of_files, [['' if cell is None else cell if isinstance(cell, float) else str(cell)
                                         for cell in cells] for cells in of_database], name)

    def test_pickle_can_be_cut(self):
        whole = unpickled(SNAPSHOT)
        cut = unpickled(self.convert('cut.pickle', '--least-size', '50MiB'))
        self.assertIn('events left out as asked (', self.said)
        def sizes(snapshot):
            return sorted(block['requested_size'] for segment in snapshot['segments'] for block in segment['blocks']
                          if block['state'] == 'active_allocated')
        self.assertEqual(sizes(cut), [size for size in sizes(whole) if size >= 50 << 20])
        kept = [entry for entry in whole['device_traces'][0]
                if entry['action'] not in ('alloc', 'free_requested', 'free_completed') or entry['size'] >= 50 << 20]
        self.assertEqual([entry['action'] for entry in cut['device_traces'][0]], [entry['action'] for entry in kept])
        for segment, of_whole in zip(cut['segments'], whole['segments']):
            self.assertEqual(sum(block['size'] for block in segment['blocks']), of_whole['total_size'])
        json.loads(run('explain', '--json', os.path.join(self.folder, 'cut.pickle')).stdout)  # it still fits together

        of_lines = unpickled(self.convert('lines.pickle', '--stack', 'adamw.py'))
        for entry in of_lines['device_traces'][0]:
            if entry['action'] == 'alloc':
                self.assertTrue(any('adamw.py' in frame['filename'] for frame in entry['frames']))
        run('explain', '--json', os.path.join(self.folder, 'lines.pickle'))

    def test_a_part_is_a_snapshot_of_its_own(self):
        """The events of the part, and before and after each of them the sums of the whole."""
        part = unpickled(self.convert('part.pickle', '--window', '1000:3000'))
        events = part['device_traces'][0]
        whole = unpickled(SNAPSHOT)['device_traces'][0]
        def essence(entry):
            return entry['action'], entry.get('addr'), entry['size']
        begin = next(i for i in range(900, 1100) if [essence(e) for e in whole[i:i + 50]] == [essence(e) for e in events[:50]])
        self.assertEqual([essence(entry) for entry in events], [essence(entry) for entry in whole[begin:begin + len(events)]])
        self.assertGreater(len(events), 1900)
        def sums(name, *flags, source):
            return [(row['action'], row['address'], row['allocated_bytes'], row['reserved_bytes'])
                    for row in csv.DictReader(self.read(name, *flags, source=source).splitlines())]
        of_whole = sums('whole.events.csv', source=SNAPSHOT)[begin:begin + len(events)]
        self.assertEqual(sums('part.events.csv', source=os.path.join(self.folder, 'part.pickle')), of_whole)
        self.assertEqual(sums('part2.events.csv', '--window', '1000:3000', source=SNAPSHOT), of_whole)

    def test_every_device_is_in_it(self):
        """The same run on two devices: each figure stands twice, and --device takes one."""
        snapshot = unpickled(SNAPSHOT)
        snapshot['segments'] += [dict(segment, device=1) for segment in snapshot['segments']]
        snapshot['device_traces'][1:2] = [list(snapshot['device_traces'][0])]
        both = os.path.join(self.folder, 'both.pickle')
        with open(both, 'wb') as file:
            pickle.dump(snapshot, file, protocol=4)
        one = self.read('one.folded')
        self.assertEqual(sorted(self.read('both.folded', source=both).splitlines()),
                         sorted(f'device {device};{line}' for device in (0, 1) for line in one.splitlines()))
        self.assertEqual(self.read('second.folded', '--device', '1', source=both), one)
        database = sqlite3.connect(self.convert('both.sqlite', source=both))
        self.addCleanup(database.close)
        for table in ('blocks', 'events', 'segments', 'what_if', 'causes', 'accounting'):
            counts = [row[0] for row in database.execute(f'SELECT count(*) FROM {table} GROUP BY device ORDER BY device')]
            self.assertEqual(len(counts), 2, table)
            self.assertEqual(*counts)
        self.assertEqual(database.execute('SELECT count(*), count(DISTINCT frame) FROM frames').fetchone(),
                         database.execute('SELECT count(DISTINCT frame), count(*) FROM frames').fetchone())
        metrics = self.read('both.prom', source=both)
        self.assertEqual(metrics.count('# TYPE ashlar_part_bytes gauge'), 1)
        self.assertEqual(len(re.findall(r'^ashlar_trace_info', metrics, re.M)), 2)
        cut = unpickled(self.convert('cut2.pickle', '--device', '1', source=both))
        self.assertEqual([len(trace) for trace in cut['device_traces'][:2]], [0, len(snapshot['device_traces'][0])])
        self.assertEqual({segment['device'] for segment in cut['segments']}, {1})
        self.convert('both.rmm', source=both)
        self.assertIn('devices beside the one that is written', self.said)

    def test_errors_say_the_mend(self):
        out = os.path.join(self.folder, 'x')
        for words, code, parts in (
                ((SNAPSHOT, '-', '--to', 'sqlite'), 2, ['--to sqlite writes a file']),
                ((SNAPSHOT, '-', '--to', 'tables'), 2, ['--to tables writes a folder']),
                ((SNAPSHOT, '-', '--to', 'nothing'), 2, ['none of', 'perfetto', 'openmetrics']),
                ((SNAPSHOT, out + '.csv', '--stack', 'f'), 2, ['only a pickle can be cut']),
                ((SNAPSHOT, out + '.pickle', '--device', '9'), 2, ['no device 9']),
                ((SNAPSHOT, '/no/such/folder/a.sqlite'), 3, ['cannot write'])):
            said = run('convert', *words, code=code).stderr.decode()
            self.assertEqual(said.count('\n'), 1, said)
            for part in parts:
                self.assertIn(part, said)
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith('x')], [])

    def test_requests_and_problems_become_all_of_it(self):
        trace = os.path.join(self.folder, 't.trace')
        with open(trace, 'w', encoding='utf-8') as file:
            for i in range(300):
                file.write(f'a {i} {1000 + i * 7001} 0\n' + (f'f {i - 5}\n' if i >= 5 else ''))
        problem = self.convert('t.csv', source=trace)
        for source in (trace, problem):
            for name in ('t.pftrace', 't.folded', 't.speedscope.json', 't.prom', 't.events.csv', 't.rmm', 't.db', 't/'):
                self.convert(name, source=source)
        self.assertEqual(run('convert', trace, '-', '--to', 'folded').stdout.decode().split(' ')[0], 'no')

    def test_interrupted_leaves_the_old_file(self):
        """Stopped in the middle of writing: as soon as something of the new file is there."""
        trace = os.path.join(self.folder, 'long.trace')
        with open(trace, 'w', encoding='utf-8') as file:
            file.writelines(f'a {i} {512 + i} 0\nf {i}\n' for i in range(150_000))
        for name in ('old.events.csv', 'old.sqlite', 'old.pftrace'):
            with tempfile.TemporaryDirectory() as folder:
                old = os.path.join(folder, name)
                with open(old, 'w', encoding='utf-8') as file:
                    file.write('the old one')
                started = subprocess.Popen([PROGRAM, 'convert', trace, old])
                while started.poll() is None and not self.has_begun(folder):
                    time.sleep(0.001)
                started.send_signal(signal.SIGINT)
                self.assertEqual(started.wait(), -signal.SIGINT)
                with open(old, encoding='utf-8') as file:
                    self.assertEqual(file.read(), 'the old one')
                self.assertEqual(os.listdir(folder), [name])

    @staticmethod
    def has_begun(folder):
        return any(name.startswith('.') and os.stat(os.path.join(folder, name)).st_size for name in os.listdir(folder))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
