"""vLLM's offline generation of a small Llama whose weights are made up: it measures memory, takes the rest for its KV
cache, and generates; with the argument `graphs` by compiled code in CUDA graphs. How many tokens were sampled is a value
of the device, on which its scheduler goes."""

import json
import os
import sys

import small_llama

os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
os.environ["VLLM_USE_FLASHINFER_SAMPLER"] = "0"  # it would be compiled here, with headers of cuRAND

TOKENS = 8


def main():
    from vllm import LLM, SamplingParams

    with small_llama.folder() as folder:
        llm = LLM(folder, load_format="dummy", skip_tokenizer_init=True, max_model_len=1024,
                  enforce_eager="graphs" not in sys.argv)
    sampling = SamplingParams(max_tokens=TOKENS, temperature=0, detokenize=False, ignore_eos=True)
    out = llm.generate([{"prompt_token_ids": [1, 5, 9, 12]}], sampling)
    print(json.dumps({"program": "vllm", "tokens": len(out[0].outputs[0].token_ids)}), flush=True)


if __name__ == "__main__":
    main()
