"""Qwen3.5's text models of 0.8 and 2 billion weights, in bf16 on the device, with what trains of them."""

import torch
from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig

WIDTHS = {"0.8B": (1024, 3584), "2B": (2048, 6144)}


def model_of(size):
    width, inner = WIDTHS[size]
    config = Qwen3_5TextConfig(
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=24,
        num_attention_heads=8,
        num_key_value_heads=2,
        linear_num_key_heads=16,
        linear_num_value_heads=16,
        tie_word_embeddings=True,
        use_cache=False,
    )
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = Qwen3_5ForCausalLM(config)
    torch.set_default_dtype(torch.float32)
    return model


def with_lora(model):
    from peft import LoraConfig, get_peft_model

    return get_peft_model(model, LoraConfig(r=8, lora_alpha=16, target_modules="all-linear", task_type="CAUSAL_LM"))


def batch_of(length, seed):
    """One sample; no loss of its first half."""
    tokens = torch.randint(100, 248320, (1, length), generator=torch.Generator().manual_seed(seed))
    labels = tokens.clone()
    labels[:, : length // 2] = -100
    positions = torch.arange(length).view(1, 1, length).expand(3, 1, length).clone()
    return {"input_ids": tokens.cuda(), "labels": labels.cuda(), "position_ids": positions.cuda(), "use_cache": False}


def step(model, batches):
    """The peak in bytes from the first forward on. Outputs live as long as the step, as where a script keeps them."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-5, foreach=False)
    torch.cuda.reset_peak_memory_stats()
    for i, batch in enumerate(batches):
        outputs = model(**batch)
        loss = outputs.loss / len(batches)
        loss.backward()
        loss.item()
        if i + 1 < len(batches):
            del outputs, loss
    optimizer.step()
    return torch.cuda.max_memory_allocated()
