"""Embed a corpus with BERT and take the [CLS] vectors."""
import dataclasses
from typing import List

import torch
from transformers import BertConfig, BertModel

from note import note


@dataclasses.dataclass
class EmbeddingResult:
    doc_id: int
    vector: torch.Tensor
    norm: float = 0.0


def documents(n, batch, length):
    for i in range(0, n, batch):
        yield i, torch.randint(0, 8000, (batch, length))


@torch.inference_mode()
def embed(model, n_docs=10240, batch=128, length=256) -> List[EmbeddingResult]:
    results = []
    for start, ids in documents(n_docs, batch, length):
        hidden = model(input_ids=ids.cuda()).last_hidden_state
        cls = hidden[:, 0]
        results.append(EmbeddingResult(start, cls))
        note(len(results) * hidden.nbytes)
    return results


config = BertConfig(vocab_size=8000, hidden_size=768, num_hidden_layers=2, num_attention_heads=12, intermediate_size=1536)
with torch.device("cuda"):
    bert = BertModel(config, add_pooling_layer=False).eval()

found = embed(bert)
index = torch.cat([r.vector for r in found])
print("index", tuple(index.shape))
