"""The choices of a mixture of experts' routers, by a rule: `ashlar dry-run --routing`.

A router takes the k best experts of scores that no kernel computed. Where it asks for them (topk, or argmax for one after the
other), it is given others:

    balanced      each expert gets as many tokens, but for one
    random:SEED   each token's experts are drawn alike
    worst         all tokens go to the same k experts

A router is told by what it says of itself: it is called by a method whose object has the k as one of TOP_K, and the scores'
width as one of EXPERTS, or as the rows of a weight of one of its GATES. So those of transformers are found (Mixtral, Qwen-MoE, OLMoE,
DeepSeek-V3, GPT-OSS), of Megatron-core and DeepSpeed, and others that are written like them. What follows of the choice is computed too, as its tensors are integers (INTEGER_BYTES). A layer that is computed again in
backward makes the choice that it made before: a router's draws are its own.
Thread rule: the GIL is held.
"""

import functools
import sys
import weakref

TOP_K = ("top_k", "topk", "moe_topk", "num_experts_per_tok", "k")
EXPERTS = ("num_experts", "n_routed_experts", "num_local_experts", "n_experts", "num_experts_total")
GATES = ("wg", "gate", "router")  # modules of a router that make the scores
INTEGER_BYTES = 64 << 20  # integers of up to so many bytes have real values: a mask of tokens by experts
MOST_FRAMES = 40

chosen = 0  # choices that were given in this process


class Routing(object):
    def __init__(self, torch, rule):
        kind, _, seed = rule.partition(":")
        self.torch, self.kind, self.seed = torch, kind, int(seed or 0)
        self.routers = weakref.WeakKeyDictionary()  # router -> its number, in the order of their first choices
        self.first = weakref.WeakKeyDictionary()  # router that takes one after the other -> how many of its k it has

    def choice(self, plan, args, kwargs, made):
        """(the indices that a router asked for, what they are to be), or None where it is no router's."""
        if plan.name == "topk" and isinstance(made, (list, tuple)) and len(made) == 2:
            indices, scores = made[1], args[0]
            return self._topk(indices, scores) if indices.numel() else None
        if plan.name == "argmax" and getattr(made, "ndim", 0) == 1 and args[0].ndim == 2 and made.numel():
            return self._one_after_the_other(made, args[0]) if made.shape[0] == args[0].shape[0] else None
        return None

    def _topk(self, indices, scores):
        k, experts = int(indices.shape[-1]), int(scores.shape[-1])
        router = _router((k,), experts)
        if router is None:
            return None
        return indices, self.experts_of(indices.numel() // k, k, experts, self._number_of(router)).reshape(indices.shape)

    def _one_after_the_other(self, indices, scores):
        experts = int(scores.shape[-1])
        router = _router((1, 2), experts)
        if router is None:
            return None
        k = next(k for k in (1, 2) if _says(router, TOP_K, k))
        place = self.first.get(router, 0)
        self.first[router] = (place + 1) % k
        return indices, self.experts_of(indices.numel(), k, experts, self._number_of(router))[:, place]

    def _number_of(self, router):
        global chosen
        chosen += 1
        return self.routers.setdefault(router, len(self.routers))

    def experts_of(self, tokens, k, experts, router=0):
        """Of each token k different ones. `router`: its number, by which its draws are others than another's."""
        if self.kind == "random":
            drawn = self.torch.Generator()  # of its own: the program's numbers are not drawn
            drawn.manual_seed(self.seed * 1000003 + router)
            return self.torch.rand(tokens, experts, generator=drawn).topk(k, dim=-1).indices
        places = self.torch.arange(tokens * k).reshape(tokens, k)
        return places % k if self.kind == "worst" else places % experts


def through_recomputation(checkpoints, stack):
    """torch.utils.checkpoint computes a layer again while the autograd engine runs, where our mode is off otherwise."""
    original = checkpoints.checkpoint

    @functools.wraps(original)
    def checkpoint(function, *args, **kwargs):
        return original(_with_mode(function, stack), *args, **kwargs)

    checkpoints.checkpoint = checkpoint


def _with_mode(function, stack):
    @functools.wraps(function)
    def call(*args, **kwargs):
        was_on = stack.take()
        stack.put()
        try:
            return function(*args, **kwargs)
        finally:
            if not was_on:
                stack.take()

    return call


def _router(ks, experts):
    """The object whose method is under way and calls for one of `ks` of so many experts; None: none does."""
    frame = sys._getframe(1)
    for _ in range(MOST_FRAMES):
        frame = frame.f_back
        if frame is None:
            return None
        holder = frame.f_locals.get("self") if "self" in frame.f_code.co_varnames[:1] else None
        if holder is not None and any(_says(holder, TOP_K, k) for k in ks) and _has_experts(holder, experts):
            return holder
    return None


def _has_experts(holder, experts):
    if _says(holder, EXPERTS, experts):
        return True
    modules = getattr(holder, "__dict__", {}).get("_modules", {})
    weights = (getattr(modules.get(name), "weight", None) for name in GATES)
    return any(weight is not None and weight.ndim == 2 and weight.shape[0] == experts for weight in weights)


def _says(holder, names, number):
    said = getattr(holder, "__dict__", {})
    return any(said.get(name) == number and not isinstance(said.get(name), bool) for name in names
               if isinstance(said.get(name), int))


def rule_of(text):
    """As the launcher gives it; None: none, or one that is not known here."""
    kind, _, seed = (text or "").partition(":")
    is_known = kind in ("balanced", "worst") and not seed or kind == "random" and (not seed or seed.isdigit())
    return text if is_known else None
