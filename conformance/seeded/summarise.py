# Summaries with a 7B Llama in half precision
import sys
import torch
from transformers import LlamaConfig, LlamaForCausalLM

SIZES = {
    "1b": dict(hidden_size=2048, intermediate_size=5632, num_hidden_layers=22, num_attention_heads=32, num_key_value_heads=4),
    "7b": dict(hidden_size=4096, intermediate_size=11008, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=32),
}


def load(size):
    config = LlamaConfig(vocab_size=32_000, max_position_embeddings=4096, torch_dtype="float16", **SIZES[size])
    torch.set_default_dtype(torch.float16)
    try:
        with torch.device("cuda"):
            model = LlamaForCausalLM(config)
    finally:
        torch.set_default_dtype(torch.float32)
    return model.eval()


def documents(n):
    for i in range(n):
        yield torch.randint(3, 32_000, (1, 900 + 40 * i), device="cuda")


def summarise(model, ids, new_tokens=24):
    with torch.inference_mode():
        out = model(input_ids=ids, use_cache=True, logits_to_keep=1)
        token = out.logits.argmax(-1)
        produced = [token]
        for _ in range(new_tokens):
            out = model(input_ids=token, past_key_values=out.past_key_values, use_cache=True)
            token = out.logits[:, -1:].argmax(-1)
            produced.append(token)
    return torch.cat(produced, 1).cpu()


def main():
    size = sys.argv[1] if len(sys.argv) > 1 else "7b"
    model = load(size)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e9:.2f} B parameters", file=sys.stderr)
    for ids in documents(3):
        print(ids.shape[1], "->", summarise(model, ids).shape[1])


if __name__ == "__main__":
    main()
