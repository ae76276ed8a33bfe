"""T5."""

import math

import torch
from torch import nn
from torch.nn import functional

from parts import Returned, RootMeanSquare, checkpointed


def inverted(mask):
    mask = (1.0 - mask) * torch.finfo(torch.float32).min
    return mask


class T5Attention(nn.Module):
    def __init__(self, config, is_decoder, has_bias):
        super().__init__()
        self.is_checkpointed = config["is_checkpointed"]
        width, self.heads, self.head_width = config["d_model"], config["num_heads"], config["d_kv"]
        inner = self.heads * self.head_width
        self.is_decoder = is_decoder
        self.query = nn.Linear(width, inner, bias=False)
        self.key = nn.Linear(width, inner, bias=False)
        self.value = nn.Linear(width, inner, bias=False)
        self.out = nn.Linear(inner, width, bias=False)
        self.buckets = config["relative_attention_num_buckets"]
        self.farthest = config["relative_attention_max_distance"]
        self.position_bias = nn.Embedding(self.buckets, self.heads) if has_bias else None

    @staticmethod
    def bucket(distance, is_bidirectional, count, farthest):
        out = 0
        if is_bidirectional:
            count //= 2
            out += (distance > 0).to(torch.long) * count
            distance = torch.abs(distance)
        else:
            distance = -torch.min(distance, torch.zeros_like(distance))
        exact = count // 2
        is_near = distance < exact
        far = exact + (
            torch.log(distance.float() / exact) / math.log(farthest / exact) * (count - exact)
        ).to(torch.long)
        far = torch.min(far, torch.full_like(far, count - 1))
        out += torch.where(is_near, distance, far)
        return out

    def made_bias(self, queries, keys):
        rows = torch.arange(queries, dtype=torch.long)[:, None]
        columns = torch.arange(keys, dtype=torch.long)[None, :]
        distance = columns - rows
        bucket = self.bucket(distance, not self.is_decoder, self.buckets, self.farthest)
        values = self.position_bias(bucket)
        values = values.permute([2, 0, 1]).unsqueeze(0)
        return values

    def forward(self, x, mask, bias, source=None, keeps=True):
        batch, tokens = x.shape[:2]
        split = lambda states: states.view(batch, -1, self.heads, self.head_width).transpose(1, 2)
        rejoin = lambda states: states.transpose(1, 2).contiguous().view(batch, -1, self.heads * self.head_width)
        query = split(self.query(x))
        key = split(self.key(x if source is None else source))
        value = split(self.value(x if source is None else source))
        scores = torch.matmul(query, key.transpose(3, 2))
        if bias is None:
            if self.position_bias is None:
                bias = torch.zeros((1, self.heads, tokens, key.size(2)))
                if self.is_checkpointed:
                    bias.requires_grad = True
            else:
                bias = self.made_bias(tokens, key.size(2))
            bias = bias + mask
        scores += bias
        weights = functional.softmax(scores.float(), dim=-1).type_as(scores)
        out = rejoin(torch.matmul(weights, value))
        out = self.out(out)
        return out, (key, value) if self.is_decoder and keeps else None, bias


class T5AttentionLayer(nn.Module):
    def __init__(self, config, is_decoder, has_bias):
        super().__init__()
        self.attention = T5Attention(config, is_decoder, has_bias)
        self.norm = RootMeanSquare(config["d_model"])

    def forward(self, x, mask, bias, source=None, keeps=True):
        normed = self.norm(x)
        parts = self.attention(normed, mask, bias, source, keeps)
        out = x + parts[0]
        return (out,) + parts[1:]


