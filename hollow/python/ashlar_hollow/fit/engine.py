"""vLLM's offline engine: it takes a share of the card, and what the weights and a step leave of that is its cache of keys and values.

    engine = Engine(program, has_ample_room=True)
    after("vllm.entrypoints.llm", engine.watch)          # what LLM(...) is given
    after("vllm.v1.worker.gpu_worker", engine.watch_worker)

In ample room that cache would have no end. There it gets what one request of the greatest length needs, with less of which vLLM
refuses to start. So the run tells what vLLM must have of a card, and which share of one it takes.
Thread rule: that of the program, where the engine runs in its process.
"""

import inspect

from . import edits, hooks, lines
from .change import Change

ONE_PROCESS = "VLLM_ENABLE_V1_MULTIPROCESSING"  # vLLM's own: "0" runs the engine in the process that asked for it
MOST_SHARE = 0.97


class Engine(object):
    def __init__(self, program, has_ample_room=False):
        self.program, self.has_ample_room = program, has_ample_room
        self.share = 0.0  # of the card, that it takes
        self.needed_bytes = 0  # of that share, to serve one request of the greatest length
        self.longest = 0  # tokens of a request at most
        self.refused = ""  # why it did not start

    def watch(self, module):
        names = [name for name in inspect.signature(module.LLM.__init__).parameters][1:]

        def made(original, llm, *args, **kwargs):
            given = dict(zip(names, args))
            given.update(kwargs)
            self.program.tell("on_engine", given, lines.where(llm))
            try:
                original(llm, **given)
            except ValueError as error:  # of its own checks of what is left for the cache
                self.refused = str(error)
                raise

        hooks.put(module.LLM, "__init__", made)

    def watch_worker(self, module):
        def available(original, worker):
            measured = original(worker)
            cache = self.program.guarded(self.look, worker, measured)
            return measured if cache is None or not self.has_ample_room else min(measured, cache)

        hooks.put(module.Worker, "determine_available_memory", available)

    def look(self, worker, measured):
        """The bytes of the cache of one request, as vLLM counts them, and the block that it keeps empty. `measured`: what it found to be
        left for its cache."""
        settings = worker.vllm_config
        cache = sum(spec.max_memory_usage_bytes(settings) + spec.page_size_bytes for spec in worker.get_kv_cache_spec().values())
        self.share = float(settings.cache_config.gpu_memory_utilization)
        self.longest = int(settings.model_config.max_model_len)
        self.needed_bytes = int(worker.requested_memory) - int(measured) + cache
        return cache

    def told(self):
        """For the facts of a run; None where there is no engine."""
        if self.needed_bytes == 0 and not self.refused:
            return None
        return {"share": self.share, "needed": self.needed_bytes, "refused": self.refused}


class Argument(Change):
    """An argument of LLM(...)."""

    without = "no LLM of vLLM is made"
    given = {}

    def on_engine(self, given, where):
        why = self.already(given)
        if why is not None:
            return self.lacks(why)
        texts = {name: repr(value).replace("'", '"') for name, value in self.given.items()}
        self.applies(where, "LLM(..., %s)" % ", ".join("%s=%s" % one for one in texts.items()))
        self.writes_into(where, edits.keywords("LLM", **texts))
        if self.is_on:
            given.update(self.given)
        return None

    def already(self, given):
        """Why there is nothing to change."""


class Share(Argument):
    name, title, price = "engine-share", "vLLM takes %d %% of the card" % round(100 * MOST_SHARE), 5
    costs = "hardly any memory for others on the card"
    given = {"gpu_memory_utilization": MOST_SHARE}

    def already(self, given):
        share = given.get("gpu_memory_utilization", 0)
        return "it takes %d %% of the card" % round(100 * share) if share >= MOST_SHARE else None


class Eager(Argument):
    name, title, price = "engine-eager", "vLLM without CUDA graphs", 30
    costs = "more time for each token"
    given = {"enforce_eager": True}

    def already(self, given):
        return "enforce_eager is on" if given.get("enforce_eager") else None


class NarrowCache(Argument):
    name, title, price = "engine-8-bit-cache", "keys and values of vLLM in 8 bits", 61
    group = "cache"
    costs = "keys and values are rounded"
    alters = "precision"
    given = {"kv_cache_dtype": "fp8"}

    def already(self, given):
        kind = given.get("kv_cache_dtype", "auto")
        return None if kind in ("auto", "bfloat16", "float16") else "kv_cache_dtype is %s" % kind


class NarrowWeights(Argument):
    name, title, price = "engine-8-bit-weights", "linear layers of vLLM in 8 bits", 62
    group = "weights"
    lessens = ("parameters",)
    costs = "weights are rounded"
    alters = "precision"
    given = {"quantization": "fp8"}

    def already(self, given):
        return "the weights have a quantization" if given.get("quantization") else None


class Context(Change):
    """Requests of so many tokens at most, as "context=4096" asks; without a number half of the program's own."""

    name, title = "context", "requests of half as many tokens at most"
    group, price = "length", 85
    costs = "longer requests are refused"
    alters = "length"
    without = Argument.without

    def __init__(self, program, most=0):
        Change.__init__(self, program, most > 0)
        self.most = most
        self.where_made = None
        if most:
            self.rename()

    def rename(self):
        self.name, self.title = "context=%d" % self.most, "requests of %d tokens at most" % self.most

    def on_engine(self, given, where):
        self.where_made = where or ""
        if self.is_on:
            given["max_model_len"] = self.most
            self.tell(where)

    def tell(self, where):
        self.applies(where, "LLM(..., max_model_len=%d)" % self.most)
        self.writes_into(where, edits.keywords("LLM", max_model_len=str(self.most)))

    def on_end(self):
        longest = self.program.engine.longest
        if self.is_on or self.where_made is None:
            return None
        if longest < 2:
            return self.lacks("vLLM did not measure its memory in this process")
        self.most = longest // 2
        self.rename()
        return self.tell(self.where_made)
