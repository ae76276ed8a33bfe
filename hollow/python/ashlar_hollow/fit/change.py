"""What every change has: a row of the table. It looks on in the run as it is, and changes the run where it is on.

    class Half(Change):
        name, title = "half-batch", "half of the batch, accumulated twice"
        def on_loader(self, loader, where): ...

The program (program.py) calls the methods `on_...`. In them a change says `applies(...)`, with the place and the lines that the user
writes, or `lacks(...)` or `refuses(...)`, with why not. Of several places the first is shown. Where the source can be changed at the
place itself, it says `writes(...)` as well, of each place.
"""

from . import edits, lines

NORMS = "_BatchNorm"


class Change(object):
    name = ""
    title = ""
    group = ""  # of several in a group one alone goes into a set
    price = 0  # order of prices: 0 costs nothing that can be felt
    costs = "none"  # in words
    alters = ""  # what --allow must name: results are not those of the program as it is
    lessens = ()  # of what a step needs in any case (held.py): what it makes less of
    without = "not seen"  # why it does not apply where nothing was found

    def __init__(self, program, is_on):
        self.program, self.is_on = program, is_on
        self.why_not = self.why_missing = None
        self.where, self.lines = None, []
        self.is_found = False
        self.also_alters = ""
        self.written = {}  # place -> edit
        self.host_bytes = 0  # the most that it keeps on the host in the device's stead

    def applies(self, where, *lines):
        if not self.is_found:
            self.is_found, self.where, self.lines = True, where, [line for line in lines if line]

    def writes(self, where, edit):
        """What edits.py makes, of the call that is under way there."""
        self.written.setdefault(lines.key(where), edit)

    def writes_into(self, where, edit):
        """The same of a call that must be the one meant: where a library makes that one, the program's own is another."""
        self.writes(where, edit if getattr(where, "is_own", False) else edits.nowhere)

    def edits(self):
        """(edit, its places) of each, for patch.py."""
        return [(edits.at_call(edit), [where]) for (where, _), edit in self.written.items()]

    def lacks(self, why):
        """Nothing to change here; there may be elsewhere."""
        if self.why_missing is None:
            self.why_missing = why

    def refuses(self, why):
        """It must not be made, wherever there is something to change."""
        if self.why_not is None:
            self.why_not = why

    def mark_norms(self, module):
        """Statistics of batch norm are not those of the program as it is."""
        if any(NORMS in (kind.__name__ for kind in type(one).__mro__) and one.training for one in module.modules()):
            self.also_alters = "batch-norm"

    def told(self):
        """For the facts of a run."""
        is_found = self.is_found and self.why_not is None
        return {
            "name": self.name,
            "title": self.title,
            "group": self.group,
            "price": self.price,
            "costs": self.costs,
            "alters": self.alters or self.also_alters,
            "applies": is_found,
            "why_not": "" if is_found else self.why_not or self.why_missing or self.without,
            "where": self.where or "",
            "lines": self.lines if is_found else [],
            "lessens": list(self.lessens),
        }

    @staticmethod
    def asked(text):
        """Of "name=text" what stands behind it, a number; None where it is none. Of changes that need one (table.py)."""
        return int(text) if text.isdigit() and int(text) > 0 else None

    @staticmethod
    def prepare(environment):
        """Before torch is imported, where the change is on."""

    # --- what the program tells; a change takes what it needs ---

    def on_start(self, environment):
        """torch is imported."""

    def on_trainer(self, arguments, where):
        """TrainingArguments of transformers, whose fields are set and not yet read."""

    def on_lightning(self, given, where):
        """A Trainer of Lightning is about to be made; `given` is its arguments by name."""

    def on_accelerator(self, given, where):
        """An Accelerator of accelerate is about to be made; `given` is its arguments by name."""

    def on_autocast(self, where):
        """Amid the outermost module's call, with gradients on, autocast is entered."""

    def on_lightning_loader(self, loader):
        """The DataLoader that Lightning's Trainer trains with, before it is iterated."""

    def on_framework_loader(self, loader):
        """A DataLoader is iterated by a framework's loop."""

    def on_batches(self, loader, where):
        """A DataLoader is iterated for training, a framework's too. What is made of its batches of indices, or None."""

    def on_moved(self, module, where):
        """A module is about to move to the GPU."""

    def on_optimizer(self, optimizer, kind, given, where):
        """An optimizer of torch.optim is about to be made, of the class `kind`; `given` is its arguments by name."""

    def on_model(self, module, where):
        """The outermost module's first call that trains."""

    def on_call(self, module, trains, where):
        """Each call of an outermost module. A context manager that it runs in, or None."""

    def on_output(self, module, output, trains, where):
        """After such a call. What the program is given."""
        return output

    def on_generate(self, model, given, where):
        """generate() of a model of transformers is called; `given` is its arguments by name, which may be changed."""

    def on_generated(self, model, tokens):
        """After such a call."""

    def on_engine(self, given, where):
        """An LLM of vLLM is about to be made; `given` is its arguments by name, which may be changed."""

    def on_mode(self, module, trains):
        """train() or eval()."""

    def on_loader(self, loader, where):
        """A DataLoader is iterated for training."""

    def on_loss(self, original, where, *args, **kwargs):
        """Before cross_entropy. What is in its place, or None."""

    def on_mean(self, targets, ignored):
        """Before a loss that is a mean over its targets, but for those of the value `ignored`."""

    def on_backward(self, loss, where):
        """Before it. The tensor that goes backward."""
        return loss

    def on_before_step(self, optimizer):
        """A step is about to be made."""

    def on_step(self, optimizer, where):
        """After a step that was made."""

    def on_zero_grad(self, set_to_none, where):
        """Before it. What is set."""
        return set_to_none

    def on_waiting(self, where):
        """What is done once a batch is called, such as clipping, where batches come in parts."""

    def on_end(self):
        """The program is at its end, and its peaks are known."""
