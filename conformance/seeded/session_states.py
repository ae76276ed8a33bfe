"""A serving loop of a recommender: each request's candidates are scored, a summary of the user stays for the next one."""
import random
import time
from collections import OrderedDict

import torch
import torch.nn as nn

device = torch.device('cuda')


class Scorer(nn.Module):
    def __init__(self, items=200_000, width=512):
        super().__init__()
        self.items = nn.Embedding(items, width)
        self.context = nn.GRUCell(width, width)
        self.tower = nn.Sequential(nn.Linear(2 * width, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU())
        self.score = nn.Linear(4096, 1)

    def forward(self, candidates, user):
        e = self.items(candidates)
        h = self.tower(torch.cat([e, user.expand_as(e)], -1))
        return self.score(h).squeeze(-1), h


class Sessions:
    """The states of the users seen of late, oldest first."""

    def __init__(self, limit=5000):
        self.limit = limit
        self.states = OrderedDict()

    def get(self, user):
        state = self.states.pop(user, None)
        return None if state is None else state.to(device)

    def put(self, user, state):
        self.states[user] = state
        while len(self.states) > self.limit:
            self.states.popitem(last=False)


class Server:
    def __init__(self):
        self.model = Scorer().to(device).eval()
        self.sessions = Sessions()

    @torch.inference_mode()
    def handle(self, user, candidates):
        known = self.sessions.get(user)
        ids = torch.as_tensor(candidates, device=device)
        vector = torch.zeros(1, 512, device=device) if known is None else known.view(-1, 4096)[:1, :512]
        scores, hidden = self.model(ids, vector)
        top = scores.topk(96).indices
        profile = hidden[top].flatten()
        self.sessions.put(user, profile)
        return top[:10].tolist()


def requests(count, seed):
    rng = random.Random(seed)
    for number in range(count):
        size = rng.choice([2_000, 5_000, 8_000, 12_000, 16_000, 20_000, 24_000, 30_000])
        size += rng.randrange(0, 1500)
        yield number, [rng.randrange(200_000) for _ in range(size)]


def main():
    torch.manual_seed(0)
    server = Server()
    started = time.time()
    for user, candidates in requests(300, seed=8):
        answer = server.handle(user, candidates)
        if user % 50 == 0:
            print(f'request {user}: {len(candidates)} candidates, top {answer[0]}, {time.time() - started:.1f} s',
                  flush=True)
    print('sessions', len(server.sessions.states))


if __name__ == '__main__':
    main()
