"""DistilBERT with a masked language head."""

import math

import torch
from torch import nn
from torch.nn import functional

from parts import Returned


class DistilAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x, mask):
        batch, tokens, width = x.size()
        split = lambda states: states.view(batch, -1, self.heads, width // self.heads).transpose(1, 2)
        query = split(self.query(x))
        key = split(self.key(x))
        value = split(self.value(x))
        query = query / math.sqrt(width // self.heads)
        scores = torch.matmul(query, key.transpose(2, 3))
        mask = (mask == 0).view(batch, 1, 1, tokens).expand_as(scores)
        scores = scores.masked_fill(mask, torch.tensor(torch.finfo(scores.dtype).min))
        weights = functional.softmax(scores, dim=-1)
        mixed = torch.matmul(weights, value)
        mixed = mixed.transpose(1, 2).contiguous().view(batch, -1, width)
        mixed = self.out(mixed)
        return mixed


class DistilLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config["dim"]
        self.attention = DistilAttention(width, config["n_heads"])
        self.norm_1 = nn.LayerNorm(width)
        self.raised = nn.Linear(width, config["hidden_dim"])
        self.lowered = nn.Linear(config["hidden_dim"], width)
        self.norm_2 = nn.LayerNorm(width)

    def feed_forward(self, x):
        x = self.raised(x)
        x = functional.gelu(x)
        x = self.lowered(x)
        return x

    def forward(self, x, mask):
        attended = self.attention(x, mask)
        attended = self.norm_1(attended + x)
        fed = self.feed_forward(attended)
        fed = self.norm_2(fed + attended)
        return fed


class DistilBert(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config["dim"]
        self.tokens = nn.Embedding(config["vocab_size"], width)
        self.positions = nn.Embedding(config["max_position_embeddings"], width)
        self.norm = nn.LayerNorm(width)
        self.register_buffer("places", torch.arange(config["max_position_embeddings"]).expand((1, -1)))
        self.layers = nn.ModuleList([DistilLayer(config) for _ in range(config["n_layers"])])
        self.dense = nn.Linear(width, width)
        self.head_norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, config["vocab_size"])
        self.head.weight = self.tokens.weight

    def embedded(self, ids):
        words = self.tokens(ids)
        where = self.positions(self.places[:, : ids.size(1)])
        x = words + where
        x = self.norm(x)
        return x

    def encoded(self, ids):
        mask = torch.ones(ids.size())
        x = self.embedded(ids)
        for layer in self.layers:
            x = layer(x, mask)
        return x

    def forward(self, input_ids, labels):
        x = self.encoded(input_ids)
        logits = self.dense(x)
        logits = functional.gelu(logits)
        logits = self.head_norm(logits)
        logits = self.head(logits)
        loss = functional.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1))
        return Returned(loss=loss, logits=logits)
