"""Results between runs: what passed with the same build is not run again, so that a long run can be stopped and go on.

One object of JSON a line. A build is the program, the preloaded library, and the Python that goes into programs.
"""
import glob
import hashlib
import json
import os

from rows import Result

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


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
        self.passed = {}
        if path and os.path.exists(path):
            with open(path, encoding='utf-8') as lines:
                for line in map(json.loads, lines):
                    self.passed.pop((line['group'], line['name']), None)  # the latest word counts
                    if line['build'] == self.build and line['state'] == 'passed':
                        self.passed[line['group'], line['name']] = line

    def result_of(self, row):
        line = self.passed.get((row.group, row.name))
        return line and Result(row, line['state'], line['cells'], [], line['seconds'], line['text'])

    def add(self, result):
        if not self.path:
            return
        line = {'build': self.build, 'group': result.row.group, 'name': result.row.name, 'state': result.state,
                'cells': result.cells, 'seconds': result.seconds, 'text': result.text}
        with open(self.path, 'a', encoding='utf-8') as out:
            out.write(json.dumps(line) + '\n')
