"""What judges real programs, on bad samples: it must fail where something is wrong, and say what. Needs no PyTorch.

    python3 runner_test.py
"""
import os
import tempfile
import unittest

import captures
import histories
import plan
import plugin
import table
from kept import Kept
from rows import Result, Row, Skip, Verdict, judge


def event(action, address, size, stream=7):
    return {'action': action, 'addr': address, 'size': size, 'stream': stream}


def snapshot(base, *more):
    trace = [event('segment_alloc', base, 2 << 20), event('alloc', base + 512, 512)] + list(more)
    return {'device_traces': [trace]}


class HistoriesTest(unittest.TestCase):
    def test_addresses_are_relative(self):
        left, right = (histories.events(snapshot(base)) for base in (0x1000, 0x7F000))
        self.assertIsNone(histories.first_difference(left, right))

    def test_a_difference_is_told_with_its_place(self):
        left = histories.events(snapshot(0, event('alloc', 1024, 512)))
        other = histories.events(snapshot(0, event('alloc', 2048, 512)))
        self.assertIn('event 2', histories.first_difference(left, other))
        self.assertIn('2 and 3 events', histories.first_difference(histories.events(snapshot(0)), left))

    def test_only_frees_in_one_go_may_change_places(self):
        one, two, block = ('free_requested', 0, 512, 0), ('free_requested', 512, 512, 0), ('alloc', 0, 512, 0)
        apart = histories.order_of_frees_apart
        self.assertEqual(apart([one, two, block]), apart([two, one, block]))
        self.assertNotEqual(apart([one, block, two]), apart([two, block, one]))

    def test_the_peak_of_segments(self):
        freed = snapshot(0, event('segment_free', 0, 2 << 20), event('segment_map', 0, 1 << 20))
        self.assertEqual(histories.peak_reserved(freed), 2 << 20)


class CallsTest(unittest.TestCase):
    GOOD = [['allocate 0 512 0x0 0', 'free 0 512 0x0 0'], ['allocate 1 512 0x0 0']]

    def failures(self, native, ours):
        verdict = Verdict()
        plugin.expect_same_calls(native, ours, verdict)
        return verdict.failures

    def test_the_same_calls(self):
        self.assertEqual(self.failures(self.GOOD, self.GOOD), [])

    def test_any_difference_is_told(self):
        changed = [['allocate 0 1024 0x0 0', 'free 0 512 0x0 0'], self.GOOD[1]]
        self.assertIn('event 0', self.failures(self.GOOD, changed)[0])
        turned = [self.GOOD[0][::-1], self.GOOD[1]]
        self.assertIn('event 0', self.failures(self.GOOD, turned)[0])
        self.assertIn('1 and 2 events', self.failures([self.GOOD[0][:1]], [self.GOOD[0]])[0])
        self.assertIn('processes with calls', self.failures(self.GOOD, self.GOOD[:1])[0])
        self.assertEqual(self.failures([], []), ['no calls were seen'])

    def test_what_programs_tell(self):
        class Told:
            def __init__(self, *lines):
                self.told = lines

        verdict = Verdict()
        one, other = {'peak_reserved': 1}, {'peak_reserved': 2}
        plugin.expect_same_words(Told(one, other), Told(other, one), verdict, ['peak_reserved'])
        self.assertEqual(verdict.failures, [])
        plugin.expect_same_words(Told(one), Told(other), verdict, ['peak_reserved'])
        self.assertIn('[(1,)] and [(2,)]', verdict.failures[0])


def row(run, name='a', group='g', seconds=1.0):
    return Row(group, name, seconds, run)


class JudgeTest(unittest.TestCase):
    def state_of(self, run):
        return judge(row(run), None)

    def test_states(self):
        def skips(_):
            raise Skip('not here')

        def wrong(_):
            verdict = Verdict()
            verdict.equal('steps', 2, 3)
            return verdict

        self.assertEqual(self.state_of(lambda _: Verdict()).state, 'passed')
        self.assertEqual(self.state_of(skips).lines, ['not here'])
        self.assertEqual(self.state_of(wrong).lines, ['steps: 2 and not 3'])
        self.assertIn('ZeroDivisionError', self.state_of(lambda _: 1 / 0).lines[0])

    def test_the_table_shows_a_failure(self):
        failed = Result(row(None), 'failed', {'peak': '1 | 2'}, ['too much'])
        self.assertIn('| a | 1 \\| 2 | **failed**: too much |', table.rows_of([failed]))


class SampleTest(unittest.TestCase):
    def test_it_repeats_and_keeps_to_its_time(self):
        rows = [row(None, str(i), 'ab'[i % 2], 10) for i in range(40)]
        first = plan.sample(rows, 5, 95)
        self.assertEqual(first, plan.sample(rows, 5, 95))
        self.assertNotEqual(first, plan.sample(rows, 6, 95))
        self.assertEqual(len(first), 9)
        self.assertEqual({one.group for one in first}, {'a', 'b'})

    def test_rows_with_environments_of_their_own_are_in_none(self):
        rows = plan.rows(['2.14.1', '2.6.0'], True)
        chosen = plan.sample(rows, 1, 1e9)
        self.assertEqual(len(chosen), sum(one.is_usual for one in rows))
        self.assertLess(len(chosen), len(rows))
        self.assertEqual(len({(one.group, one.name) for one in rows}), len(rows))


class KeptTest(unittest.TestCase):
    def test_the_latest_word_of_this_build_counts(self):
        with tempfile.TemporaryDirectory() as folder:
            hollow = os.path.join(folder, 'hollow')
            os.makedirs(hollow)
            os.makedirs(os.path.join(folder, 'bin'))
            ashlar, path = os.path.join(folder, 'bin', 'ashlar'), os.path.join(folder, 'kept')
            for file in (ashlar, os.path.join(hollow, 'libashlar_hollow.so')):
                with open(file, 'w', encoding='utf-8') as out:
                    out.write('one')
            one = row(None)
            Kept(path, ashlar).add(Result(one, 'passed', {'x': '1'}, []))
            self.assertEqual(Kept(path, ashlar).result_of(one).cells, {'x': '1'})
            Kept(path, ashlar).add(Result(one, 'failed', {}, ['late']))
            self.assertIsNone(Kept(path, ashlar).result_of(one))
            Kept(path, ashlar).add(Result(one, 'passed', {}, []))
            with open(ashlar, 'w', encoding='utf-8') as out:
                out.write('another')
            self.assertIsNone(Kept(path, ashlar).result_of(one))


class CapturesTest(unittest.TestCase):
    def test_texts_of_errors(self):
        nvml = 'Including non-PyTorch memory, this process has 14.65 GiB memory in use. '
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in ('recorded', 'ours')]
            for recorded, ours, is_same in (('a free. b', f'a free. {nvml}b', True), ('a free. b', 'a free. c', False),
                                            (f'{nvml}b', 'b', False)):
                for path, text in zip(paths, (recorded, ours)):
                    with open(path, 'w', encoding='utf-8') as out:
                        out.write(text)
                verdict = Verdict()
                captures.compare_texts(*paths, verdict)
                self.assertEqual(not verdict.failures, is_same, (recorded, ours))


if __name__ == '__main__':
    unittest.main()
