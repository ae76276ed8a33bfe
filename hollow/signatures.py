#!/usr/bin/env python3
"""Compares the functions of hollow/api with the prototypes in NVIDIA's headers, of every release that is given.

  hollow/signatures.py LABEL=FOLDER [LABEL=FOLDER ...]

The folders are those that made hollow/api/names (names.py). What counts is how an argument travels: as a pointer, a
number of 32 or of 64 bits, or a float. Exit code 1 where a function differs, or no release has it.
"""
import glob
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True  # a run leaves no file in the source tree
import names  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
OURS = re.compile(r'extern "C" __attribute__\(\(visibility\("default"\)\)\) [\w:\s\*]+?\b(\w+)\(([^{;]*?)\) \{')
FILES = re.compile(r'(cublas|cudnn|cusparse|cusolver|cufft|curand|nvml)\w*\.cc')
# Types that are pointers by another name, and those that end as they do and are numbers.
POINTER = re.compile(r'(Handle_t|Descriptor_t|Descr_t|[sS]tream_t|Info_t|[gG]enerator_t|Params_t|nvmlDevice_t|Desc_t|'
                     r'Layout_t|Preference_t|Plan_t|[cC]allback(_t)?|distribution_t|Pack_t)')
NUMBER = re.compile(r'cudnnRNNDataLayout_t')
WIDE = re.compile(r'((std::)?u?int64_t|(unsigned )?long long( int)?|unsigned long|(std::)?size_t|long)')


def travels(argument):
    """p: pointer, 4 or 8: bytes of a number, f or d: float or double; nothing for void."""
    argument = ' '.join(re.sub(r'\b(const|struct|enum)\b', ' ', argument).split())
    if argument in ('', 'void'):
        return ''
    if '*' in argument or '[' in argument or '(' in argument:
        return 'p'
    if argument == '...':
        return '.'
    kind = argument if WIDE.fullmatch(argument) else re.sub(r' \w+$', '', argument) if ' ' in argument else argument
    kind = argument if argument in ('unsigned int', 'long long') else kind
    if kind in ('float', 'double'):
        return kind[0]
    if WIDE.fullmatch(kind):
        return '8'
    return 'p' if POINTER.search(kind) and not NUMBER.search(kind) else '4'


def ours():
    """(file, name, how its arguments travel) of each function of a surface."""
    for path in sorted(glob.glob(os.path.join(HERE, 'api', '**', '*.cc'), recursive=True)):
        if not FILES.fullmatch(os.path.basename(path)):
            continue
        root = os.path.dirname(HERE)
        code = subprocess.run(['c++', '-std=c++20', '-E', '-P', '-I' + root, '-I' + os.path.join(root, 'include'), path],
                              capture_output=True, text=True, check=True).stdout
        for name, arguments in OURS.findall(' '.join(code.split())):
            yield os.path.basename(path), name, ''.join(travels(one) for one in arguments.split(','))


def main():
    folders = [one.split('=', 1) for one in sys.argv[1:]]
    if not folders:
        sys.exit(__doc__)
    releases = []
    for label, folder in folders:
        known = {}
        for found in names.look([(label, folder)]).values():
            known.update(found.prototypes)
        releases.append((label, known))
    checked = wrong = 0
    for file, name, mine in ours():
        seen = False
        for label, known in releases:
            if name not in known:
                continue
            seen = True
            theirs = ''.join(travels(one) for one in known[name][1])
            same = theirs.startswith(mine[:-1]) if mine.endswith('.') else theirs == mine
            checked += 1
            if not same:
                wrong += 1
                print(f'{file}: {name} takes {mine}, in {label} {theirs}')
        if not seen:
            wrong += 1
            print(f'{file}: no header has {name}')
    print(f'{checked} prototypes compared, {wrong} wrong')
    sys.exit(1 if wrong or not checked else 0)


if __name__ == '__main__':
    main()
