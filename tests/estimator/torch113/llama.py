"""Llama, Qwen2, Mistral, Gemma."""

import math

import torch
from torch import nn
from torch.nn import functional

from parts import LanguageModel, Returned, RootMeanSquare, checkpointed


class RootMeanSquareFromOne(nn.Module):
    """Gemma's: the weight is what is more than one."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width))

    @staticmethod
    def scaled(x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)

    def forward(self, x):
        out = self.scaled(x)
        out = out * (1.0 + self.weight)
        return out


def norm_of(config):
    kind = RootMeanSquareFromOne if config["model_type"] == "gemma" else RootMeanSquare
    return kind(config["hidden_size"])


def turned_half(x):
    first = x[..., : x.shape[-1] // 2]
    second = x[..., x.shape[-1] // 2 :]
    return torch.cat((-second, first), dim=-1)


def rotated(query, key, cosines, sines):
    cosines = cosines.unsqueeze(1)
    sines = sines.unsqueeze(1)
    query_out = (query * cosines) + (turned_half(query) * sines)
    key_out = (key * cosines) + (turned_half(key) * sines)
    return query_out, key_out


def for_all_heads(x, times):
    batch, heads, tokens, width = x.shape
    if times == 1:
        return x
    x = x[:, :, None, :, :].expand(batch, heads, times, tokens, width)
    return x.reshape(batch, heads * times, tokens, width)


class LlamaAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config["hidden_size"]
        self.heads, self.key_heads = config["num_attention_heads"], config["num_key_value_heads"]
        self.head_width = config.get("head_dim", width // self.heads)
        has_bias = config["model_type"] == "qwen2"
        self.query = nn.Linear(width, self.heads * self.head_width, bias=has_bias)
        self.key = nn.Linear(width, self.key_heads * self.head_width, bias=has_bias)
        self.value = nn.Linear(width, self.key_heads * self.head_width, bias=has_bias)
        self.out = nn.Linear(self.heads * self.head_width, width, bias=False)
        self.register_buffer("turns", 10000.0 ** (-torch.arange(0, self.head_width, 2).float() / self.head_width))

    @torch.no_grad()
    def tables(self, places):
        turns = self.turns[None, :, None].expand(places.shape[0], -1, 1)
        wide = places[:, None, :].float()
        angles = (turns @ wide).transpose(1, 2)
        twice = torch.cat((angles, angles), dim=-1)
        cosines = twice.cos()
        sines = twice.sin()
        return cosines, sines

    def forward(self, x, mask, places, kept):
        batch, tokens, _ = x.size()
        query = self.query(x)
        key = self.key(x)
        value = self.value(x)
        query = query.view(batch, tokens, self.heads, self.head_width).transpose(1, 2)
        key = key.view(batch, tokens, self.key_heads, self.head_width).transpose(1, 2)
        value = value.view(batch, tokens, self.key_heads, self.head_width).transpose(1, 2)
        cosines, sines = self.tables(places)
        query, key = rotated(query, key, cosines, sines)
        if kept is not None:
            kept.append((key, value))
        key = for_all_heads(key, self.heads // self.key_heads)
        value = for_all_heads(value, self.heads // self.key_heads)
        weights = torch.matmul(query, key.transpose(2, 3)) / math.sqrt(self.head_width)
        seen = mask[:, :, :, :tokens]
        weights = weights + seen
        weights = functional.softmax(weights, dim=-1)
        out = torch.matmul(weights, value)
        out = out.transpose(1, 2).contiguous()
        out = out.reshape(batch, tokens, -1)
        out = self.out(out)
        return out


class LlamaLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, inner = config["hidden_size"], config["intermediate_size"]
        self.attention = LlamaAttention(config)
        self.gate = nn.Linear(width, inner, bias=False)
        self.raised = nn.Linear(width, inner, bias=False)
        self.lowered = nn.Linear(inner, width, bias=False)
        self.activation = nn.GELU(approximate="tanh") if config["model_type"] == "gemma" else nn.SiLU()
        self.norm_1 = norm_of(config)
        self.norm_2 = norm_of(config)

    def feed_forward(self, x):
        return self.lowered(self.activation(self.gate(x)) * self.raised(x))

    def forward(self, x, mask, places, kept):
        before = x
        x = self.norm_1(x)
        x = self.attention(x, mask, places, kept)
        x = before + x
        before = x
        x = self.norm_2(x)
        x = self.feed_forward(x)
        x = before + x
        return (x,)


class LlamaStack(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.tokens = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.layers = nn.ModuleList([LlamaLayer(config) for _ in range(config["num_hidden_layers"])])
        self.norm = norm_of(config)
        self.is_checkpointed = config["is_checkpointed"]
        self.scale = config["hidden_size"] ** 0.5 if config["model_type"] == "gemma" else None

    @staticmethod
    def causal(embedded, places):
        batch, tokens, _ = embedded.shape
        mask = torch.full((tokens, tokens + 1), torch.finfo(embedded.dtype).min)
        mask = torch.triu(mask, diagonal=1)
        mask *= torch.arange(tokens + 1) > places.reshape(-1, 1)
        return mask[None, None, :, :].expand(batch, 1, -1, -1)

    def forward(self, ids, embedded=None):
        embedded = self.tokens(ids)
        kept = []
        places = torch.arange(0, embedded.shape[1])
        rows = places.unsqueeze(0)
        mask = self.causal(embedded, places)
        x = embedded
        if self.scale is not None:
            x = x * torch.tensor(self.scale)
        for layer in self.layers:
            outputs = checkpointed(layer, x, mask, rows, None) if self.is_checkpointed else layer(x, mask, rows, kept)
            x = outputs[0]
        x = self.norm(x)
        return Returned(last=x, kept=tuple(kept))


def llama(config):
    return LanguageModel(LlamaStack(config), config["vocab_size"], config["tie_word_embeddings"])
