// The switches between versions of transformers that change what its models allocate.
//
//   Transformers versions = *TransformersFor("2.14", "4.57.1");
//
// Where none is given, a version of PyTorch stands for the transformers of its time: 2.1 for 4.37, 2.2 for 4.38, 2.3
// for 4.41, 2.4 for 4.44, 2.5 for 4.46, 2.6 for 4.48, 2.7 for 4.51, 2.8 for 4.55, 2.9 and later for 4.57; earlier ones
// for 4.3x. The defaults of the switches are 4.48's.
#ifndef ASHLAR_ESTIMATOR_MODELS_TRANSFORMERS_H_
#define ASHLAR_ESTIMATOR_MODELS_TRANSFORMERS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ashlar::kernels {

// attn_implementation: all scores in plain Python, torch's scaled dot-product attention, or the package flash_attn.
enum class Attention : std::uint8_t { kEager, kSdpa, kFlash };
absl::string_view AttentionName(Attention attention);  // "eager", "sdpa", "flash"
// Errors list the names.
absl::StatusOr<Attention> ParseAttention(absl::string_view name);

struct Transformers {
  bool prefers_sdpa = true;           // where a family has it: from 4.36 with torch 2.1.1
  bool has_flash = true;              // flash_attn 2: llama and its kin 4.34, gpt_neo and distilbert 4.36 (26489)
  bool gpt2_has_flash = true;         // 4.40 (29226)
  bool gpt2_has_sdpa = true;          // 4.42
  bool bert_has_sdpa = true;          // 4.41 (pull request 28802)
  bool roberta_has_sdpa = true;       // 4.45 (30510)
  bool distilbert_has_sdpa = true;    // 4.46
  bool gpt_neo_adds_mask = true;      // 4.37: a causal mask is added to scores that are masked already
  bool llama_rotates_once = true;     // 4.43: cosines and sines are made by the model, in the hidden states' dtype
  bool all_rotate_once = true;        // 4.48: in qwen2, mistral and gemma too
  bool rotary_scales = false;         // 4.51: the tables are a product with a factor (of 1)
  bool attention_is_function = true;  // 4.48: eager returns its weights to the layer
  bool sdpa_copies_inputs = true;     // 4.48 to 4.55: sdpa gets contiguous copies without a mask too
  bool sdpa_shares_keys = false;      // 4.54, with torch 2.5 and without a mask: keys are not repeated (enable_gqa)
  bool packs_sequences = false;  // 4.53, with torch 2.6: without a cache a mask tells packed samples (masking_utils.py)
  bool cache_joins = false;      // 4.56: keys and values are joined to empty ones, a copy (cache_utils.py)
  bool gpt_neo_counts_late = true;   // 4.48: positions are made behind the word embeddings
  bool t5_counts_positions = true;   // 4.48: T5 has cache positions, a causal mask of theirs, and caches of its own
  bool gpt2_counts_late = false;     // 4.52: positions of gpt2 are made there too
  bool casts_logits_always = false;  // up to 4.45: to float, also without labels
  bool loss_is_function = true;      // 4.46: to float in the loss, for gpt2 too
  bool loss_copies_logits = true;    // up to 4.50: without the last token, where labels are shifted now
};

// Of the versions of PyTorch, "2.6", and of transformers, "4.57.1"; empty: that of PyTorch's time. Errors are
// FrameworkOf's, or say which versions of transformers are known.
absl::StatusOr<Transformers> TransformersFor(absl::string_view torch_version,
                                             absl::string_view transformers_version = {});

}  // namespace ashlar::kernels

#endif  // ASHLAR_ESTIMATOR_MODELS_TRANSFORMERS_H_
