"""Multiple-choice medical questions: which option letter would the model say next?"""
from contextlib import contextmanager

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import Qwen2Config, Qwen2ForCausalLM

device = "cuda"
LETTERS = torch.tensor([32, 33, 34, 35])


class Questions(Dataset):
    def __init__(self, n, shots=5):
        g = torch.Generator().manual_seed(17)
        self.items = []
        for _ in range(n):
            size = int(torch.randint(90 * shots, 128 * shots, (1,), generator=g))
            self.items.append((torch.randint(100, 150000, (size,), generator=g), int(torch.randint(0, 4, (1,), generator=g))))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def left_pad(batch):
    width = max(len(ids) for ids, _ in batch)
    width += -width % 64
    ids = torch.zeros(len(batch), width, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, (tokens, _) in enumerate(batch):
        ids[row, width - len(tokens):] = tokens
        mask[row, width - len(tokens):] = 1
    return {"input_ids": ids, "attention_mask": mask}, torch.tensor([a for _, a in batch])


@contextmanager
def scoring(model):
    was = model.training
    model.eval()
    try:
        with torch.inference_mode():
            yield model
    finally:
        model.train(was)


class Scorer:
    def __init__(self):
        config = Qwen2Config(vocab_size=151936, hidden_size=1024, intermediate_size=2816, num_hidden_layers=16,
                             num_attention_heads=16, num_key_value_heads=4, tie_word_embeddings=True)
        self.model = Qwen2ForCausalLM(config).to(torch.bfloat16).to(device)
        self.confusion = torch.zeros(4, 4, dtype=torch.long)

    def letters(self, batch):
        batch = {k: v.to(device, non_blocking=True) for k, v in batch.items()}
        out = self.model(**batch, use_cache=False)
        return out.logits[:, -1, LETTERS.to(device)].float().log_softmax(-1)

    def run(self, loader):
        with scoring(self.model):
            for n, (batch, answers) in enumerate(loader):
                said = self.letters(batch).argmax(-1).cpu()
                for a, b in zip(answers.tolist(), said.tolist()):
                    self.confusion[a, b] += 1
                if n % 4 == 0:
                    print(f"batch {n} width {batch['input_ids'].size(1)}")
        return self.confusion.diag().sum().item() / self.confusion.sum().item()


if __name__ == "__main__":
    scorer = Scorer()
    loader = DataLoader(Questions(128), batch_size=12, collate_fn=left_pad)
    print(f"accuracy {scorer.run(loader):.3f}")
    print(scorer.confusion)
