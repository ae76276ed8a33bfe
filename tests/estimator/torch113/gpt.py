"""GPT-2 and GPT-Neo."""

import math

import torch
from torch import nn
from torch.nn import functional

from parts import LanguageModel, Returned, checkpointed


def tanh_gelu(x):
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


def by_head(x, heads):
    return x.view(x.size()[:-1] + (heads, x.size(-1) // heads)).permute(0, 2, 1, 3)


def joined(x):
    x = x.permute(0, 2, 1, 3).contiguous()
    return x.view(x.size()[:-2] + (x.size(-2) * x.size(-1),))


def lower_triangle(size, window=None):
    seen = torch.tril(torch.ones((size, size), dtype=torch.bool)).view(1, 1, size, size)
    return seen if window is None else torch.bitwise_xor(seen, torch.tril(seen, -window))


class Transposed(nn.Module):
    """GPT-2's linear layer: the weight is (in, out)."""

    def __init__(self, wide_in, wide_out):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(wide_in, wide_out).normal_(std=0.02))
        self.bias = nn.Parameter(torch.zeros(wide_out))

    def forward(self, x):
        sizes = x.size()[:-1] + (self.bias.size(0),)
        x = torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight)
        x = x.view(sizes)
        return x


class GptAttention(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.is_neo = config["model_type"] == "gpt_neo"
        width = config["hidden_size" if self.is_neo else "n_embd"]
        self.heads = config["num_heads" if self.is_neo else "n_head"]
        positions = config["max_position_embeddings" if self.is_neo else "n_positions"]
        if self.is_neo:
            is_local = config["attention_layers"][layer] == "local"
            self.register_buffer("seen", lower_triangle(positions, config["window_size"] if is_local else None))
            self.k_proj = nn.Linear(width, width, bias=False)
            self.v_proj = nn.Linear(width, width, bias=False)
            self.q_proj = nn.Linear(width, width, bias=False)
            self.out = nn.Linear(width, width)
        else:
            self.register_buffer("seen", lower_triangle(positions))
            self.packed = Transposed(width, 3 * width)
            self.out = Transposed(width, width)
        self.width = width

    def weigh(self, query, key, value):
        scores = torch.matmul(query, key.transpose(-1, -2))
        if not self.is_neo:
            scores = scores / torch.full([], value.size(-1) ** 0.5)
        tokens = query.size(-2)
        seen = self.seen[:, :, :tokens, :tokens]
        lowest = torch.full([], torch.finfo(scores.dtype).min)
        scores = torch.where(seen, scores, lowest)
        scores = functional.softmax(scores, dim=-1)
        mixed = torch.matmul(scores, value)
        return mixed, scores

    def forward(self, x, keeps):
        if self.is_neo:
            query = self.q_proj(x)
            key = self.k_proj(x)
            value = self.v_proj(x)
        else:
            query, key, value = self.packed(x).split(self.width, dim=2)
        query = by_head(query, self.heads)
        key = by_head(key, self.heads)
        value = by_head(value, self.heads)
        kept = (key, value) if keeps else None
        out, weights = self.weigh(query, key, value)
        out = joined(out)
        out = self.out(out)
        return out, kept


class GptFeedForward(nn.Module):
    def __init__(self, width, linear):
        super().__init__()
        self.raised = linear(width, 4 * width)
        self.lowered = linear(4 * width, width)

    def forward(self, x):
        x = self.raised(x)
        x = tanh_gelu(x)
        x = self.lowered(x)
        return x


class GptLayer(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        attention = GptAttention(config, layer)
        self.norm_1 = nn.LayerNorm(attention.width)
        self.attention = attention
        self.norm_2 = nn.LayerNorm(attention.width)
        self.feed_forward = GptFeedForward(attention.width, nn.Linear if attention.is_neo else Transposed)

    def forward(self, x, keeps):
        before = x
        x = self.norm_1(x)
        both = self.attention(x, keeps)
        attended = both[0]
        rest = both[1:] if keeps else ()
        x = attended + before
        before = x
        x = self.norm_2(x)
        fed = self.feed_forward(x)
        x = before + fed
        return (x,) + rest


class GptStack(nn.Module):
    def __init__(self, config):
        super().__init__()
        is_neo = config["model_type"] == "gpt_neo"
        width = config["hidden_size" if is_neo else "n_embd"]
        self.tokens = nn.Embedding(config["vocab_size"], width)
        self.positions = nn.Embedding(config["max_position_embeddings" if is_neo else "n_positions"], width)
        layers = config["num_layers" if is_neo else "n_layer"]
        self.layers = nn.ModuleList([GptLayer(config, i) for i in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.is_checkpointed = config["is_checkpointed"]

    def forward(self, ids, places=None, words=None):
        places = torch.arange(0, ids.size(1), dtype=torch.long)
        places = places.unsqueeze(0)
        words = self.tokens(ids)
        where = self.positions(places)
        x = words + where
        kept = ()
        for layer in self.layers:
            outputs = checkpointed(layer, x, False) if self.is_checkpointed else layer(x, True)
            x = outputs[0]
            if not self.is_checkpointed:
                kept = kept + (outputs[1],)
        x = self.norm(x)
        return Returned(last=x, kept=kept)


def gpt(config):
    return LanguageModel(GptStack(config), config["vocab_size"], is_tied=True)
