"""What judges the advice about seeded programs, on answers made up: each way of being wrong is seen to fail.

    python3 advice_test.py
"""
import dataclasses
import glob
import json
import os
import re
import tempfile
import types
import unittest

import advice
import advice_judge as judge
import answers
import plan
import run
import table
from kept import Kept
from rows import Result, Row, Verdict
from seeds import SEEDS, Seed

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MIB, GIB = 1 << 20, 1 << 30
ALL = advice.ALL
LEAK = Seed('leaks.a', '8GiB', ('graph_kept_alive',), fails=True)


def report(causes=(), keeps=(), paste=None, what_if=(), verdict='healthy', remedies=(), **device):
    counts = {'index': 0, 'peak_allocated_bytes': GIB, 'peak_reserved_bytes': 2 * GIB, 'ooms': 0, 'retries': 0}
    counts.update(device)
    found = [{'name': name, 'finding': 'found', 'confidence': 'proven', 'bytes': size,
              'held_by': [{'name': variable} for variable in keeps]} for name, size in causes]
    absent = {'name': 'rounding', 'finding': 'absent', 'confidence': None, 'bytes': None}
    rows = [{'conf': conf, 'peak_reserved_bytes': peak} for conf, peak in what_if]
    explanation = {'verdict': verdict, 'causes': found + [absent], 'paste': paste, 'what_if': rows,
                   'program_remedies': [{'cause': cause} for cause in remedies]}
    return {'exit_code': 1 if counts['ooms'] else 0, 'explained_pid': 7, 'explanation': explanation,
            'processes': [{'pid': 7, 'torch': {'devices': [counts]}}, {'pid': 8, 'torch': None}]}


def answer(*args, **more):
    return answers.read(report(*args, **more))


def scores(ask, *args):
    """(scores, what was said to be wrong)"""
    verdict = Verdict()
    ask(*args, verdict)
    return verdict.scores, verdict.failures


PASTED = 'export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True'
ROWS = [('', 2 * GIB), ('expandable_segments:True', GIB)]


class ReadTest(unittest.TestCase):
    def test_only_what_was_found_in_its_order(self):
        got = answer([('capacity', 5), ('growing_sizes', 3)])
        self.assertEqual(got.first, 'capacity')
        self.assertEqual((got.rank_of(('growing_sizes',)), got.rank_of(('rounding',))), (2, None))
        self.assertEqual((got.bytes_of(('growing_sizes',)), got.bytes_of(('rounding',))), (3, None))

    def test_a_promise_has_the_figure_of_its_row(self):
        self.assertEqual(answer(paste=PASTED, what_if=ROWS).promise,
                         answers.Promise('expandable_segments:True', False, GIB))
        self.assertTrue(answer(paste=PASTED, what_if=ROWS, ooms=1).promise.cures_failure)
        self.assertIsNone(answer(paste=PASTED).promise.peak_bytes)
        self.assertIsNone(answer().promise)

    def test_settings_are_compared_key_by_key(self):
        got = answer(paste='export PYTORCH_ALLOC_CONF="b:2,a:1"', what_if=[('a:1,b:2', 9)])
        self.assertEqual(got.promise, answers.Promise('b:2,a:1', False, 9))

    def test_the_process_that_is_explained_and_its_device_that_failed(self):
        made = report(ooms=1, peak_reserved_bytes=GIB)
        other = {'index': 1, 'peak_allocated_bytes': GIB, 'peak_reserved_bytes': 9 * GIB, 'ooms': 0, 'retries': 5}
        made['processes'][0]['torch']['devices'].append(other)
        made['processes'][1]['torch'] = {'devices': [other]}
        self.assertEqual((answers.read(made).failures, answers.read(made).retries), (1, 0))