class T5FeedForward(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.raised = nn.Linear(config["d_model"], config["d_ff"], bias=False)
        self.lowered = nn.Linear(config["d_ff"], config["d_model"], bias=False)
        self.norm = RootMeanSquare(config["d_model"])

    def inner(self, x):
        x = self.raised(x)
        x = functional.relu(x)
        x = self.lowered(x)
        return x

    def forward(self, x):
        fed = self.norm(x)
        fed = self.inner(fed)
        x = x + fed
        return x


class T5Block(nn.Module):
    def __init__(self, config, is_decoder, has_bias):
        super().__init__()
        self.own = T5AttentionLayer(config, is_decoder, has_bias)
        self.cross = T5AttentionLayer(config, True, False) if is_decoder else None
        self.feed_forward = T5FeedForward(config)

    def forward(self, x, mask, bias, source, source_mask, source_bias, keeps):
        own = self.own(x, mask, bias, None, keeps)
        x, kept = own[:2]
        biases = own[2:]
        if self.cross is not None:
            cross = self.cross(x, source_mask, source_bias, source, keeps)
            x = cross[0]
            if keeps:
                kept = kept + cross[1]
            biases = biases + cross[2:]
        x = self.feed_forward(x)
        return ((x, kept) if keeps else (x,)) + biases


class T5Stack(nn.Module):
    def __init__(self, config, is_decoder, tokens):
        super().__init__()
        self.is_decoder = is_decoder
        self.tokens = tokens
        layers = config["num_decoder_layers" if is_decoder else "num_layers"]
        self.blocks = nn.ModuleList([T5Block(config, is_decoder, i == 0) for i in range(layers)])
        self.norm = RootMeanSquare(config["d_model"])
        self.is_checkpointed = config["is_checkpointed"]

    def own_mask(self, sizes, ones):
        if not self.is_decoder:
            return inverted(ones[:, None, None, :])
        places = torch.arange(sizes[1])
        seen = places[None, None, :].repeat(sizes[0], sizes[1], 1) <= places[None, :, None]
        seen = seen.to(ones.dtype)
        mask = seen[:, None, :, :] * ones[:, None, None, :]
        del places, seen
        return inverted(mask)

    def forward(self, ids, ones=None, source=None, source_ones=None, embedded=None):
        sizes = ids.size()
        embedded = self.tokens(ids)
        ones = torch.ones(sizes)
        if source is not None:
            source_ones = torch.ones(source.shape[:2], dtype=torch.long)
        mask = self.own_mask(sizes, ones)
        source_mask = None if source is None else inverted(source_ones[:, None, None, :].to(torch.float32))
        kept = ()
        bias, source_bias = None, None
        x = embedded
        for block in self.blocks:
            if self.is_checkpointed:
                outputs = checkpointed(block, x, mask, bias, source, source_mask, source_bias, False)
                outputs = outputs[:1] + (None,) + outputs[1:]
            else:
                outputs = block(x, mask, bias, source, source_mask, source_bias, True)
            x, pair = outputs[:2]
            bias = outputs[2]
            if source is not None:
                source_bias = outputs[3]
                kept = kept + (pair,)
        x = self.norm(x)
        return Returned(last=x, kept=kept)


class T5(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.tokens = nn.Embedding(config["vocab_size"], config["d_model"])
        self.encoder = T5Stack(config, False, self.tokens)
        self.decoder = T5Stack(config, True, self.tokens)
        self.scale = config["d_model"] ** -0.5

    @staticmethod
    def shifted(labels):
        out = labels.new_zeros(labels.shape)
        out[..., 1:] = labels[..., :-1].clone()
        out[..., 0] = 0
        out.masked_fill_(out == -100, 0)
        return out

    def forward(self, input_ids, labels):
        encoder_output = self.encoder(input_ids)
        source = encoder_output.last
        decoder_ids = self.shifted(labels)
        decoder_output = self.decoder(decoder_ids, source=source)
        x = decoder_output.last
        x = x * self.scale
        logits = functional.linear(x, self.tokens.weight)
        loss = functional.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1), ignore_index=-100)
        return Returned(loss=loss, logits=logits, kept=decoder_output.kept, encoded=source)
