"""A BERT over the rows of a table, whose vocabulary holds every visitor: its embedding has 722 million of 874 million weights."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertModel

torch.manual_seed(0)
CATEGORIES = [17, 17] + [18] * 10 + [867599]  # of the columns; the last has the visitors
ROWS, FIELD, WORDS = 10, 64, sum(CATEGORIES)
COLUMNS, WIDTH = len(CATEGORIES), FIELD * len(CATEGORIES)


class Fields(nn.Module):
    """The columns of a row, joined."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, FIELD)
        self.encoder = nn.TransformerEncoderLayer(FIELD, 8, FIELD)
        self.join = nn.Linear(WIDTH, WIDTH)

    def forward(self, ids):
        fields = self.encoder(self.words(ids.flatten(0, 1)).transpose(0, 1)).transpose(0, 1)
        return self.join(fields.reshape(len(ids), ROWS, WIDTH))


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.fields = Fields()
        self.bert = BertModel(BertConfig(vocab_size=WORDS, hidden_size=WIDTH, num_attention_heads=COLUMNS), add_pooling_layer=False)
        self.head = nn.Sequential(nn.Linear(FIELD, WIDTH), nn.GELU(), nn.LayerNorm(WIDTH))
        self.bias = nn.Parameter(torch.zeros(WORDS))

    def forward(self, ids):
        rows = self.bert(inputs_embeds=self.fields(ids)).last_hidden_state
        return F.linear(self.head(rows.reshape(len(ids), ROWS * COLUMNS, FIELD)), self.bert.get_input_embeddings().weight, self.bias)


model = Table().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
data = TensorDataset(torch.zeros(24, ROWS, COLUMNS, dtype=torch.long))
for step, (ids,) in enumerate(DataLoader(data, batch_size=8), start=1):
    ids = ids.cuda()
    logits, loss, first = model(ids), 0, 0
    for column, size in enumerate(CATEGORIES):
        of_column = logits[:, column::COLUMNS, first:first + size]
        loss, first = loss + F.cross_entropy(of_column.reshape(-1, size), ids[:, :, column].flatten()), first + size
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
