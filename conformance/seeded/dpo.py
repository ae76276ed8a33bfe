"""Preference tuning of a small Llama by LoRA."""
import copy
import torch
import torch.nn.functional as F
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM
from note import note, size_of_model
from loop import main


def logps(model, ids, prompt):
    logits = model(input_ids=ids).logits[:, :-1]
    picked = torch.gather(logits.log_softmax(-1), 2, ids[:, 1:, None]).squeeze(-1)
    return picked[:, prompt:].sum(-1)


def pairs(batch, length):
    return torch.randint(0, 8000, (batch, length), device="cuda"), torch.randint(0, 8000, (batch, length), device="cuda")


def prefer(steps=4, beta=0.1):
    cfg = LlamaConfig(hidden_size=1536, intermediate_size=4096, num_hidden_layers=20, num_attention_heads=12,
                      num_key_value_heads=4, vocab_size=8000)
    base = LlamaForCausalLM(cfg).to(torch.bfloat16).cuda()
    anchor = copy.deepcopy(base).eval().requires_grad_(False)
    note(size_of_model(anchor))
    policy = get_peft_model(base, LoraConfig(r=16, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
    opt = torch.optim.AdamW([p for p in policy.parameters() if p.requires_grad], 1e-5)
    for _ in range(steps):
        good, bad = pairs(1, 192)
        with torch.no_grad():
            rg, rb = logps(anchor, good, 64), logps(anchor, bad, 64)
        pg, pb = logps(policy, good, 64), logps(policy, bad, 64)
        loss = -F.logsigmoid(beta * ((pg - rg) - (pb - rb))).mean()
        loss.backward()
        opt.step()
        opt.zero_grad()


if __name__ == "__main__":
    main(globals())
