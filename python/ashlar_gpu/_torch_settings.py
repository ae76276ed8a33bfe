"""The settings of the process's allocators when PyTorch installs them: PyTorch's own variable, ASHLAR_CONF, and what the
program says, the last of which wins.

    merged("max_split_size_mb:128", torch_version="2.14.1")  ->  "compat:torch-2.14,max_split_size_mb:128"

Keys and values are docs/library/settings.md's; what is wrong with them the library says when they are used.
"""

import os

TORCH_VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")  # the first that is set
OURS = {"compat", "free_order", "search_after_sync", "sync_just_enough", "borrow_across_streams", "borrow_most_waits",
        "memory_limit_mb", "soft_limit_mb", "soft_limit_fraction", "plan", "report_leaks"}  # keys that PyTorch has not
# From this release of PyTorch on (minor version of 2): the rules to be exact with.
RULES = ((13, "torch-latest"), (12, "torch-2.12"), (10, "torch-2.10"), (0, "torch-2.6"))


def compat_of(torch_version):
    """The rules of a release: "2.14.1+cu130" -> "torch-latest"."""
    major, minor = (int("".join(c for c in part if c.isdigit()) or 0) for part in torch_version.split(".")[:2])
    if major < 2:
        return "torch-1.13"
    if major > 2:
        return RULES[0][1]
    return next(rules for since, rules in RULES if minor >= since)


def pairs(conf):
    """[(key, value)] of a text; a value may be a list in brackets, with commas of its own."""
    out, depth, start = [], 0, 0
    text = (conf or "") + ","
    for at, char in enumerate(text):
        depth += (char == "[") - (char == "]")
        if char == "," and depth <= 0:
            key, _, value = text[start:at].partition(":")
            if key.strip() or value.strip():
                out.append((key.strip(), value.strip()))
            start = at + 1
    return out


def of_torch(environment=None):
    environment = os.environ if environment is None else environment
    return next((environment[name] for name in TORCH_VARIABLES if environment.get(name)), "")


def as_recorded(settings):
    """Of a snapshot: what PyTorch of these rules writes, so that readers of PyTorch's snapshots understand them."""
    out = dict(settings)
    given = pairs(out.get("PYTORCH_CUDA_ALLOC_CONF", ""))
    out["PYTORCH_CUDA_ALLOC_CONF"] = ",".join(f"{key}:{value}" for key, value in given if key not in OURS)
    if dict(given).get("compat") == "torch-latest":
        out.update(max_cached_size=-1, max_round_threshold=-1)  # limits of its cache that we do not have
    return out


def merged(conf, torch_version, takes_torchs=True, environment=None):
    environment = os.environ if environment is None else environment
    settings = {"compat": compat_of(torch_version)}
    for text in (of_torch(environment) if takes_torchs else "", environment.get("ASHLAR_CONF", ""), conf or ""):
        for key, value in pairs(text):
            settings.pop(key, None)  # the order is that of who said it last
            settings[key] = value
    compat = settings.pop("compat")
    return ",".join(f"{key}:{value}" for key, value in [("compat", compat), *settings.items()])
