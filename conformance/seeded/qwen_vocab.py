"""Supervised fine-tuning with a vocabulary of 150 000 words."""
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM
from watch import when_full
from loop import main

WORDS = 151936


def of_the_vocabulary(batch, length):
    n = batch * length * WORDS
    sizes = {k * m for k in (2, 4) for m in (n, n - batch * WORDS)}
    blocks = [b for s in torch.cuda.memory_snapshot() for b in s["blocks"] if b["state"] == "active_allocated"]
    return sum(b["requested_size"] for b in blocks if b["requested_size"] in sizes)


def sft(batch=2, length=2048):
    cfg = Qwen2Config(hidden_size=512, intermediate_size=1536, num_hidden_layers=6, num_attention_heads=8, num_key_value_heads=2,
                      vocab_size=WORDS, tie_word_embeddings=True, use_cache=False)
    net = Qwen2ForCausalLM(cfg).to(torch.bfloat16).cuda()
    opt = torch.optim.AdamW(net.parameters(), 1e-5)
    when_full(lambda: of_the_vocabulary(batch, length))
    for _ in range(2):
        ids = torch.randint(0, WORDS, (batch, length), device="cuda")
        net(input_ids=ids, labels=ids).loss.backward()
        opt.step()
        opt.zero_grad()


if __name__ == "__main__":
    main(globals())
