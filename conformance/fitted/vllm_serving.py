"""A small Llama in vLLM, whose longest request nearly fills the cache that the card leaves; its weights are made up."""

import json
import os
import tempfile

os.environ["VLLM_USE_FLASHINFER_SAMPLER"] = "0"  # it would be compiled, with headers of cuRAND

MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 1024,
    "intermediate_size": 2816,
    "num_hidden_layers": 8,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "vocab_size": 32000,
    "max_position_embeddings": 1 << 20,
    "rms_norm_eps": 1e-5,
    "torch_dtype": "bfloat16",
    "hidden_act": "silu",
}


def main():
    from vllm import LLM, SamplingParams

    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "config.json"), "w") as out:
            json.dump(MODEL, out)
        llm = LLM(folder, load_format="dummy", skip_tokenizer_init=True, enforce_eager=True, max_model_len=950272)
    sampling = SamplingParams(max_tokens=8, temperature=0, detokenize=False, ignore_eos=True)
    out = llm.generate([{"prompt_token_ids": [1, 5, 9, 12]}], sampling)
    print("tokens", len(out[0].outputs[0].token_ids))


if __name__ == "__main__":
    main()