class SickTest(unittest.TestCase):
    def of(self, causes, noted=100 * MIB, seed=LEAK, **more):
        return scores(judge.judge_sick, seed, answer(causes, ooms=1, **more), noted)

    def test_right(self):
        got, wrong = self.of([('graph_kept_alive', 109 * MIB), ('capacity', 0)])
        self.assertEqual((set(got.values()), wrong), ({True}, []))

    def test_named_second_or_not_at_all(self):
        got, wrong = self.of([('capacity', 7), ('graph_kept_alive', 100 * MIB)])
        self.assertEqual((got[judge.FIRST], got[judge.BYTES]), (False, True))
        self.assertIn('is cause 2, first: capacity', wrong[0])
        got, wrong = self.of([])
        self.assertEqual((got[judge.FIRST], got[judge.BYTES]), (False, False))
        self.assertIn('not named, first: None', wrong[0])

    def test_the_variable_by_any_path_to_it_or_from_it(self):
        seed = dataclasses.replace(LEAK, variable="board.meters['consist'].sum")
        for name, is_right in (('board.meters.consist.sum', True), ('board.meters', True), ('self.board', True),
                               ('board.meters.other.sum', False), ('losses[]', False)):
            got, wrong = self.of([('graph_kept_alive', 100 * MIB)], seed=seed, keeps=('not found', name))
            self.assertEqual((got[judge.VARIABLE], not wrong), (is_right, is_right), name)
        self.assertIn('named is nothing', self.of([('graph_kept_alive', 100 * MIB)], seed=seed)[1][0])
        self.assertNotIn(judge.VARIABLE, self.of([('capacity', 100 * MIB)], seed=seed)[0])
        self.assertEqual(judge.path_of("self.results[*].model['a'][0]"), ['results', 'model', 'a'])

    def test_bytes_off_by_more_than_a_tenth_either_way(self):
        for size, is_right in ((89, False), (90, True), (110, True), (111, False)):
            got, _ = self.of([('graph_kept_alive', size * MIB)])
            self.assertEqual(got[judge.BYTES], is_right, size)

    def test_verdicts(self):
        seed = Seed('outside.a', '8GiB', ('memory_fraction',), verdicts=('limit',), has_bytes=False, fails=True)
        for verdict, is_right in (('limit', True), ('fragmentation', False)):
            got, _ = self.of([('memory_fraction', 1)], seed=seed, verdict=verdict)
            self.assertEqual((got[judge.VERDICT], judge.BYTES in got), (is_right, False))

    def test_an_answer_that_contradicts_itself(self):
        got, _ = self.of([('graph_kept_alive', 100 * MIB)], verdict='capacity', paste=PASTED, what_if=ROWS)
        self.assertFalse(got[judge.AGREES])
        got, _ = self.of([('graph_kept_alive', 100 * MIB)], verdict='fragmentation', paste=PASTED, what_if=ROWS)
        self.assertTrue(got[judge.AGREES])

    def test_a_seed_that_is_not_sick_is_no_answer(self):
        for noted, ooms in ((100, 0), (None, 1)):
            with self.assertRaises(judge.NotAsPlanted):
                scores(judge.judge_sick, LEAK, answer([('graph_kept_alive', 100)], ooms=ooms), noted)


class PromiseTest(unittest.TestCase):
    def of(self, before, after):
        got, _ = scores(judge.judge_promise, answer(paste=PASTED, what_if=ROWS, **before), answer(**after))
        return got[judge.PROMISE]

    def test_a_cure(self):
        self.assertTrue(self.of({'ooms': 1}, {}))
        self.assertFalse(self.of({'ooms': 1}, {'ooms': 1}))

    def test_a_cure_after_which_the_program_still_dies(self):
        dead = answer()
        dead.exit_code = 1
        got, _ = scores(judge.judge_promise, answer(paste=PASTED, what_if=ROWS, ooms=1), dead)
        self.assertFalse(got[judge.PROMISE])

    def test_a_lower_peak(self):
        self.assertTrue(self.of({}, {'peak_reserved_bytes': GIB}))
        self.assertFalse(self.of({}, {'peak_reserved_bytes': GIB + 20 * MIB}))
        self.assertFalse(self.of({}, {'peak_reserved_bytes': MIB, 'ooms': 1}))

    def test_a_peak_that_is_hardly_lower_is_not_worth_a_change(self):
        for peak, retries, wanted in ((1.8 * GIB, 0, True), (1.9 * GIB, 0, False), (1.9 * GIB, 2, None)):
            before = answer(paste=PASTED, retries=retries)
            got, _ = scores(judge.judge_promise, before, answer(peak_reserved_bytes=int(peak)))
            self.assertEqual((got[judge.PROMISE], got.get(judge.GAIN)), (True, wanted))

    def test_cures_are_counted_by_themselves(self):
        for ooms, is_cured in ((0, True), (1, False)):
            got, _ = scores(judge.judge_promise, answer(paste=PASTED, ooms=1), answer(ooms=ooms))
            self.assertEqual((got[judge.CURE], judge.GAIN in got), (is_cured, False))

    def test_a_setting_without_a_figure_must_not_be_worse(self):
        vague = answer(paste=PASTED)
        for peak, is_kept in ((GIB, True), (3 * GIB, False)):
            got, _ = scores(judge.judge_promise, vague, answer(peak_reserved_bytes=peak))
            self.assertEqual(got[judge.PROMISE], is_kept)


class HealthyTest(unittest.TestCase):
    def of(self, swept=None, **more):
        return scores(judge.judge_healthy, answer(**more), swept)

    def test_left_alone(self):
        self.assertEqual(self.of(), ({judge.HEALTHY: True}, []))

    def test_every_way_of_telling_it_to_change(self):
        for told, word in (({'paste': PASTED}, 'explain pastes'), ({'swept': 'a:1'}, 'sweep pastes a:1'),
                           ({'remedies': ['gradients_kept']}, 'gradients_kept'), ({'verdict': 'leak'}, 'verdict leak')):
            got, wrong = self.of(**told)
            self.assertFalse(got[judge.HEALTHY], told)
            self.assertIn(word, wrong[0])

    def test_a_seed_that_is_not_healthy_is_no_answer(self):
        judge.expect_healthy(answer(), None)
        judge.expect_healthy(answer(), 1.9 * GIB)
        for sick, best in (({'ooms': 1}, None), ({'retries': 1}, None), ({}, 1.8 * GIB)):
            with self.assertRaises(judge.NotAsPlanted):
                judge.expect_healthy(answer(**sick), best)

    def test_the_best_of_a_sweep(self):
        def row(conf, peak, ooms=0, risk='none'):
            return {'conf': conf, 'ooms': ooms, 'risk': risk, 'traces': [{'peak_reserved_bytes': peak}]}

        rows = [row('a:1', 5), row('b:1', 3, ooms=1), row('c:1', 2, risk='not_recommended'), row('d:1', 4), row('', 1)]
        self.assertEqual(advice.best_swept({'rows': rows}), ('d:1', 4))
        self.assertEqual(advice.best_swept({'rows': rows[4:]}), (None, None))


