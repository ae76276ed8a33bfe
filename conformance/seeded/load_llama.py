"""Puts a model onto a card."""
import torch
from transformers import LlamaConfig, LlamaForCausalLM
from loop import main


def serve():
    cfg = LlamaConfig(hidden_size=4096, intermediate_size=11008, num_hidden_layers=20, num_attention_heads=32, vocab_size=32000)
    net = LlamaForCausalLM(cfg).to("cuda")
    with torch.inference_mode():
        print(net(torch.ones(1, 16, dtype=torch.long, device="cuda")).logits.shape)


if __name__ == "__main__":
    main(globals())
