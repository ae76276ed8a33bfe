"""Classifies long documents by GPT-2; eager attention since somebody wanted to look at it."""
import torch
from transformers import GPT2Config, GPT2ForSequenceClassification
from note import note, blocks_of
from loop import main


def classify(batch=2, length=3072, steps=3):
    cfg = GPT2Config(n_embd=768, n_layer=6, n_head=12, vocab_size=5000, n_positions=4096, attn_implementation="eager",
                     pad_token_id=0, num_labels=4)
    net = GPT2ForSequenceClassification(cfg).cuda()
    opt = torch.optim.AdamW(net.parameters(), 2e-5)
    square = batch * 12 * length * length
    for i in range(steps):
        ids = torch.randint(1, 5000, (batch, length), device="cuda")
        out = net(input_ids=ids, labels=torch.zeros(batch, dtype=torch.long, device="cuda"))
        note(blocks_of(square * 4) + blocks_of(square))
        out.loss.backward()
        del out
        opt.step()
        opt.zero_grad()


if __name__ == "__main__":
    main(globals())
