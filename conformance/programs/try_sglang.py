"""SGLang's offline engine over a small Llama whose weights are made up: it measures memory, takes the rest for its KV cache, and
serves a request. Its scheduler is a process of its own, and goes on the tokens that were sampled: values of the device."""

import json

import small_llama

TOKENS = 8


def main():
    import sglang

    with small_llama.folder() as folder:
        engine = sglang.Engine(model_path=folder, load_format="dummy", skip_tokenizer_init=True, context_length=1024,
                               attention_backend="triton", sampling_backend="pytorch", disable_cuda_graph=True,
                               random_seed=1)
        out = engine.generate(input_ids=[1, 5, 9, 12],
                              sampling_params={"max_new_tokens": TOKENS, "temperature": 0, "ignore_eos": True})
        print(json.dumps({"program": "sglang", "tokens": len(out["output_ids"])}), flush=True)
        engine.shutdown()


if __name__ == "__main__":
    main()
