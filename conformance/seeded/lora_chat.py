"""LoRA on a Llama-like model in bf16, gradient checkpointing, short chats."""
import torch
from peft import LoraConfig, get_peft_model
from torch.utils.data import DataLoader, Dataset
from transformers import LlamaConfig, LlamaForCausalLM

VOCAB = 8000


class Chats(Dataset):
    def __init__(self, count):
        g = torch.Generator().manual_seed(0)
        self.rows = [torch.randint(3, VOCAB, (int(torch.randint(60, 320, (), generator=g)),), generator=g)
                     for _ in range(count)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    longest = max(map(len, rows))
    longest = -(-longest // 64) * 64
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    labels = torch.full_like(ids, -100)
    mask = torch.zeros_like(ids)
    for i, row in enumerate(rows):
        ids[i, :len(row)] = row
        labels[i, len(row) // 2:len(row)] = row[len(row) // 2:]
        mask[i, :len(row)] = 1
    return {'input_ids': ids, 'labels': labels, 'attention_mask': mask}


def main():
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=VOCAB, hidden_size=1536, intermediate_size=4096, num_hidden_layers=16,
                         num_attention_heads=12, num_key_value_heads=4, attn_implementation='sdpa', use_cache=False)
    model = LlamaForCausalLM(config).to(torch.bfloat16).to('cuda')
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={'use_reentrant': False})
    model.enable_input_require_grads()
    model = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, lora_dropout=0.05,
                                             target_modules=['q_proj', 'v_proj', 'up_proj', 'down_proj']))
    model.print_trainable_parameters()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=2e-4)
    loader = DataLoader(Chats(8 * 16), batch_size=8, shuffle=True, collate_fn=collate)
    model.train()
    for step, batch in enumerate(loader):
        batch = {k: v.to('cuda') for k, v in batch.items()}
        loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 4 == 0:
            print(step, f'{loss.item():.4f}', flush=True)


if __name__ == '__main__':
    main()
