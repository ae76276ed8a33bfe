"""Checkpoints of torch.distributed.checkpoint, of which every rank has a part.

One rank cannot write one: its peers' parts are not there, and what would be written would be none. So nothing is saved. A
rank reads its own part by itself, without a coordinator: rank 0 would share out copies of its own plan.
"""

import concurrent.futures
import functools


def save_nothing(saver_module):
    def save(*_, **__):
        return None

    def async_save(*_, **__):
        done = concurrent.futures.Future()
        done.set_result(None)
        return done

    for name, call in (("save", save), ("save_state_dict", save), ("async_save", async_save)):
        original = getattr(saver_module, name, None)
        if original is not None:
            setattr(saver_module, name, functools.wraps(original)(call))


def read_alone(utils_module):
    wrapper = getattr(utils_module, "_DistWrapper", None)
    if wrapper is None:
        return
    original = wrapper.__init__

    @functools.wraps(original)
    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        self.use_dist, self.rank, self.is_coordinator = False, 0, True

    wrapper.__init__ = __init__
