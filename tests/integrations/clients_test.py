#!/usr/bin/env python3
"""Client programs of the C++ integrations, compiled by nvcc and clang, over the hollow device. tools/test real has the same with
other releases' headers.

clients_test.py ASHLAR LIBRARY_FOLDER
Exits 77, which ctest shows as skipped, where none could be compiled; 1 where one did not do what it must.
"""
import os
import sys
import tempfile

sys.dont_write_bytecode = True

import client_checks as checks
from clients import Failed, Missing, Tools

CHECKS = (checks.without_exceptions, checks.by_libcxx, checks.onnxruntime_addresses, checks.thrust, checks.cub, checks.cub_scenarios, checks.cuda_mr)


def main():
    ashlar, library = (os.path.abspath(path) for path in sys.argv[1:])
    counts = {'passed': 0, 'failed': 0, 'skipped': 0}
    with tempfile.TemporaryDirectory(prefix='ashlar-integrations-') as folder:
        tools = Tools(ashlar, library, folder)
        for check in CHECKS:
            try:
                state, words = 'passed', check(tools)
            except Missing as reason:
                state, words = 'skipped', str(reason)
            except Failed as reason:
                state, words = 'failed', str(reason)
            counts[state] += 1
            print(f'{state:7} {check.__name__}: {words}', flush=True)
    print(', '.join(f'{count} {state}' for state, count in counts.items()))
    if counts['failed']:
        return 1
    return 0 if counts['passed'] else 77


if __name__ == '__main__':
    sys.exit(main())
