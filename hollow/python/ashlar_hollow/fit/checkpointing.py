"""Blocks that keep their input alone, and run again in backward: the framework's switch, else repeated blocks of one class."""

import functools
import inspect

from . import edits, lines
from .change import Change

MARK = "_ashlar_checkpointed"


class Blocks(Change):
    name, title = "checkpointing", "repeated blocks checkpointed"
    group = "checkpointing"
    price = 50
    costs = "more time: the blocks' forward runs twice"
    without = "no module was trained"
    every = 1
    takes_switch = True
    list_name = None

    def on_trainer(self, arguments, where):
        if arguments.gradient_checkpointing:
            return self.lacks("already on: %s" % where)
        if not self.takes_switch:
            return self.lacks("the framework's switch takes all blocks")
        self.applies(where, 'gradient_checkpointing=True, gradient_checkpointing_kwargs={"use_reentrant": False}')
        switch = dict(gradient_checkpointing="True", gradient_checkpointing_kwargs='{"use_reentrant": False}')
        self.writes_into(where, edits.keywords(type(arguments).__name__, **switch))
        if self.is_on:
            arguments.gradient_checkpointing = True
            arguments.gradient_checkpointing_kwargs = {"use_reentrant": False}
        return None

    def on_model(self, module, where):
        if self.program.has_trainer:
            return None
        self.mark_norms(module)  # a forward pass that runs twice counts its batch twice
        owner, switch = next(((one, switch_of(one)) for one in module.modules() if switch_of(one)), (None, None))
        if owner is not None:
            return self.by_switch(owner, switch, owner is module, where)
        if _is_on(module):
            return self.lacks("already on")
        found = repeated(module)
        if not found:
            return self.lacks("no repeated blocks")
        if any(_is_checkpointed(block) for _, blocks in found for block in blocks):
            return self.lacks("already on")
        every = "" if self.every == 1 else ", every 2nd of them"
        name, blocks = max(found, key=lambda one: len(one[1]))
        self.applies(
            where,
            "in %s, around the %d blocks of %s%s:" % (type(module).__name__, len(blocks), name or "it", every),
            "x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)",
        )
        if self.is_on:
            self.find_list(module, found)
            for _, blocks in found:
                for block in blocks[:: self.every]:
                    self.wrap(block)
        return None

    def by_switch(self, owner, switch, is_called, where):
        if _is_on(owner):
            return self.lacks("already on")
        if not self.takes_switch:
            return self.lacks("the model's switch takes all blocks")
        name, given = switch
        call = "%%s.%s(%s)" % (name, '{"use_reentrant": False}' if given else "")
        self.applies(where, "before the loop: " + call % "model")
        if is_called:
            self.writes_into(where, edits.before_loop(call))
        if self.is_on:
            getattr(owner, name)(*given)
        return None

    def wrap(self, block):
        setattr(block, MARK, True)
        kind = type(block)
        if not getattr(kind.forward, MARK, False):
            kind.forward = checkpointed(self.program.torch, kind.forward, self.called)

    def called(self):
        """A block, by the program's own line."""
        edit = self.edit_of_call()
        if edit is not None:
            self.writes(lines.where(), edit)

    def edit_of_call(self):
        return edits.through_checkpoint

    def find_list(self, module, found):
        """The name of the one list of blocks, where it has no other modules: a loop over it counts the places of blocks."""
        name, blocks = found[0]
        if len(found) == 1 and len(list(module.get_submodule(name).children())) == len(blocks):
            self.list_name = name.rpartition(".")[2]


class EverySecond(Blocks):
    name, title, price = "checkpointing-half", "every 2nd repeated block checkpointed", 30
    costs = "more time: the forward of every 2nd block runs twice"
    every = 2
    takes_switch = False

    def edit_of_call(self):
        return self.list_name and edits.some_through_checkpoint("% 2 == 0", self.list_name)


