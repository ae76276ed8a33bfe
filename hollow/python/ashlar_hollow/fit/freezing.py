"""Modules that are not trained: their gradients and states are not made, nor what their backward pass would need."""

from . import checkpointing, edits
from .change import Change


class FirstHalf(Change):
    name, title = "freeze-half", "the first half of the repeated blocks frozen, and the embeddings before them"
    price = 95
    costs = "what is frozen does not learn"
    alters = "frozen"
    lessens = ("gradients", "states")
    without = "no module was trained"

    def on_model(self, module, where):
        found = checkpointing.repeated(module)
        if not found:
            return self.lacks("no repeated blocks")
        name, blocks = max(found, key=lambda one: len(one[1]))
        frozen = blocks[:len(blocks) // 2]
        if not any(one.requires_grad for block in frozen for one in block.parameters()):
            return self.lacks("they are frozen")
        embeddings = [one for one in module.modules() if isinstance(one, self.program.torch.nn.Embedding)]
        self.applies(
            where,
            "before the optimizer is made: for block in %s[:%d]: block.requires_grad_(False)" % (name or "it", len(frozen)),
            embeddings and "and for each nn.Embedding of the model: embedding.requires_grad_(False)",
        )
        text = self.text(module, name, frozen, embeddings)
        if text is not None:
            self.writes_into(where, edits.before_loop(text, "torch" if embeddings else None, "frozen"))
        if self.is_on:
            for one in embeddings + frozen:
                one.requires_grad_(False)
        return None

    @staticmethod
    def text(module, name, frozen, embeddings):
        """What is written before the loop, `%s` being the model; None where the frozen blocks are not neighbours in their list."""
        places = [place for place, one in enumerate(module.get_submodule(name).children()) if any(one is block for block in frozen)]
        if len(places) != len(frozen) or places[-1] - places[0] != len(places) - 1:
            return None
        has_places = any(part.isdigit() for part in name.split("."))
        owner = '.get_submodule("%s")' % name if has_places else "." + name if name else ""
        lines = ["for frozen in %%s%s[%s:%d]:" % (owner, places[0] or "", places[-1] + 1), "    frozen.requires_grad_(False)"]
        if embeddings:
            lines += ["for frozen in %s.modules():", "    if isinstance(frozen, torch.nn.Embedding):", "        frozen.requires_grad_(False)"]
        return "\n".join(lines)
