"""A trainer with callbacks, lightning-like."""
import torch
import torch.nn.functional as F
from loop import main, tokens
from zoo import Decoder


class Callback:
    def on_step_start(self, t): pass
    def on_step_end(self, t): pass


class MemoryGuard(Callback):
    def on_step_end(self, t):
        if torch.cuda.memory_reserved() > 0:
            torch.cuda.empty_cache()


class Printer(Callback):
    def on_step_end(self, t):
        if t.step % 10 == 0:
            print(t.step, t.loss)


class Fit:
    def __init__(self, module, callbacks):
        self.module, self.callbacks, self.step, self.loss = module.cuda(), callbacks, 0, 0.0
        self.opt = torch.optim.AdamW(module.parameters(), 1e-4)

    def call(self, name):
        for c in self.callbacks:
            getattr(c, name)(self)

    def __call__(self, steps):
        for self.step in range(steps):
            self.call("on_step_start")
            ids = tokens(8, 256)
            loss = F.cross_entropy(self.module(ids).flatten(0, 1), ids.flatten())
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.loss = loss.item()
            del loss, ids
            self.call("on_step_end")


def experiment(steps=25):
    Fit(Decoder(), [Printer(), MemoryGuard()])(steps)


if __name__ == "__main__":
    main(globals())
