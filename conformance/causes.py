"""The pages of docs/guide/causes: the program before gets its cause first, the program after does not, and the page has the
memory that both take.

A page has its program behind a line <!-- example: FLAGS -->, then what cures it as a diff whose parts are divided by "@@",
then a sentence with the peak of each. One without says why: <!-- no example: reason -->.
"""
import glob
import hashlib
import os
import re

import venvs
from bench import HERE
from rows import Row, Verdict

FOLDER = os.path.join(HERE, '..', 'docs', 'guide', 'causes')
EXAMPLE = re.compile(r'<!-- example: (.*?) -->\n```python\n(.*?)```\n\n```diff\n(.*?)```.*?'
                     r'is ([\d,]+) MiB before\s+and\s+([\d,]+)\s+MiB\s+after', re.DOTALL)
NO_EXAMPLE = re.compile(r'<!-- no example: .+ -->')
NEARLY = 0.05  # of the peak that a page tells: a library's workspaces differ
FOUND = ('likely', 'proven')


def pages():
    for path in sorted(glob.glob(os.path.join(FOLDER, '*.md'))):
        with open(path, encoding='utf-8') as file:
            yield os.path.splitext(os.path.basename(path))[0], file.read()


def first_cause(explanation):
    found = [one['name'] for one in explanation['causes'] if one['finding'] == 'found' and one['confidence'] in FOUND]
    return found[0] if found else 'none'


def peak_mib(report):
    devices = [device for one in report['processes'] if one['torch'] for device in one['torch']['devices']]
    return max(device['peak_reserved_bytes'] for device in devices) / (1 << 20)


def cured(program, diff):
    """The program with each part of the diff made, whose old lines are there once."""
    for part in diff.split('\n@@\n'):
        lines = part.rstrip('\n').split('\n')
        old, new = (''.join(line[1:] + '\n' for line in lines if line[0] in kept) for kept in ('- ', '+ '))
        if program.count(old) != 1:
            raise ValueError(f'{old!r} is there {program.count(old)} times')
        program = program.replace(old, new)
    return program


def measure(bench, name, page):
    verdict, (flags, before, diff, *told) = Verdict(), EXAMPLE.search(page).groups()
    for which, code, mib in zip(('before', 'after'), (before, cured(before, diff)), told):
        folder = bench.new_folder('cause')
        with open(os.path.join(folder, 'example.py'), 'w', encoding='utf-8') as file:
            file.write(code)
        run = bench.dry_run(venvs.python_of('torch-2.14.1'), ['example.py'], flags.split(), cwd=folder, keeps=False)
        first, peak, wanted = first_cause(run.report['explanation']), peak_mib(run.report), float(mib.replace(',', ''))
        verdict.cells[which] = f'{first}, {peak:,.0f} MiB'
        verdict.expect((first == name) == (which == 'before'), f'{which}: the first cause is {first}')
        verdict.expect(abs(peak - wanted) <= NEARLY * wanted, f'{which}: the peak is {peak:,.0f} MiB; the page says {mib}')
    return verdict


def rows():
    out = []
    for name, page in pages():
        if EXAMPLE.search(page):
            out.append(Row('causes', name, 25, lambda bench, n=name, p=page: measure(bench, n, p),
                           digest=hashlib.sha256(page.encode()).hexdigest()[:16]))
        elif not NO_EXAMPLE.search(page):
            out.append(Row('causes', name, 1, lambda bench, n=name: no_example(n)))
    return out


def no_example(name):
    verdict = Verdict()
    verdict.expect(False, f'docs/guide/causes/{name}.md has neither an example nor a line that says why not')
    return verdict
