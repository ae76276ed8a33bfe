"""Full fine-tuning of an OPT-like model."""
import torch
from transformers import OPTConfig, OPTForCausalLM
from note import note, size_of
from loop import main


def full_finetune(batch=2, length=256, steps=3):
    cfg = OPTConfig(hidden_size=1280, ffn_dim=5120, num_hidden_layers=16, num_attention_heads=20, vocab_size=16000,
                    word_embed_proj_dim=1280, max_position_embeddings=1024)
    net = OPTForCausalLM(cfg).cuda()
    opt = torch.optim.AdamW(net.parameters(), 1e-5)
    note(2 * size_of(list(net.parameters())))
    for _ in range(steps):
        ids = torch.randint(4, 16000, (batch, length), device="cuda")
        loss = net(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        opt.zero_grad()


if __name__ == "__main__":
    main(globals())
