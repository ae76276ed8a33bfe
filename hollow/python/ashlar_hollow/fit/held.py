"""What each step of an optimizer needs in any case: its parameters, their gradients and its states are live when it ends.

    held = Held(torch)
    held.stepped(optimizer)     # right after a step
    held.most                   # {"parameters": bytes, "gradients": bytes, "states": bytes}, of the optimizer that needs most

A change that makes less of none of them saves none of these bytes. Of several devices it is the one that has most.
"""

import collections

MOST_STEPS = 3  # states are there after the first one


class Held(object):
    def __init__(self, torch):
        self.torch = torch
        self.most = {}
        self.looks = collections.Counter()  # at each optimizer, by id

    def stepped(self, optimizer):
        if self.looks[id(optimizer)] == MOST_STEPS:
            return
        self.looks[id(optimizer)] += 1
        by_device = collections.defaultdict(lambda: dict.fromkeys(("parameters", "gradients", "states"), 0))
        known = set()
        for what, tensor in self.tensors(optimizer):
            if isinstance(tensor, self.torch.Tensor) and tensor.is_cuda:
                storage = local(tensor).untyped_storage()
                if storage.data_ptr() not in known:
                    known.add(storage.data_ptr())
                    by_device[tensor.device.index][what] += storage.nbytes()
        self.most = max([self.most] + list(by_device.values()), key=lambda of: sum(of.values()))

    @staticmethod
    def tensors(optimizer):
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                yield "parameters", parameter
                yield "gradients", parameter.grad
        for states in optimizer.state.values():
            for state in states.values() if isinstance(states, dict) else ():
                yield "states", state


def local(tensor):
    """Of a DTensor, which has no memory of its own, the part that lies on this device."""
    return getattr(tensor, "_local_tensor", tensor)
