"""Results between runs: what passed with the same build is not run again, so that a long run can be stopped and go on.

Measured rows are kept whether they passed or failed, until the build or what they run changes.

One object of JSON a line. A build is the program, the preloaded library, and the Python that goes into programs.
"""
import glob
import hashlib
import json
import os

from rows import Result

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def build_of(ashlar):
    hollow = os.path.join(os.path.dirname(os.path.dirname(ashlar)), 'hollow', 'libashlar_hollow.so')
    python = sorted(glob.glob(os.path.join(ROOT, 'hollow', 'python', '**', '*.py'), recursive=True))
    digest = hashlib.sha256()
    for path in [ashlar, hollow] + python:
        with open(path, 'rb') as file:
            digest.update(file.read())
    return digest.hexdigest()[:16]


class Kept:
    def __init__(self, path, ashlar):
        self.path = path
        self.build = build_of(ashlar) if path else ''
        self.known = {}
        if path and os.path.exists(path):
            with open(path, encoding='utf-8') as lines:
                for line in map(json.loads, lines):
                    self.known.pop((line['group'], line['name']), None)  # the latest word counts
                    if line['build'] == self.build and (line['state'] == 'passed' or line.get('scores')):
                        self.known[line['group'], line['name']] = line

    def result_of(self, row):
        line = self.known.get((row.group, row.name))
        if line is None or line.get('digest', '') != row.digest:
            return None
        return Result(row, line['state'], line['cells'], line.get('lines', []), line['seconds'], line['text'],
                      line.get('scores', {}))

    def add(self, result):
        if not self.path:
            return
        line = {'build': self.build, 'group': result.row.group, 'name': result.row.name, 'state': result.state,
                'cells': result.cells, 'lines': result.lines, 'seconds': result.seconds, 'text': result.text,
                'scores': result.scores, 'digest': result.row.digest}
        with open(self.path, 'a', encoding='utf-8') as out:
            out.write(json.dumps(line) + '\n')
