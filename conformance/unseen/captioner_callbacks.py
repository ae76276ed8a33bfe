import torch
import torch.nn as nn
import torch.nn.functional as F

"""
image captioning toy. The wandb logging is deferred, because uploading
in the loop was slow.
"""


class Callbacks:
    def __init__(self):
        self._todo = []

    def defer(self, fn):
        self._todo.append(fn)

    def flush(self):
        for fn in self._todo:
            fn()
        self._todo.clear()


class CaptionNet(nn.Module):
    def __init__(self, vocab=4000, d=384, length=24):
        super().__init__()
        self.cnn = nn.Sequential(nn.Conv2d(3, 96, 8, 8), nn.GELU(), nn.Conv2d(96, d, 4, 4), nn.GELU())
        self.words = nn.Embedding(vocab, d)
        layer = nn.TransformerDecoderLayer(d, 6, 4 * d, batch_first=True)
        self.dec = nn.TransformerDecoder(layer, 2)
        self.out = nn.Linear(d, vocab)

    def forward(self, img, cap):
        mem = self.cnn(img).flatten(2).transpose(1, 2)
        return self.out(self.dec(self.words(cap), mem))


def log_examples(step, images, pred):
    # wandb.log({"examples": [wandb.Image(i) for i in images[:4]]})
    ids = pred.argmax(-1)[:4]
    print("examples of step", step, tuple(images.shape), tuple(ids.shape))


def train(total=120, bs=256):
    cb = Callbacks()
    net = CaptionNet().to("cuda")
    optimizer = torch.optim.AdamW(net.parameters(), 2e-4)
    for step in range(total):
        images = torch.rand(bs, 3, 224, 224, device="cuda")
        caps = torch.randint(0, 4000, (bs, 25), device="cuda")
        scores = net(images, caps[:, :-1])
        loss = F.cross_entropy(scores.flatten(0, 1), caps[:, 1:].flatten(), label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        with torch.no_grad():
            pred = scores.softmax(-1)
        cb.defer(lambda step=step, images=images, pred=pred: log_examples(step, images, pred))
        if step % 20 == 0:
            print("step %d loss %.3f" % (step, loss.item()))
    cb.flush()


train()
