"""The choices of a mixture of experts' routers, by a rule: `ashlar dry-run --routing`.

A router takes the k best experts of scores that no kernel computed. Where it asks for them (topk), it is given others:

    balanced      each expert gets as many tokens, but for one
    random:SEED   each token's experts are drawn alike
    worst         all tokens go to the same k experts

A router is told by what it says of itself: topk is called by a method whose object has the k as one of TOP_K, and the scores'
width as one of EXPERTS. So those of transformers are found (Mixtral, Qwen-MoE, OLMoE, DeepSeek-V3, GPT-OSS), and others that
are written like them. What follows of the choice is computed too, as its tensors are integers (INTEGER_BYTES). A layer that is computed again in
backward makes the choice that it made before: a router's draws are its own.
Thread rule: the GIL is held.
"""

import functools
import sys
import weakref

TOP_K = ("top_k", "topk", "moe_topk", "num_experts_per_tok", "k")
EXPERTS = ("num_experts", "n_routed_experts", "num_local_experts", "n_experts", "num_experts_total")
INTEGER_BYTES = 64 << 20  # integers of up to so many bytes have real values: a mask of tokens by experts
MOST_FRAMES = 40

chosen = 0  # choices that were given in this process


class Routing(object):
    def __init__(self, torch, rule):
        kind, _, seed = rule.partition(":")
        self.torch, self.kind, self.seed = torch, kind, int(seed or 0)
        self.routers = weakref.WeakKeyDictionary()  # router -> its number, in the order of their first choices

    def choice(self, plan, args, kwargs, made):
        """(the indices that a router's topk made, what they are to be), or None where it is no router's."""
        if plan.name != "topk" or not isinstance(made, (list, tuple)) or len(made) != 2:
            return None
        indices = made[1]
        k, experts = int(indices.shape[-1]), int(args[0].shape[-1])
        router = _router(k, experts) if indices.numel() else None
        if router is None:
            return None
        global chosen
        chosen += 1
        number = self.routers.setdefault(router, len(self.routers))
        return indices, self.experts_of(indices.numel() // k, k, experts, number).reshape(indices.shape)

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


def _router(k, experts):
    """The object whose method is under way and calls for k of so many experts; None: none does."""
    frame = sys._getframe(1)
    for _ in range(MOST_FRAMES):
        frame = frame.f_back
        if frame is None:
            return None
        holder = frame.f_locals.get("self") if "self" in frame.f_code.co_varnames[:1] else None
        if holder is not None and _says(holder, TOP_K, k) and _says(holder, EXPERTS, experts):
            return holder
    return None


def _says(holder, names, number):
    said = getattr(holder, "__dict__", {})
    return any(said.get(name) == number and not isinstance(said.get(name), bool) for name in names
               if isinstance(said.get(name), int))


def rule_of(text):
    """As the launcher gives it; None: none, or one that is not known here."""
    kind, _, seed = (text or "").partition(":")
    is_known = kind in ("balanced", "worst") and not seed or kind == "random" and (not seed or seed.isdigit())
    return text if is_known else None
