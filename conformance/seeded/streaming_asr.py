"""Streaming speech recognition: many microphones at once, audio comes in chunks, decoded greedily."""
import torch
import torch.nn as nn
import torch.nn.functional as F

MICROPHONES, FRAMES, DIM, HEADS, LAYERS = 128, 64, 512, 8, 4
LEFT_CONTEXT = 4 * FRAMES
CHUNKS = 34


class ChunkAttention(nn.Module):
    """Attends from the frames of a chunk to these and to those before."""

    def __init__(self):
        super().__init__()
        self.q, self.kv, self.o = nn.Linear(DIM, DIM), nn.Linear(DIM, 2 * DIM), nn.Linear(DIM, DIM)
        self.k_memory = self.v_memory = None

    def split(self, x):
        return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)

    def forward(self, x):
        k, v = (self.split(t) for t in self.kv(x).chunk(2, -1))
        if self.k_memory is not None:
            k = torch.cat([self.k_memory, k], 2)
            v = torch.cat([self.v_memory, v], 2)
        self.k_memory, self.v_memory = k, v
        y = F.scaled_dot_product_attention(self.split(self.q(x)), k, v)
        return self.o(y.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend = ChunkAttention()
        self.conv = nn.Conv1d(DIM, DIM, 5, padding=2, groups=DIM)
        self.feed = nn.Sequential(nn.LayerNorm(DIM), nn.Linear(DIM, 4 * DIM), nn.SiLU(), nn.Linear(4 * DIM, DIM))
        self.norm = nn.LayerNorm(DIM)

    def forward(self, x):
        x = x + self.attend(self.norm(x))
        x = x + self.conv(x.transpose(1, 2)).transpose(1, 2)
        return x + self.feed(x)


class Recognizer(nn.Module):
    def __init__(self, letters=40):
        super().__init__()
        self.mel = nn.Linear(80, DIM)
        self.layers = nn.Sequential(*[Layer() for _ in range(LAYERS)])
        self.letters = nn.Linear(DIM, letters)

    def forward(self, chunk):
        return self.letters(self.layers(self.mel(chunk)))


def microphone(chunks):
    for _ in range(chunks):
        yield torch.randn(MICROPHONES, FRAMES, 80, device="cuda")


def listen():
    model = Recognizer().cuda().eval()
    text = [[] for _ in range(MICROPHONES)]
    with torch.inference_mode():
        for chunk in microphone(CHUNKS):
            for line, letters in zip(text, model(chunk).argmax(-1).tolist()):
                line.extend(letters)
    return text


print(sum(map(len, listen())), "letters")
