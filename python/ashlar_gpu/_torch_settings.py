"""The settings of the process's allocators when PyTorch installs them: PyTorch's own variable, ASHLAR_CONF, and what the
program says, the last of which wins.

    merged("max_split_size_mb:128", torch_version="2.14.1")  ->  "compat:torch-latest,max_split_size_mb:128"

Keys and values are those of `ashlar guide settings`; what is wrong with them the library says when they are used.
"""

import os
import re

TORCH_VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")  # the first that is set
OURS = {"compat", "free_order", "search_after_sync", "sync_just_enough", "borrow_across_streams", "borrow_most_waits",
        "memory_limit_mb", "soft_limit_mb", "soft_limit_fraction", "plan", "report_leaks"}  # keys that PyTorch has not
# From this release of PyTorch on (minor version of 2): the rules to be exact with. As allocator/policy/torch_rules.cc.
RULES = ((13, "torch-latest"), (12, "torch-2.12"), (10, "torch-2.10"), (0, "torch-2.6"))
OLD_GRAMMAR = {"torch-1.13", "torch-2.6"}  # which look at the signs between words


def compat_of(torch_version):
    """The rules of a release: "2.14.1+cu130" -> "torch-latest"."""
    major, minor = (int("".join(c for c in part if c.isdigit()) or 0) for part in torch_version.split(".")[:2])
    if major < 2:
        return "torch-1.13"
    if major > 2:
        return RULES[0][1]
    return next(rules for since, rules in RULES if minor >= since)


def _tokens(text, compat):
    """Words and the signs , : [ ] in turn. A blank is no part of a word, and ends none."""
    blanks = " " if compat in OLD_GRAMMAR else " \t\n\v\f\r"
    return re.findall(r"[,:\[\]]|[^,:\[\]]+", "".join(char for char in text if char not in blanks))


class _Reader:
    """Takes tokens in turn, as the library does: allocator/policy/conf_split.cc."""

    def __init__(self, text, compat):
        self.tokens, self.compat = _tokens(text, compat), compat

    def _takes_sign(self, sign):
        """From 2.10 on PyTorch does not look which one it is."""
        return bool(self.tokens) and (self.tokens.pop(0) == sign or self.compat not in OLD_GRAMMAR)

    def _value(self, key):
        """None where there is none."""
        if key == "plan":  # the name of a file: all up to the next comma
            end = self.tokens.index(",") if "," in self.tokens else len(self.tokens)
        elif self.tokens[0] == "[":
            end = self.tokens.index("]") + 1 if "]" in self.tokens else 0
        else:
            end = 1
        taken, self.tokens = self.tokens[:end], self.tokens[end:]
        return "".join(taken) if taken or key == "plan" else None

    def next(self):
        """(key, value); None where the tokens from here on are no setting."""
        key = self.tokens.pop(0)
        if not self._takes_sign(":") or not self.tokens:
            return None
        value = self._value(key)
        if value is None or (self.tokens and not self._takes_sign(",")):
            return None
        return key, value


def pairs(conf, compat="torch-latest"):
    """([(key, value)], whether that is all of the text): up to the first that is no setting, by a release's rules."""
    reader, out = _Reader(conf or "", compat), []
    while reader.tokens:
        pair = reader.next()
        if pair is None:
            return out, False
        out.append(pair)
    return out, True


def of_torch(environment=None):
    environment = os.environ if environment is None else environment
    return next((environment[name] for name in TORCH_VARIABLES if environment.get(name)), "")


def as_recorded(settings):
    """Of a snapshot: what PyTorch of these rules writes, so that readers of PyTorch's snapshots understand them."""
    out = dict(settings)
    given, _ = pairs(out.get("PYTORCH_CUDA_ALLOC_CONF", ""))
    out["PYTORCH_CUDA_ALLOC_CONF"] = ",".join(f"{key}:{value}" for key, value in given if key not in OURS)
    if dict(given).get("compat") == "torch-latest":
        out.update(max_cached_size=-1, max_round_threshold=-1)  # limits of its cache that we do not have
    return out


def _chosen_compat(texts, torch_version):
    """The rules that the texts ask for; like the library, found by the grammar that takes most."""
    said = [value for text in texts for key, value in pairs(text)[0] if key == "compat"]
    return said[-1] if said else compat_of(torch_version)


def merged(conf, torch_version, takes_torchs=True, environment=None):
    """A text that is no settings ends it as it stands: the library refuses it, as PyTorch does."""
    environment = os.environ if environment is None else environment
    texts = [of_torch(environment) if takes_torchs else "", environment.get("ASHLAR_CONF", ""), conf or ""]
    settings, wrong = [("compat", compat_of(torch_version))], []
    for text in texts:
        given, is_all = pairs(text, _chosen_compat(texts, torch_version))
        if not is_all:
            wrong = [text]
            break
        keys = {key for key, _ in given}
        settings = [pair for pair in settings if pair[0] not in keys] + given  # in the order of who said it last
    settings.sort(key=lambda pair: pair[0] != "compat")
    return ",".join([f"{key}:{value}" for key, value in settings] + wrong)
