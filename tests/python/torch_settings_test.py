"""python/ashlar_gpu's settings and statistics for PyTorch, without PyTorch. conformance/plugin.py runs them with it.

    ASHLAR_PREFIX=build/release python3 torch_settings_test.py
"""
import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'python'))

from ashlar_gpu import _library as library
from ashlar_gpu import _torch_settings as settings
from ashlar_gpu import _torch_statistics as statistics

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'allocator', 'policy', 'torch_answers', 'answers.tsv')


def torch_answers():
    """(text, release, what PyTorch says), of each cell of the table."""
    with open(TABLE, encoding='utf-8') as file:
        head, *rows = [line.rstrip('\n').split('\t') for line in file if not line.startswith('#')]
    for text, *cells in rows:
        for release, cell in zip(head[1:], cells):
            yield json.loads(text), release, cell


def is_open_list(text, release):
    """PyTorch 2.6 looks behind the last word there; ours refuses it (docs/library/settings.md)."""
    return release.startswith('2.6') and ':[' in text and ']' not in text


class Settings(unittest.TestCase):
    def test_rules_are_those_of_the_release(self):
        wanted = {'1.13.1': 'torch-1.13', '2.0.1+cu117': 'torch-2.6', '2.6.0+cu124': 'torch-2.6', '2.9.1': 'torch-2.6',
                  '2.10.0': 'torch-2.10', '2.11.0': 'torch-2.10', '2.12.0+cu130': 'torch-2.12', '2.13.0': 'torch-latest',
                  '2.15.0a0+git12': 'torch-latest', '3.0': 'torch-latest'}
        self.assertEqual({version: settings.compat_of(version) for version in wanted}, wanted)

    def test_rules_begin_where_the_library_has_them_begin(self):
        rules = os.path.join(os.path.dirname(TABLE), '..', '..', '..', '..', 'allocator', 'policy', 'torch_rules.cc')
        with open(rules, encoding='utf-8') as file:
            of_cuda = file.read().partition('kRules[] = {')[2].partition('\n};')[0]
        rows = re.findall(r'\.name = "([^"]+)",\s+\.since = \{(\d+), (\d+)\}', of_cuda)
        self.assertGreater(len(rows), 4)
        for name, major, minor in rows:
            self.assertEqual(settings.compat_of(f'{major}.{minor}.0'), name)

    def test_pairs_keep_lists_and_names_of_files_whole(self):
        self.assertEqual(settings.pairs('a:1, b : [256:1,>:2],plan:/x:[y].txt'),
                         ([('a', '1'), ('b', '[256:1,>:2]'), ('plan', '/x:[y].txt')], True))
        self.assertEqual(settings.pairs(None), ([], True))
        self.assertEqual(settings.pairs('a:1,,b:2', 'torch-2.6'), ([('a', '1')], False))
        self.assertEqual(settings.pairs('a:[1:2'), ([], False))

    def test_signs_are_looked_at_up_to_26(self):
        self.assertEqual(settings.pairs('a,64'), ([('a', '64')], True))
        self.assertEqual(settings.pairs('a,64', 'torch-2.6'), ([], False))
        self.assertEqual(settings.pairs('a:\t6 4', 'torch-2.12'), ([('a', '64')], True))
        self.assertEqual(settings.pairs('a:\t6 4', 'torch-2.6'), ([('a', '\t64')], True))

    def merged(self, conf, **variables):
        return settings.merged(conf, '2.14.1', environment=variables)

    def test_who_says_it_last_wins(self):
        self.assertEqual(self.merged(None), 'compat:torch-latest')
        self.assertEqual(self.merged(None, PYTORCH_CUDA_ALLOC_CONF='a:1,b:2', PYTORCH_ALLOC_CONF='a:9'),
                         'compat:torch-latest,a:1,b:2')
        self.assertEqual(self.merged(None, PYTORCH_ALLOC_CONF='a:9'), 'compat:torch-latest,a:9')
        self.assertEqual(self.merged('a:3', PYTORCH_CUDA_ALLOC_CONF='a:1,b:2', ASHLAR_CONF='b:7'),
                         'compat:torch-latest,b:7,a:3')
        self.assertEqual(self.merged('compat:torch-2.6'), 'compat:torch-2.6')

    def test_pytorchs_variable_can_be_left_out(self):
        conf = settings.merged('a:3', '2.14.1', takes_torchs=False, environment={'PYTORCH_CUDA_ALLOC_CONF': 'b:1'})
        self.assertEqual(conf, 'compat:torch-latest,a:3')

    def test_what_is_wrong_is_passed_on(self):
        self.assertEqual(self.merged('nonsense'), 'compat:torch-latest,nonsense')
        self.assertEqual(self.merged('a:1', PYTORCH_CUDA_ALLOC_CONF=','), 'compat:torch-latest,,')
        self.assertEqual(self.merged('a:1', PYTORCH_CUDA_ALLOC_CONF='a:x,a:2'), 'compat:torch-latest,a:1')
        self.assertEqual(self.merged('a:x,a:2'), 'compat:torch-latest,a:x,a:2')

    def test_pytorchs_answers(self):
        """What PyTorch takes is whole, and has PyTorch's values; what is passed on is cut as the text is."""
        refused = 0
        for text, release, answer in torch_answers():
            compat = settings.compat_of(release)
            given, is_whole = settings.pairs(text, compat)
            conf = settings.merged(None, release, environment={'PYTORCH_CUDA_ALLOC_CONF': text})
            with self.subTest(text=text, release=release):
                if not is_whole:
                    refused += 1
                    self.assertTrue(answer == 'no' or is_open_list(text, release), answer)
                    self.assertTrue(conf.endswith(',' + text))
                    continue
                own = [] if 'compat' in dict(given) else [('compat', compat)]
                self.assertEqual(settings.pairs(conf, compat), ([*own, *given], True))
                shown = re.search(r'max_split_size=(\d+)', answer)
                if shown:
                    mib = re.match(r'\s*[+-]?\d+', dict(given)['max_split_size_mb']).group()
                    self.assertEqual(int(mib) << 20, int(shown.group(1)))
        self.assertGreater(refused, 50)

    def test_a_snapshot_has_pytorchs_keys_alone(self):
        recorded = {'PYTORCH_CUDA_ALLOC_CONF': 'compat:torch-latest,max_split_size_mb:64,report_leaks:False', 'x': 1}
        self.assertEqual(settings.as_recorded(recorded),
                         {'PYTORCH_CUDA_ALLOC_CONF': 'max_split_size_mb:64', 'x': 1, 'max_cached_size': -1,
                          'max_round_threshold': -1})
        older = settings.as_recorded({'PYTORCH_CUDA_ALLOC_CONF': 'compat:torch-2.6'})
        self.assertEqual(older, {'PYTORCH_CUDA_ALLOC_CONF': ''})
        self.assertEqual(recorded['PYTORCH_CUDA_ALLOC_CONF'][:7], 'compat:')


class Library(unittest.TestCase):
    # Keys that a release of PyTorch has not, or not yet: docs/library/settings.md.
    OURS = re.compile(r'(compat|policy|memory_limit_mb|expandable_segments_reserve\w*|use_cuda_host_register):')

    def is_taken(self, conf):
        try:
            library.close(library.open_allocator(conf=conf, memory=library.MEMORY_SIMULATED))
        except library.Error:
            return False
        return True

    def test_what_pytorch_refuses_is_refused(self):
        for text, release, answer in torch_answers():
            if self.OURS.match(text) or is_open_list(text, release):
                continue
            with self.subTest(text=text, release=release):
                conf = settings.merged(None, release, environment={'PYTORCH_CUDA_ALLOC_CONF': text})
                self.assertEqual(self.is_taken(conf), answer != 'no')


class Statistics(unittest.TestCase):
    def test_names_become_dictionaries(self):
        flat = {'active.all.current': 1, 'active.all.peak': 2, 'num_ooms': 3}
        self.assertEqual(statistics.nested(flat), {'active': {'all': {'current': 1, 'peak': 2}}, 'num_ooms': 3})


if __name__ == '__main__':
    unittest.main()
