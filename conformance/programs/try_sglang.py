"""SGLang's offline engine over a small Llama whose weights are made up: it measures memory, takes the rest for its KV cache, and
serves a request. Its scheduler is a process of its own, and goes on the tokens that were sampled: values of the device."""

import json
import os
import tempfile

MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 1024,
    "intermediate_size": 2816,
    "num_hidden_layers": 8,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "vocab_size": 32000,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5,
    "torch_dtype": "bfloat16",
    "hidden_act": "silu",
}
TOKENS = 8


def main():
    import sglang

    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "config.json"), "w") as out:
            json.dump(MODEL, out)
        engine = sglang.Engine(model_path=folder, load_format="dummy", skip_tokenizer_init=True, context_length=1024,
                               attention_backend="triton", sampling_backend="pytorch", disable_cuda_graph=True,
                               random_seed=1)
        out = engine.generate(input_ids=[1, 5, 9, 12],
                              sampling_params={"max_new_tokens": TOKENS, "temperature": 0, "ignore_eos": True})
        print(json.dumps({"program": "sglang", "tokens": len(out["output_ids"])}), flush=True)
        engine.shutdown()


if __name__ == "__main__":
    main()
