"""Legal-document classification: a large pretrained reader stays as it is, a pooling head learns."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset
from transformers import BertConfig, BertModel


class Documents(Dataset):
    def __init__(self, count, seed):
        g = torch.Generator().manual_seed(seed)
        lengths = torch.randint(24, 80, (count,), generator=g)
        lengths[(count * 3) // 5:] *= 3
        self.docs = [torch.randint(1000, 30000, (int(n),), generator=g) for n in lengths]
        self.labels = torch.randint(0, 14, (count,), generator=g)

    def __len__(self):
        return len(self.docs)

    def __getitem__(self, i):
        return self.docs[i], self.labels[i]


def collate(items):
    docs, labels = zip(*items)
    ids = pad_sequence(docs, batch_first=True)
    return ids, (ids != 0).long(), torch.stack(labels)


class PoolingHead(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.score = nn.Linear(width, 1)
        self.net = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Dropout(0.1), nn.Linear(width, classes))

    def forward(self, states, mask):
        weight = self.score(states).squeeze(-1).masked_fill(mask == 0, -1e4).softmax(-1)
        return self.net(torch.einsum('bt,btw->bw', weight, states))


class Classifier(nn.Module):
    def __init__(self, classes=14):
        super().__init__()
        config = BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096,
                            attn_implementation='sdpa')
        self.reader = BertModel(config, add_pooling_layer=False)
        self.head = PoolingHead(1024, classes)

    def forward(self, ids, mask):
        states = self.reader(input_ids=ids, attention_mask=mask).last_hidden_state
        return self.head(states, mask)


def main():
    torch.manual_seed(0)
    device = 'cuda'
    model = Classifier().to(device)
    model.reader.eval()
    optimizer = torch.optim.AdamW(model.head.parameters(), lr=1e-3)
    loader = DataLoader(Documents(60, seed=4), batch_size=2, collate_fn=collate)
    for epoch in range(2):
        for step, (ids, mask, labels) in enumerate(loader):
            logits = model(ids.to(device), mask.to(device))
            loss = F.cross_entropy(logits, labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 4 == 0:
                print(epoch, step, tuple(ids.shape), f'{loss.item():.4f}', flush=True)


if __name__ == '__main__':
    main()