class Heaviest(Blocks):
    """Those that keep most, where they are not alike: half of all that blocks keep. It is seen in the first forward pass, and asked
    for by their places among the repeated blocks."""

    name, title, price = "checkpointing-heaviest", "the heaviest repeated blocks checkpointed", 40
    costs = "more time: the forward of these blocks runs twice"
    takes_switch = False
    every = 0  # its own choice
    alike = 1.25  # the heaviest of alike blocks keeps so many times what the lightest does

    def __init__(self, program, places=()):
        Change.__init__(self, program, bool(places))
        self.places = places
        if places:
            self.name = "%s=%s" % (self.name, "+".join(map(str, places)))
        self.weights, self.hooks, self.found_in = {}, [], None

    @staticmethod
    def asked(text):
        parts = text.split("+")
        return [int(part) for part in parts] if all(part.isdigit() for part in parts) else None

    def on_model(self, module, where):
        if self.program.has_trainer or any(switch_of(one) for one in module.modules()):
            return self.lacks("the framework's switch takes all blocks")
        if _is_on(module):
            return self.lacks("already on")
        blocks = [block for _, blocks in repeated(module) for block in blocks]
        if not blocks:
            return self.lacks("no repeated blocks")
        if any(_is_checkpointed(block) for block in blocks):
            return self.lacks("already on")
        self.mark_norms(module)
        self.found_in = (module, blocks, where)
        if self.is_on:
            self.find_list(module, repeated(module))
            self.tell_places()
            for place in self.places:
                self.wrap(blocks[place])
        elif self.program.torch.cuda.is_initialized():
            for place, block in enumerate(blocks):
                self.hooks += [block.register_forward_pre_hook(self.weighed(place, -1)), block.register_forward_hook(self.weighed(place, 1))]
        return None

    def edit_of_call(self):
        return self.list_name and edits.some_through_checkpoint("in {%s}" % ", ".join(map(str, self.places)), self.list_name)

    def weighed(self, place, sign):
        def weigh(*_):
            self.weights[place] = self.weights.get(place, 0) + sign * self.program.torch.cuda.memory_allocated()

        return weigh

    def on_output(self, module, output, trains, where):
        if self.hooks and module is self.found_in[0]:
            for hook in self.hooks:
                hook.remove()
            self.hooks = []
            self.choose()
        return output

    def choose(self):
        heaviest = sorted(self.weights, key=lambda place: -self.weights[place])
        if not heaviest or self.weights[heaviest[0]] <= self.alike * max(self.weights[heaviest[-1]], 1):
            return self.lacks("the repeated blocks are alike")
        half, kept = sum(self.weights.values()) / 2, 0
        while kept < half:
            place = heaviest.pop(0)
            kept += self.weights[place]
            self.places += (place,)
        self.places = sorted(self.places)
        self.name = "%s=%s" % (self.name, "+".join(map(str, self.places)))
        return self.tell_places()

    def tell_places(self):
        module, blocks, where = self.found_in
        names = {id(one): name for name, one in module.named_modules()}
        self.applies(
            where,
            "in %s, around %s:" % (type(module).__name__, ", ".join(names[id(blocks[place])] for place in self.places)),
            "x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)",
        )


def checkpointed(torch, forward, called):
    """In the place of a class's forward, for those of its modules that are marked: a copy of one is marked too. `called` is told."""
    from torch.utils.checkpoint import checkpoint

    @functools.wraps(forward)
    def call(block, *args, **kwargs):
        if not vars(block).get(MARK) or not block.training or not torch.is_grad_enabled():
            return forward(block, *args, **kwargs)
        called()
        return checkpoint(forward, block, *args, use_reentrant=False, **kwargs)

    setattr(call, MARK, True)
    return call


def switch_of(module):
    """(the method, what it is given), of a model of transformers or of diffusers that takes it; else None."""
    if getattr(module, "supports_gradient_checkpointing", False) and hasattr(module, "gradient_checkpointing_enable"):
        return "gradient_checkpointing_enable", ({"use_reentrant": False},)
    if getattr(module, "_supports_gradient_checkpointing", False) and hasattr(module, "enable_gradient_checkpointing"):
        return "enable_gradient_checkpointing", ()
    return None


def _is_on(module):
    """By a switch of one of its modules, as those of transformers, diffusers and timm have it."""
    return any(getattr(one, name, False) is True for one in module.modules() for name in ("gradient_checkpointing", "grad_checkpointing"))


def _is_checkpointed(block):
    code = getattr(inspect.unwrap(type(block).forward), "__code__", None)
    return code is not None and "checkpoint" in code.co_names


def repeated(module):
    """(name, blocks) of each list of blocks of one class, the outermost alone. A block has modules of its own."""
    found, inner = [], set()
    for name, one in module.named_modules():
        if id(one) in inner or type(one).__name__ not in ("ModuleList", "Sequential"):
            continue
        blocks = [child for child in one.children() if any(True for _ in child.children())]
        blocks = [child for child in blocks if type(child) is type(blocks[0])]
        if len(blocks) > 1:
            found.append((name, blocks))
            inner.update(id(part) for block in blocks for part in block.modules())
    return found
