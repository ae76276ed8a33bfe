"""Embeddings on the host: only the vectors of a batch go to the GPU, and their gradients come back."""

from . import edits
from .change import Change

LEAST_BYTES = 1 << 20

# What runs, and what the user writes.
SOURCE = """def stay_on_host(embedding):
    forward = embedding.forward
    embedding._apply = lambda move, recurse=True: embedding
    embedding.forward = lambda ids: forward(ids.cpu()).to(ids.device)
"""


class OnHost(Change):
    name, title = "embeddings-to-host", "embeddings stay on the host"
    price = 48
    costs = "more time: tokens come to the host, their vectors go to the GPU, gradients come back"
    lessens = ("parameters", "gradients", "states")
    without = "no model moves to the GPU"
    stay = None

    def __init__(self, program, is_on):
        Change.__init__(self, program, is_on)
        self.weights = {}  # bytes of those that stay, by id

    def on_moved(self, module, where):
        torch = self.program.torch
        owners = {}
        for one in module.modules():
            for parameter in one._parameters.values():
                owners.setdefault(id(parameter), []).append(one)
        found = [
            (name, one) for name, one in module.named_modules()
            if isinstance(one, torch.nn.Embedding) and not one.weight.is_cuda and _bytes(one.weight) >= LEAST_BYTES
        ]
        alone = [(name, one) for name, one in found if len(owners[id(one.weight)]) == 1]
        if not alone:
            return self.lacks("its weight is another module's too" if found else "no embedding of a MiB and more")
        self.applies(
            where,
            "before the model moves: for one in (%s): stay_on_host(one), with" % ", ".join("model." + name if name else "model" for name, _ in alone),
            *SOURCE.splitlines()
        )
        self.writes_into(where, edits.beside(("cuda", "to"), "\n".join("stay_on_host(%s)" % _path(name) for name, _ in alone), "", "stay_on_host", SOURCE))
        if self.is_on:
            if self.stay is None:
                names = {}
                exec(SOURCE, names)
                self.stay = names["stay_on_host"]
            for _, one in alone:
                self.stay(one)
                self.weights[id(one.weight)] = _bytes(one.weight)
            self.host_bytes = sum(self.weights.values())
        return None

    def on_step(self, optimizer, where):
        """Their gradients and states are on the host as well."""
        size = 0
        for group in optimizer.param_groups:
            for one in group["params"] if self.weights else ():
                if id(one) in self.weights:
                    states = optimizer.state.get(one, {}).values()
                    size += sum(_bytes(part) for part in [one.grad] + list(states) if self.program.torch.is_tensor(part))
        self.host_bytes = max(self.host_bytes, sum(self.weights.values()) + size)


def _path(name):
    """Of a module of the model, which is `%s`."""
    if any(part.isdigit() for part in name.split(".")):
        return '%%s.get_submodule("%s")' % name
    return "%s." + name if name else "%s"


def _bytes(one):
    return one.numel() * one.element_size()
