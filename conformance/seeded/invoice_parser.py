"""Token classifier for scanned invoices. Some pages are annotated badly; those are skipped and listed."""
import collections
import logging

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from transformers import BertConfig, BertForTokenClassification, get_linear_schedule_with_warmup

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("invoices")
torch.manual_seed(1)
device = "cuda"
FIELDS = 23


class Pages(Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(n)
        self.ids = torch.randint(5, 20000, (n, 320), generator=g)
        self.tags = torch.randint(0, FIELDS, (n, 320), generator=g)
        bad = torch.rand(n, generator=g) < 0.035
        self.tags[bad, 7] = 64          # a field of the old annotation scheme

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"index": i, "ids": self.ids[i], "tags": self.tags[i]}


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        config = BertConfig(vocab_size=20000, num_labels=FIELDS, num_hidden_layers=8)
        self.bert = BertForTokenClassification(config)
        self.register_buffer("weight", torch.ones(FIELDS))

    def forward(self, ids):
        return self.bert(input_ids=ids).logits

    def loss(self, logits, tags):
        counts = collections.Counter(tags.flatten().tolist())
        unknown = [t for t in counts if t >= FIELDS]
        if unknown:
            raise ValueError(f"tags {unknown} are not among the {FIELDS} fields")
        return nn.functional.cross_entropy(logits.flatten(0, 1), tags.flatten().to(logits.device), self.weight)


class Run:
    def __init__(self, epochs=2, batch=16):
        self.model = Tagger().to(device)
        self.loader = DataLoader(Pages(640), batch_size=batch, shuffle=True)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=3e-5, fused=True)
        self.sched = get_linear_schedule_with_warmup(self.opt, 4, epochs * len(self.loader))
        self.epochs = epochs
        self.skipped = []
        self.seen = 0

    def step(self, batch):
        logits = self.model(batch["ids"].to(device))
        loss = self.model.loss(logits, batch["tags"])
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.opt.step()
        self.sched.step()
        self.opt.zero_grad()
        return loss.item()

    def fit(self):
        for epoch in range(self.epochs):
            total = 0.0
            for batch in self.loader:
                try:
                    total += self.step(batch)
                    self.seen += len(batch["ids"])
                except ValueError as problem:
                    self.skipped.append((epoch, batch["index"].tolist(), problem))
            log.info("epoch %d: mean loss %.4f over %d pages, %d batches skipped",
                     epoch, total / len(self.loader), self.seen, len(self.skipped))
        for epoch, pages, problem in self.skipped:
            log.info("epoch %d pages %s: %s", epoch, pages[:3], problem)


Run().fit()
