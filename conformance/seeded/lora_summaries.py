"""LoRA tuning of a causal language model in 16 bits, with accumulated gradients (peft and accelerate)."""
import argparse

import torch
from accelerate import Accelerator
from peft import LoraConfig, get_peft_model
from torch.utils.data import DataLoader, TensorDataset
from transformers import LlamaConfig, LlamaForCausalLM


def base():
    config = LlamaConfig(
        vocab_size=8000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=16, num_attention_heads=16,
        num_key_value_heads=4, max_position_embeddings=512, attn_implementation='sdpa', use_cache=False)
    model = LlamaForCausalLM(config).to(torch.bfloat16)
    model.gradient_checkpointing_enable({'use_reentrant': False})
    model.enable_input_require_grads()
    return model


def batches(n, length, vocab, seed, batch):
    gen = torch.Generator().manual_seed(seed)
    return DataLoader(TensorDataset(torch.randint(vocab, (n, length), generator=gen)), batch)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    total = 0.0
    for (ids,) in loader:
        total += model(input_ids=ids, labels=ids).loss.item()
    model.train()
    return total / len(loader)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--rank', type=int, default=16)
    ap.add_argument('--accumulate', type=int, default=4)
    args = ap.parse_args()
    torch.manual_seed(0)
    accelerator = Accelerator(gradient_accumulation_steps=args.accumulate)
    model = get_peft_model(base(), LoraConfig(
        r=args.rank, lora_alpha=32, target_modules=['q_proj', 'v_proj', 'o_proj'], task_type='CAUSAL_LM'))
    opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 2e-4)
    model, opt, train, valid = accelerator.prepare(
        model, opt, batches(64, 256, 8000, 0, 4), batches(16, 256, 8000, 1, 4))
    for epoch in range(2):
        model.train()
        for (ids,) in train:
            with accelerator.accumulate(model):
                loss = model(input_ids=ids, labels=ids).loss
                accelerator.backward(loss)
                opt.step()
                opt.zero_grad()
        print(f'epoch {epoch} train {loss.item():.3f} valid {evaluate(model, valid):.3f}')


if __name__ == '__main__':
    main()
