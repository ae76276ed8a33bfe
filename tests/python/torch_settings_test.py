"""python/ashlar_gpu's settings and statistics for PyTorch, without PyTorch. tests/real/plugin.py runs them with it."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'python'))

from ashlar_gpu import _torch_settings as settings
from ashlar_gpu import _torch_statistics as statistics


class Settings(unittest.TestCase):
    def test_rules_are_those_of_the_release(self):
        wanted = {'1.13.1': 'torch-1.13', '2.0.1+cu117': 'torch-2.6', '2.6.0+cu124': 'torch-2.6', '2.9.1': 'torch-2.6',
                  '2.10.0': 'torch-2.10', '2.11.0': 'torch-2.10', '2.12.0+cu130': 'torch-2.12', '2.13.0': 'torch-latest',
                  '2.15.0a0+git12': 'torch-latest', '3.0': 'torch-latest'}
        self.assertEqual({version: settings.compat_of(version) for version in wanted}, wanted)

    def test_pairs_keep_lists_whole(self):
        self.assertEqual(settings.pairs('a:1, b : [256:1,>:2] ,,c:x:y'), [('a', '1'), ('b', '[256:1,>:2]'), ('c', 'x:y')])
        self.assertEqual(settings.pairs(None), [])

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
        self.assertEqual(self.merged('nonsense'), 'compat:torch-latest,nonsense:')


    def test_a_snapshot_has_pytorchs_keys_alone(self):
        recorded = {'PYTORCH_CUDA_ALLOC_CONF': 'compat:torch-latest,max_split_size_mb:64,report_leaks:False', 'x': 1}
        self.assertEqual(settings.as_recorded(recorded),
                         {'PYTORCH_CUDA_ALLOC_CONF': 'max_split_size_mb:64', 'x': 1, 'max_cached_size': -1,
                          'max_round_threshold': -1})
        older = settings.as_recorded({'PYTORCH_CUDA_ALLOC_CONF': 'compat:torch-2.6'})
        self.assertEqual(older, {'PYTORCH_CUDA_ALLOC_CONF': ''})
        self.assertEqual(recorded['PYTORCH_CUDA_ALLOC_CONF'][:7], 'compat:')


class Statistics(unittest.TestCase):
    def test_names_become_dictionaries(self):
        flat = {'active.all.current': 1, 'active.all.peak': 2, 'num_ooms': 3}
        self.assertEqual(statistics.nested(flat), {'active': {'all': {'current': 1, 'peak': 2}}, 'num_ooms': 3})


if __name__ == '__main__':
    unittest.main()