class CatalogueTest(unittest.TestCase):
    def test_names_are_one_each_and_programs_are_there(self):
        self.assertEqual(len({seed.name for seed in ALL}), len(ALL))
        for seed in ALL:
            with open(os.path.join(advice.SEEDED, seed.file), encoding='utf-8') as file:
                source = file.read()
            for function in seed.program[1:]:
                self.assertIn(f'def {function}(', source, seed.name)
            self.assertEqual(len(seed.program) == 1, 'main(globals())' not in source, seed.name)

    def test_every_name_is_one_that_the_program_has(self):
        has = set()
        for path in glob.glob(os.path.join(ROOT, 'analyzer/analyses/causes/causes_*.cc')):
            with open(path, encoding='utf-8') as source:
                has |= set(re.findall(r'\.kind = CauseKind::k\w+,\s*\.name = "(\w+)"', source.read()))
        self.assertIn('graph_kept_alive', has)
        with open(os.path.join(ROOT, 'docs/schemas/explain.schema.json'), encoding='utf-8') as source:
            verdicts = set(json.load(source)['$defs']['explanation']['properties']['verdict']['enum'])
        self.assertEqual({cause for seed in ALL for cause in seed.causes} - has, set())
        self.assertEqual({verdict for seed in ALL for verdict in seed.verdicts} - verdicts, set())

    def test_enough_of_both_kinds(self):
        sick = [seed for seed in SEEDS if seed.causes]
        self.assertGreaterEqual((len(sick), len(SEEDS) - len(sick)), (40, 15))
        self.assertGreaterEqual(len(SEEDS) - len(sick), 15)
        self.assertFalse([seed.name for seed in SEEDS if not seed.causes and seed.fails])

    def test_a_digest_is_of_all_that_a_program_is_made_of(self):
        self.assertEqual(advice.imported_by('healthy.py'),
                         {'healthy.py', 'generation.py', 'loop.py', 'note.py', 'zoo.py'})
        one, other = SEEDS[0], dataclasses.replace(SEEDS[0], capacity='1GiB')
        self.assertNotEqual(advice.digest(one), advice.digest(other))


class MeasuredTest(unittest.TestCase):
    def flags(self, **given):
        usual = {'releases': '', 'all': False, 'only': '', 'named': '', 'seed': 1, 'seconds': 1e9}
        return types.SimpleNamespace(**{**usual, **given})

    def groups(self, **given):
        return {row.group for row in run.choose(self.flags(**given))}

    def test_it_runs_only_where_it_is_asked_for(self):
        self.assertNotIn('advice', self.groups())
        self.assertNotIn('advice', self.groups(all=True))
        self.assertEqual(self.groups(only='advice'), {'advice'})
        self.assertEqual(self.groups(named='leaks.retained'), {'advice', 'holders'})
        measured = [row for row in plan.rows(['2.14.1'], False) if row.group == 'advice']
        self.assertEqual(plan.sample(measured, 1, 1e9), [])

    def test_a_failed_measurement_is_kept_until_its_program_changes(self):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(os.path.join(folder, 'hollow'))
            os.makedirs(os.path.join(folder, 'bin'))
            ashlar, path = os.path.join(folder, 'bin', 'ashlar'), os.path.join(folder, 'kept')
            for file in (ashlar, os.path.join(folder, 'hollow', 'libashlar_hollow.so')):
                with open(file, 'w', encoding='utf-8') as out:
                    out.write('one')
            row = Row('advice', 'a', 1, None, is_measured=True, digest='x')
            Kept(path, ashlar).add(Result(row, 'failed', {}, ['wrong'], scores={judge.FIRST: False}))
            got = Kept(path, ashlar).result_of(row)
            self.assertEqual((got.state, got.lines, got.scores), ('failed', ['wrong'], {judge.FIRST: False}))
            row.digest = 'y'
            self.assertIsNone(Kept(path, ashlar).result_of(row))

    def test_the_summary_counts_right_of_asked(self):
        results = [Result(None, 'passed', {}, [], scores={judge.FIRST: True, judge.PROMISE: False}),
                   Result(None, 'passed', {}, [], scores={judge.FIRST: True}), Result(None, 'passed', {}, [])]
        lines = table.scores_of(results)
        self.assertIn(f'| {judge.FIRST} | 2 | 2 | 100% |', lines)
        self.assertIn(f'| {judge.PROMISE} | 0 | 1 | 0% |', lines)
        self.assertEqual(table.scores_of(results[2:]), [])


if __name__ == '__main__':
    unittest.main()
