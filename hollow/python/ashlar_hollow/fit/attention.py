"""Switches of transformers' models: the implementation of attention, the cache of keys and values."""

from . import edits
from .change import Change


class Switch(Change):
    without = "no model of transformers is trained"

    def on_model(self, module, where):
        for one in module.modules():
            if hasattr(getattr(one, "config", None), "_attn_implementation"):
                return self.on_pretrained(one, one is module, where)
        return None

    def on_pretrained(self, model, is_called, where):
        raise NotImplementedError


class Sdpa(Switch):
    name, title = "sdpa", "fused attention"
    price = 2

    def on_pretrained(self, model, is_called, where):
        kind = model.config._attn_implementation
        if kind != "eager":
            return self.lacks("attention is %s" % kind)
        if not getattr(model, "_supports_sdpa", False) or not hasattr(model, "set_attn_implementation"):
            return self.lacks("the model has no other attention")
        can_set = getattr(model, "_can_set_attn_implementation", None)
        if can_set is not None and not can_set():  # it has chosen modules by it, as it was made
            return self.lacks('attention is chosen as the model is made: try from_pretrained(..., attn_implementation="sdpa")')
        self.applies(where, 'from_pretrained(..., attn_implementation="sdpa")')
        if is_called:
            self.writes_into(where, edits.before_loop('%s.set_attn_implementation("sdpa")'))
        if self.is_on:
            model.set_attn_implementation("sdpa")
        return None


class NoCache(Switch):
    name, title = "no-cache", "no keys and values kept in training"
    price = 0

    def on_pretrained(self, model, is_called, where):
        if not getattr(model.config, "use_cache", False):
            return self.lacks("use_cache is off")
        self.applies(where, "before the loop: model.config.use_cache = False")
        if is_called:
            self.writes_into(where, edits.before_loop("%s.config.use_cache = False"))
        if self.is_on:
            model.config.use_cache = False
        return None
