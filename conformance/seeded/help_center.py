"""Nearest articles of a help center for a question, articles are embedded when they are first asked for."""
import functools

import torch
import torch.nn.functional as F
from torch import nn

ARTICLES_PER_TOPIC, TOKENS, WIDTH = 64, 512, 768


class Encoder(nn.Module):
    def __init__(self, vocabulary=20000, depth=3):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, WIDTH)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, 12, 2 * WIDTH, batch_first=True, norm_first=True) for _ in range(depth))

    def forward(self, ids):
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x)
        return x


with torch.device("cuda"):
    encoder = Encoder().eval()


def articles_of(topic):
    generator = torch.Generator(device="cuda").manual_seed(topic)
    return torch.randint(0, 20000, (ARTICLES_PER_TOPIC, TOKENS), device="cuda", generator=generator)


@functools.lru_cache(maxsize=4096)
def article_vectors(topic):
    with torch.no_grad():
        hidden = encoder(articles_of(topic))
    return hidden[:, 0]


@functools.lru_cache(maxsize=256)
def question_vector(question):
    ids = torch.tensor([[hash(word) % 20000 for word in question.split()]], device="cuda")
    with torch.no_grad():
        return F.normalize(encoder(ids).mean(1), dim=-1)


def nearest(question, topics):
    asked = question_vector(question)
    best = []
    for topic in topics:
        vectors = F.normalize(article_vectors(topic), dim=-1)
        value, index = (vectors @ asked.t()).flatten().max(0)
        best.append((value.item(), topic, index.item()))
    return max(best)


questions = ["how do I reset my password", "where is my invoice", "can I change the plan of my team"]
for number in range(18):
    print(questions[number % 3], nearest(questions[number % 3], [2 * number % 41, (2 * number + 1) % 41]))
