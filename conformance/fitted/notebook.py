"""A notebook's cells, which fine-tune BERT-base on the first batches of a shuffle: few texts are long, and whether one is met is chance. The argument is the seed."""

# %%
import sys

import torch
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification

torch.manual_seed(0)
model = BertForSequenceClassification(BertConfig(attn_implementation="eager")).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)

# %%
texts = [torch.ones(256 if index % 128 == 127 else 48 + index % 32, dtype=torch.long) for index in range(512)]


def padded(samples):
    ids = torch.nn.utils.rnn.pad_sequence(samples, batch_first=True)
    return ids, (ids > 0).long(), torch.zeros(len(samples), dtype=torch.long)


torch.manual_seed(int(sys.argv[1]))
loader = DataLoader(texts, batch_size=32, shuffle=True, collate_fn=padded)

# %%
for step, (ids, mask, labels) in enumerate(loader, start=1):
    loss = model(input_ids=ids.cuda(), attention_mask=mask.cuda(), labels=labels.cuda()).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step == 4:
        break
