"""Steps of PPO for a language model on one card, and the memory that they need: as they are, with empty_cache, with sleep.

    ashlar dry-run --device A100-80GB -- python phases.py stays
    ashlar dry-run --device A100-80GB -- python phases.py empty_cache
    ashlar dry-run --device A100-80GB -- python phases.py sleep

A step has three phases: the policy answers prompts with a cache of keys and values; a frozen reference scores the answers;
the policy is trained on them. `empty_cache` drops the cache after each use. `sleep` keeps its addresses, and lets the reference
and the optimizer's state sleep as well while others work. A rule stands in the place of a reward model.
"""

import contextlib
import copy
import os
import sys

os.environ.setdefault("ASHLAR_CONF", "expandable_segments:True")

import torch
from torch import nn
from torch.nn import functional as F

import ashlar_gpu.torch as ashlar

LAYERS, WIDTH, HEADS, VOCABULARY, DTYPE = 16, 2048, 16, 32_000, torch.bfloat16
PROMPT, ANSWER, SEQUENCES, MINIBATCH = 992, 32, 64, 8
STEPS, EPOCHS, RATE, CLIP, GAMMA, LAMBDA, KL, VALUES = 2, 2, 1e-5, 0.2, 1.0, 0.95, 0.05, 0.5


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.qkv, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, kept, at):
        many, tokens, _ = x.shape
        q, k, v = self.qkv(self.before(x)).view(many, tokens, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        if kept is not None:
            kept[0, :, :, at:at + tokens], kept[1, :, :, at:at + tokens] = k, v
            k, v = kept[:, :, :, :at + tokens]
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=tokens > 1)
        x = x + self.out(seen.transpose(1, 2).reshape(many, tokens, WIDTH))
        return x + self.feed(x)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(PROMPT + ANSWER, WIDTH)
        self.layers, self.norm = nn.ModuleList(Layer() for _ in range(LAYERS)), nn.LayerNorm(WIDTH)
        self.head, self.value = nn.Linear(WIDTH, VOCABULARY, bias=False), nn.Linear(WIDTH, 1)

    def forward(self, tokens, last, cache=None, at=0):
        """Logits and values of the `last` places. `cache`: keys and values of each layer, of `at` places so far."""
        x = self.tokens(tokens) + self.places(torch.arange(at, at + tokens.shape[1]))
        for layer, kept in zip(self.layers, cache or LAYERS * [None]):
            x = layer(x, kept, at)
        x = self.norm(x[:, -last:])
        return self.head(x).float(), self.value(x).squeeze(-1).float()


def log_probability(logits, chosen):
    return logits.log_softmax(-1).gather(-1, chosen.unsqueeze(-1)).squeeze(-1)


def advantages_of(rewards, values):
    """Generalised advantage estimation, from the last token on."""
    out, advantage, following = torch.zeros_like(rewards), 0.0, 0.0
    for at in reversed(range(ANSWER)):
        advantage = rewards[:, at] + GAMMA * following - values[:, at] + GAMMA * LAMBDA * advantage
        out[:, at], following = advantage, values[:, at]
    return out


class Phases:
    def __init__(self, mode):
        self.mode, self.asleep, self.cache = mode, set(), None
        self.policy = Model().to(DTYPE)
        with self.tag("reference"):
            self.reference = copy.deepcopy(self.policy).requires_grad_(False)
        self.sleep("reference", keep="host")
        self.optimizer = torch.optim.AdamW(self.policy.parameters(), lr=RATE)

    # What the three ways differ in.

    def tag(self, name):
        return ashlar.tag(name) if self.mode == "sleep" else contextlib.nullcontext()

    def sleep(self, name, keep):
        if self.mode == "sleep":
            ashlar.sleep(name, keep=keep)
            self.asleep.add(name)

    def wake(self, name):
        if name in self.asleep:
            ashlar.wake(name)
            self.asleep.remove(name)

    def open_cache(self):
        if self.cache is None:
            with self.tag("cache"):
                shape = 2, SEQUENCES, HEADS, PROMPT + ANSWER, WIDTH // HEADS
                self.cache = [torch.empty(shape, dtype=DTYPE) for _ in range(LAYERS)]
        self.wake("cache")
        return self.cache

    def close_cache(self):
        if self.mode == "empty_cache":
            self.cache = None
            torch.cuda.empty_cache()
        self.sleep("cache", keep="nothing")  # it is written anew each time

    # The three phases.

    @torch.no_grad()
    def answer(self, prompts):
        """Prompts with their answers; of each token of an answer its log probability and value."""
        cache, tokens, new, taken, values = self.open_cache(), prompts, prompts, [], []
        for at in range(ANSWER):
            logits, value = self.policy(new, 1, cache, at=0 if at == 0 else PROMPT + at - 1)
            new = torch.multinomial(logits[:, 0].softmax(-1), 1)
            taken.append(log_probability(logits, new))
            values.append(value)
            tokens = torch.cat([tokens, new], 1)
        self.close_cache()
        return tokens, torch.cat(taken, 1), torch.cat(values, 1)

    @torch.no_grad()
    def score(self, tokens, taken):
        """A reward for each token: how far the policy is from the reference, and at the end the rule's."""
        self.wake("reference")
        parts = [log_probability(self.reference(part[:, :-1], ANSWER)[0], part[:, PROMPT:]) for part in tokens.split(MINIBATCH)]
        self.sleep("reference", keep="host")
        rewards = KL * (torch.cat(parts) - taken)
        rewards[:, -1] += self.rule(tokens)
        return rewards

    @staticmethod
    def rule(tokens):
        return (tokens[:, PROMPT:] < VOCABULARY // 2).float().mean(1)

    def train(self, tokens, taken, values, rewards):
        advantages = advantages_of(rewards, values)
        returns = advantages + values
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        self.wake("optimizer")
        for _ in range(EPOCHS):
            for some in torch.randperm(SEQUENCES).split(MINIBATCH):
                self.loss(tokens[some], taken[some], advantages[some], returns[some]).backward()
                nn.utils.clip_grad_norm_(self.policy.parameters(), 1.0)
                with self.tag("optimizer"):  # its state is made in the first step
                    self.optimizer.step()
                self.optimizer.zero_grad()
        self.sleep("optimizer", keep="host")

    def loss(self, tokens, taken, advantages, returns):
        logits, values = self.policy(tokens[:, :-1], ANSWER)
        ratio = (log_probability(logits, tokens[:, PROMPT:]) - taken).exp()
        clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
        return -torch.min(ratio * advantages, clipped * advantages).mean() + VALUES * (values - returns).square().mean()


def main(mode):
    ashlar.install()
    torch.set_default_device("cuda")
    phases = Phases(mode)
    for _ in range(STEPS):
        tokens, taken, values = phases.answer(torch.randint(VOCABULARY, (SEQUENCES, PROMPT)))
        phases.train(tokens, taken, values, phases.score(tokens, taken))
    print(f"{mode}: {torch.cuda.max_memory_reserved() / 2**30:.2f} GiB needed")


if __name__ == "__main__":
    main(sys.argv[1])
