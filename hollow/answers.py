#!/usr/bin/env python3
"""Prints how the hollow device answers the public names of NVIDIA's libraries.

  hollow/answers.py                          all of them, as a page of markdown
  hollow/answers.py cudaMemGetInfo cuInit    these, a line each

The names are those of hollow/api/names; a surface's own function of the same name wins.
"""
import glob
import os
import re
import sys
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
TITLES = {'runtime': 'CUDA runtime', 'driver': 'CUDA driver', 'nvml': 'NVML', 'cublas': 'cuBLAS', 'cublaslt': 'cuBLASLt',
          'cudnn': 'cuDNN', 'cusparse': 'cuSPARSE', 'cusparselt': 'cuSPARSELt', 'cusolver': 'cuSOLVER', 'cufft': 'cuFFT',
          'curand': 'cuRAND', 'nccl': 'NCCL'}
HEAD = '''# How each name is answered

Read from the surfaces themselves: every public function of NVIDIA's libraries, CUDA 11.8 to 13.2.

| answer | means |
|---|---|
| modelled | it does what the library does to memory, order and values, or answers what the library would |
| sized | it writes the size of a workspace, by the rule of docs/internals/hollow.md |
| launched | work for the device, which is accepted and not run; what it would have written is unknown from then on |
| ignored | it succeeds and does nothing: each is listed below with its reason |
| refused | it answers "not supported", and the report counts it by name |
'''


def surfaces():
    """(names that a surface defines, {name: reason} of those that are ignored)."""
    defined, ignored = set(), {}
    for path in sorted(glob.glob(os.path.join(HERE, 'api', '**', '*.cc'), recursive=True)):
        with open(path, encoding='utf-8') as file:
            code = file.read()
        ignored.update(re.findall(r'ASHLAR_IGNORED(?:_AFTER_INIT)?\((\w+),\s*"([^"]*)"\)', code))
        defined.update(re.findall(r'ASHLAR_SURFACE [^;{(]*?\b(\w+)\(', code))
        defined.update(re.findall(r'ASHLAR_SAME\((\w+),', code))
        # Tables of one kind: a macro of the file that defines the name that it is given.
        for macro in re.findall(r'#define (ASHLAR_\w+)\(', code):
            defined.update(re.findall(macro + r'\((\w+)', code))
    return defined, ignored


def listed(library):
    """{name: the kind of its line}."""
    with open(os.path.join(HERE, 'api', 'names', library + '.inc'), encoding='utf-8') as file:
        return {name: kind.lower() for kind, name in re.findall(r'^ASHLAR_(\w+)\((\w+)', file.read(), flags=re.M)}


def answers():
    """{library: {answer: [name]}}."""
    defined, ignored = surfaces()
    out = {}
    for library in TITLES:
        groups = {kind: [] for kind in ('modelled', 'sized', 'launched', 'ignored', 'refused')}
        for name, kind in sorted(listed(library).items()):
            groups['ignored' if name in ignored else 'modelled' if name in defined else kind].append(name)
        out[library] = groups
    return out, ignored


def page():
    of, ignored = answers()
    kinds = list(next(iter(of.values())))
    lines = [HEAD, '| library | ' + ' | '.join(kinds) + ' |', '|---|' + '---|' * len(kinds)]
    for library, groups in of.items():
        lines.append('| %s | %s |' % (TITLES[library], ' | '.join(str(len(groups[kind])) for kind in kinds)))
    lines += ['', '## Ignored', '', '| name | why |', '|---|---|']
    lines += ['| `%s` | %s |' % (name, ignored[name]) for groups in of.values() for name in groups['ignored']]
    for kind in ('sized', 'launched', 'refused'):
        lines += ['', '## %s' % kind.capitalize()]
        for library, groups in of.items():
            if groups[kind]:
                names = ' '.join(groups[kind])
                lines += ['', '**%s**:' % TITLES[library]] + textwrap.wrap(names, 118, break_long_words=False)
    return '\n'.join(lines) + '\n'


def line(name):
    of, ignored = answers()
    for library, groups in of.items():
        for kind, names in groups.items():
            if name in names:
                return '%s: %s, of %s%s' % (name, kind, TITLES[library], ': ' + ignored[name] if name in ignored else '')
    return None


def main():
    if len(sys.argv) == 1:
        sys.stdout.write(page())
    for name in sys.argv[1:]:
        found = line(name)
        if found is None:
            sys.exit('hollow/answers.py: %s is no public name of these libraries: %s' % (name, ', '.join(TITLES.values())))
        print(found)


if __name__ == '__main__':
    main()
