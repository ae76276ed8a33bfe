"""Which blocks the calls under way have allocated: by their stacks, and by the loop that the line lies in."""

import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "hollow", "python"))

from ashlar_hollow.holders import calls, record  # noqa: E402

TRAIN, MODEL = "/home/me/train.py", "/home/me/model.py"
LINEAR, RNN = "/venv/site-packages/torch/linear.py", "/venv/site-packages/torch/rnn.py"


def frames(*places):
    return [{"filename": file, "line": line, "name": "f"} for file, line in places]


def requests(*made, fails=None):
    """Events of [(size, (file, line)...)], at the addresses 1, 2 and so on; then one that finds no memory."""
    events = [{"action": "alloc", "addr": number, "size": size, "frames": frames(*places)}
              for number, (size, *places) in enumerate(made, 1)]
    if fails is not None:
        events.append({"action": "oom", "size": fails[0], "frames": frames(*fails[1:])})
    return events


def newest(events, under_way):
    return sorted(calls.newest_allocations({"device_traces": [events]}, under_way))


class OfTheLineAtWork(unittest.TestCase):
    def test_what_the_line_at_work_allocated_is_its_temporary(self):
        stack = [("/venv/site-packages/torch/nn.py", 5), (MODEL, 41), (TRAIN, 9)]

        def kind_of(*places):
            return record.unnamed({}, {"size": 1, "frames": frames(*places)}, calls.Calls(stack))[:2]

        self.assertEqual(kind_of(*stack), ("temporary", "temporary of the operation at work"))
        other = ("/venv/site-packages/torch/functional.py", 7)
        self.assertEqual(kind_of(other, *stack[1:]), ("temporary", "temporary of the line at work"))
        self.assertEqual(kind_of(*stack[1:]), ("temporary", "temporary of the line at work"))
        for places in ((other, (MODEL, 40), stack[2]), (stack[2],), ()):
            self.assertEqual(kind_of(*places), ("not_found", "not found"))
        stack = []
        self.assertEqual(kind_of(), ("temporary", "temporary of the backward pass at work"))


class Rounds(unittest.TestCase):
    """Of a loop over lines 8 to 10, whose line 9 is at work."""

    loop = calls.Calls([(TRAIN, 9)], frozenset((8, 9, 10)))

    def test_another_line_of_the_loop_divides_its_rounds(self):
        events = requests((1, (TRAIN, 9)), (1, (TRAIN, 10)), (1, (TRAIN, 9)), (1, (TRAIN, 9)))
        events[2:2] = [{"action": "free_completed", "addr": 1, "frames": frames((TRAIN, 10))}]
        self.assertEqual(newest(events, self.loop), [3, 4])
        self.assertIsNone(calls.newest_allocations({"device_traces": [[]]}, self.loop))

    def test_where_no_other_line_allocates_the_same_requests_come_again(self):
        at = (TRAIN, 9)
        once = requests(*[(5, at)] * 4, fails=(5, at))
        self.assertEqual(newest(once, self.loop), [])
        three = requests(*[(5, at), (6, at), (7, at)] * 3, (5, at), (6, at), fails=(7, at))
        self.assertEqual(newest(three, self.loop), [10, 11])
        first = requests((1, (TRAIN, 3)), (5, at), (6, at), fails=(7, at))
        self.assertEqual(newest(first, self.loop), [2, 3])

    def test_without_a_loop_all_of_it_is_the_line_s(self):
        events = requests(*[(5, (TRAIN, 9))] * 4, fails=(5, (TRAIN, 9)))
        self.assertEqual(newest(events, calls.Calls([(TRAIN, 9)])), [1, 2, 3, 4])

    def test_a_backward_pass_before_it_may_be_the_loop_s(self):
        events = requests((1,), *[(5, (TRAIN, 9))] * 4, fails=(5, (TRAIN, 9)))
        self.assertEqual(newest(events, self.loop), [2, 3, 4, 5])

    def test_one_call_of_a_library_may_have_rounds_of_its_own(self):
        called = calls.Calls([(RNN, 3), (TRAIN, 9)], frozenset((8, 9)))
        steps = [(5, (RNN, 3), (TRAIN, 9)), (6, (RNN, 3), (TRAIN, 9))] * 3
        self.assertEqual(newest(requests(*steps, fails=steps[0]), called), [1, 2, 3, 4, 5, 6])
        layers = [(5, (LINEAR, 3), (TRAIN, 9)), (5, (RNN, 3), (TRAIN, 9))] * 3
        self.assertEqual(newest(requests(*layers, fails=layers[0]), called), [])

    def test_a_long_history_is_read_at_once(self):
        events = requests(*[(5, (TRAIN, 9))] * 100_000, (6, (TRAIN, 9)), fails=(5, (TRAIN, 9)))
        self.assertEqual(newest(events, self.loop), [])


def line_of(marker):
    with open(__file__, encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if line.rstrip().endswith("# " + marker))


class Loops(unittest.TestCase):
    def lines_at(self, function, *arguments):
        """Of the loop in which `function` calls what it is given."""
        found = []

        def call():
            frame = sys._getframe(1)
            while frame.f_code is not function.__code__:
                frame = frame.f_back
            found.append(calls.lines_of_loop(frame.f_code, frame.f_lasti))
            return 0

        function(call, *arguments)
        return found[0]

    def test_the_innermost_loop_of_a_line(self):
        def nested(call):
            for _ in range(2):
                for _ in range(2):  # inner
                    try:
                        call()
                    except ValueError:
                        continue

        found = self.lines_at(nested)
        self.assertLessEqual({line_of("inner") + 2}, found)
        self.assertNotIn(line_of("inner") - 1, found)

    def test_a_comprehension_is_its_line_s_own(self):
        def listed(call):
            return [call() for _ in range(2)]

        def within_a_loop(call):
            for _ in range(2):
                {call() for _ in range(2)}  # set

        self.assertEqual(self.lines_at(listed), frozenset())
        self.assertIn(line_of("set"), self.lines_at(within_a_loop))

    def test_no_loop(self):
        def plain(call):
            call()
            while False:
                pass

        def later(call):
            for _ in range(2):
                pass
            call()

        self.assertEqual(self.lines_at(plain), frozenset())
        self.assertEqual(self.lines_at(later), frozenset())

    def test_the_calls_under_way_are_those_of_this_thread(self):
        for _ in range(1):
            found = calls.under_way(lambda file: file == calls.__file__)  # here
        self.assertEqual(found.stack[0], (__file__, line_of("here")))
        self.assertEqual(found.loop, {line_of("here") - 1, line_of("here")})


if __name__ == "__main__":
    unittest.main()
