"""Floating-point operations of a step: those of matrix products, convolutions and attention, forward and backward.

    counter = Counter(program)     # the run ends after its second step
    counter.count                  # of the last step that was counted; None: none was

A run that counts is for nothing else: the counter keeps tensors alive, so that its peak is none of the program's.
Thread rule: the thread that trains.
"""

MOST_STEPS = 2  # the first may be another one


class Counter(object):
    def __init__(self, program):
        self.program = program
        self.mode = self.count = None
        self.before = 0

    def begin(self):
        """Before the first call that trains."""
        if self.mode is None:
            from torch.utils.flop_counter import FlopCounterMode

            self.mode = FlopCounterMode(display=False)
            self.mode.__enter__()

    def stepped(self):
        total = self.mode.get_total_flops()
        self.count, self.before = total - self.before, total
        if self.program.steps == MOST_STEPS:
            raise SystemExit(0)
