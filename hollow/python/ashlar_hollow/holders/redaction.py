"""Names that say nothing, so that a snapshot can be given away: `v1` for a variable, `file2.py` for a file.

    redaction = Redaction()               # of a process: equal names stay equal in all that it writes
    redaction.root("local", "losses")     # "v1"
    redaction.stacks_of(snapshot)         # in place

Hidden are the names of variables, attributes, modules, keys, classes, functions and files of the program, and of packages
that are not well known. Kept are sizes, counts, kinds, line numbers, files and functions of Python and of well-known
packages below their own folder, and the names by which PyTorch calls a program: forward, backward, step and the like.
"""

import builtins
import os
import re
import sys
import sysconfig

from .roots import ENDED_BY, FINALIZER, HANDLED
from .walk import CYCLE, CYCLE_OF, UNSEEN_HOLDER

# What a reader of the file has as well.
PUBLIC = frozenset(
    "accelerate apex bitsandbytes datasets deepspeed diffusers flash_attn functorch huggingface_hub lightning "
    "lightning_fabric matplotlib megatron numpy pandas peft pytorch_lightning safetensors scipy sentence_transformers "
    "sklearn timm tokenizers torch torchaudio torchmetrics torchvision tqdm transformers triton trl vllm xformers".split()
)
# By these PyTorch calls a program, so they are in its own files.
CALLED = frozenset(("forward", "backward", "step", "closure", "setup_context"))
PYTHONS_TYPES = frozenset(
    "function method cell frame generator coroutine async_generator traceback module mappingproxy deque OrderedDict "
    "defaultdict partial Tensor Parameter".split()
)
FOLDERS = tuple(os.sep + name + os.sep for name in ("site-packages", "dist-packages"))

_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_OPTIMIZERS_MARK = re.compile(r"Optimizer\.(step|zero_grad)#(\w+)\.\1")
_NUMBERS_ALONE = re.compile(r"(N/A)?[\d/_. -]*")
_SPECIAL = re.compile(r"<.*>|__\w+__")
_WORDS_OF_OURS = ("", "[]", ENDED_BY, HANDLED, FINALIZER)  # names of roots
_PYTORCHS_WORDS = ("action", "state", "segment_type")  # keys of events, blocks and segments
_PYTHON = tuple({os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib")})


class Redaction(object):
    def __init__(self):
        self.known, self.counts = {}, {}

    def _said(self, letter, name, ending=""):
        found = self.known.get((letter, name))
        if found is None:
            self.counts[letter] = self.counts.get(letter, 0) + 1
            found = self.known[letter, name] = "%s%d%s" % (letter, self.counts[letter], ending)
        return found

    def root(self, kind, name):
        """Of a walk: a variable, or what stands for one."""
        if kind == CYCLE:
            return CYCLE_OF + self.types(name[len(CYCLE_OF):])
        if kind == UNSEEN_HOLDER:
            return self.types(name)
        return name if name in _WORDS_OF_OURS else self._said("v", name)

    def path(self, text):
        """".layers.*.weight[]" of attributes and keys."""
        return _IDENTIFIER.sub(lambda found: self._said("m", found.group()), text)

    def types(self, text):
        """"Node, dict": of classes."""
        return _IDENTIFIER.sub(lambda found: self._type(found.group()), text)

    def _type(self, name):
        return name if hasattr(builtins, name) or name in PYTHONS_TYPES else self._said("t", name)

    def file(self, path):
        """A file of Python or of a well-known package from its folder on; else a number."""
        return self._public(path) or self._said("file", path, _ending(path))

    def _public(self, path):
        """The part of the path that others have too; empty: it is the program's own."""
        if path.startswith("<frozen "):
            return path
        for folder in FOLDERS:
            _, found, rest = path.rpartition(folder)
            if found:
                return folder + rest if _package(rest) in PUBLIC else ""
        for folder in _PYTHON:
            if path.startswith(folder):
                return "/lib/python3.%d/" % sys.version_info[1] + path[len(folder):]
        return ""

    def function(self, name, file):
        if self._public(file) or _SPECIAL.fullmatch(name) or name in CALLED:
            return name
        return _IDENTIFIER.sub(lambda found: self._said("f", found.group()), name)

    def text(self, words):
        """What a program wrote itself."""
        return words if _NUMBERS_ALONE.fullmatch(words) else self._said("text", words)

    def mark(self, name):
        """A range of the profiler; of PyTorch's own those of its optimizers tell steps."""
        found = _OPTIMIZERS_MARK.fullmatch(name)
        if found is None:
            return self.text(name)
        kept = vars(sys.modules.get("torch.optim", builtins))
        kind = found.group(2) if found.group(2) in kept else self._said("t", found.group(2))
        return "Optimizer.%s#%s.%s" % (found.group(1), kind, found.group(1))

    # --- a snapshot ---

    def stacks_of(self, snapshot):
        """Its stacks, and what the program wrote on it."""
        frames = {}  # id of a frame -> (the frame, what stands for it)
        for holder in _holders_of_frames(snapshot):
            for key, value in holder.items():
                if key == "frames":
                    holder[key] = [self._frame(one, frames) for one in value or ()]
                elif type(value) is str and key not in _PYTORCHS_WORDS:
                    holder[key] = self.text(value)
        for one in snapshot.get("external_annotations") or ():
            one["name"] = self.mark(one.get("name") or "")

    def _frame(self, frame, known):
        found = known.get(id(frame))
        if found is None:
            file = frame["filename"]
            made = {"name": self.function(frame["name"], file), "filename": self.file(file), "line": frame["line"]}
            found = known[id(frame)] = frame, made
        return found[1]


def _holders_of_frames(snapshot):
    for part in ("device_traces", "host_traces"):
        for trace in snapshot.get(part) or ():
            yield from [trace] if type(trace) is dict else trace
    for part in ("segments", "host_segments"):
        for segment in snapshot.get(part) or ():
            yield segment
            yield from segment.get("blocks") or ()


def _ending(path):
    found = os.path.splitext(path)[1]
    return found if found in (".py", ".pyx", ".cpp", ".so") else ""


def _package(path):
    """"torch/nn/modules/module.py" and "six.py" to their first word."""
    return re.split(r"[/.]", path, maxsplit=1)[0]
