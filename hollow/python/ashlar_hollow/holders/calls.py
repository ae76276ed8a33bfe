"""The calls under way in the thread that looks, and which blocks they have allocated so far.

    calls = under_way(is_ours)
    calls.of(frames)                 # "operation", "line", "backward pass"; None: none of them allocated it
    newest_allocations(snapshot, calls)

A loop comes to its line again and again. Where it allocates elsewhere as well, that tells its rounds apart; where it does
not, the same requests come again. The loop is read from the function's code: nothing of the program is run.
"""

import dis
import sys

from . import roots

JUMPS = frozenset(dis.hasjrel + dis.hasjabs)
# A comprehension is a loop whose results are those of its line.
OF_COMPREHENSIONS = ("LIST_APPEND", "SET_ADD", "MAP_ADD")
MOST_CODE = 1 << 18  # bytes of a function that are read


class Calls(object):
    """`stack`: (file, line), innermost first. `loop`: the lines of the loop that the program's innermost line lies in."""

    def __init__(self, stack, loop=frozenset()):
        self.stack, self.loop = stack, loop
        inner = next((place for place, (file, _) in enumerate(stack) if not roots.is_library(file)), len(stack))
        self.line = stack[inner:]  # the program's own

    def of(self, frames):
        """Which part of the calls under way allocated the block.

        A backward pass runs in a thread of its own, which has no calls of Python: nor have its blocks. What an
        expression has computed so far is on Python's own stack, where no object holds it: its line still runs.
        """
        calls = _calls(frames)
        if calls == self.stack:
            return "operation" if self.stack else "backward pass"
        return "line" if self.line and calls[-len(self.line):] == self.line else None

    def is_in_loop(self, frames):
        """Whether the block comes from another line of that loop; where it has no calls, it may."""
        calls, outer = _calls(frames), self.line[1:]
        if not calls:
            return True
        within = calls[:len(calls) - len(outer)]
        if calls[len(within):] != outer or not within:
            return False
        file, line = within[-1]
        return file == self.line[0][0] and line in self.loop


def under_way(is_ours):
    """Of this thread, without ours."""
    stack, loop, frame, is_found = [], frozenset(), sys._getframe(1), False
    while frame is not None:
        file = frame.f_code.co_filename
        if not is_ours(file):
            stack.append((file, frame.f_lineno))
            if not is_found and not roots.is_library(file):
                loop, is_found = lines_of_loop(frame.f_code, frame.f_lasti), True
        frame = frame.f_back
    return Calls(stack, loop)


def lines_of_loop(code, at):
    """The lines of the innermost loop that the instruction lies in; none: in no loop, or in a comprehension alone."""
    if len(code.co_code) > MOST_CODE or code.co_name.startswith("<") and code.co_name != "<module>":
        return frozenset()
    loops, appends = _loops(code)
    for start in sorted((one for one, parts in loops.items() if _lies_in(at, parts)), reverse=True):
        inner = [parts for one, parts in loops.items() if one > start and _lies_in(one, loops[start])]
        own = [place for place in appends
               if _lies_in(place, loops[start]) and not any(_lies_in(place, parts) for parts in inner)]
        if not own:
            return _lines(code, loops[start])
    return frozenset()


def _loops(code):
    """Where each loop starts -> its parts, as first and last instruction; and where comprehensions add to what they make.

    What handles an error lies behind all loops from Python 3.11 on, and is a part of the loop that it jumps back to.
    """
    parts, exits, appends, handler = {}, {}, [], 0
    for one in dis.get_instructions(code):
        if one.opname == "FOR_ITER":
            exits[one.offset] = one.argval
        elif one.opname == "PUSH_EXC_INFO":
            handler = one.offset
        elif one.opname in OF_COMPREHENSIONS:
            appends.append(one.offset)
        if one.opcode in JUMPS and one.argval <= one.offset:
            is_behind = one.argval < handler and exits.get(one.argval, handler) <= handler
            parts.setdefault(one.argval, []).append((handler if is_behind else one.argval, one.offset))
    return parts, appends


def _lies_in(at, parts):
    return any(first <= at <= last for first, last in parts)


def _lines(code, parts):
    found, before = set(), code.co_firstlineno
    first = parts[0][0]
    for place, line in dis.findlinestarts(code):
        if place > first and not found:
            found.add(before)
        if _lies_in(place, parts):
            found.add(line)
        before = line
    return frozenset(found)


def newest_allocations(snapshot, calls):
    """Addresses that the calls under way allocated last, one after the other; None: the snapshot has no history."""
    traces = [trace for trace in snapshot.get("device_traces", ()) if trace]
    if not traces:
        return None
    return {event.get("addr") for trace in traces for event in _of_this_round(*_run_at_work(trace, calls), calls)}


def _run_at_work(trace, calls):
    """The newest requests, oldest first, all of them at the line at work; and the one before them, which is not."""
    run = []
    for event in reversed(trace):
        if event.get("action") not in ("alloc", "oom"):
            continue
        if calls.of(event.get("frames") or ()) is None:
            return run[::-1], event
        if event["action"] == "alloc" or not run:
            run.append(event)
    return run[::-1], None


def _of_this_round(run, before, calls):
    """Without those of the loop's earlier rounds, whose requests are the same."""
    made = [event for event in run if event.get("action") == "alloc"]
    is_alone = calls.loop and (before is None or not calls.is_in_loop(before.get("frames") or ()))
    if not is_alone or len(run) < 2:
        return made
    period = _period([(_calls(event.get("frames") or ()), event.get("size")) for event in run])
    if period == len(run) or (period > 1 and _is_one_call(run, calls)):
        return made
    first = len(made) - len(made) % period
    return made[first:]


def _is_one_call(run, calls):
    """All of it within one call of a library, which may have rounds of its own."""
    all_calls = [_calls(event.get("frames") or ()) for event in run]
    return all_calls[0] != calls.line and all(one == all_calls[0] for one in all_calls)


def _period(of):
    """After how many it comes again, to its end; as long as it is: it does not."""
    known = [0]  # of each beginning: how much of its own beginning it ends with
    for place in range(1, len(of)):
        same = known[-1]
        while same and of[place] != of[same]:
            same = known[same - 1]
        known.append(same + (of[place] == of[same]))
    return len(of) - known[-1]


def _calls(frames):
    return [(frame["filename"], frame["line"]) for frame in frames]
