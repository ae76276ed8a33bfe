#include "kernels/nn/transformers.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/tensor/framework.h"

namespace ashlar::kernels {

absl::string_view AttentionName(Attention attention) {
  switch (attention) {
    case Attention::kEager:
      return "eager";
    case Attention::kSdpa:
      return "sdpa";
    case Attention::kFlash:
      return "flash";
  }
  return "";
}

absl::StatusOr<Attention> ParseAttention(absl::string_view name) {
  for (const Attention attention : {Attention::kEager, Attention::kSdpa, Attention::kFlash}) {
    if (name == AttentionName(attention)) return attention;
  }
  return absl::InvalidArgumentError(absl::StrCat("'", name, "' is none of eager, sdpa, flash"));
}

absl::StatusOr<Transformers> TransformersFor(absl::string_view torch_version) {
  if (const absl::StatusOr<Framework> framework = FrameworkOf(torch_version); !framework.ok()) {
    return framework.status();
  }
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(torch_version, absl::MaxSplits('.', 1));
  std::pair<int, int> version;
  (void)absl::SimpleAtoi(parts.first, &version.first);
  (void)absl::SimpleAtoi(parts.second, &version.second);
  const auto since = [&](int minor) { return version >= std::pair(2, minor); };
  Transformers out;
  out.prefers_sdpa = since(1);
  out.has_flash = since(1);
  out.gpt2_has_flash = since(3);
  out.gpt2_has_sdpa = since(4);
  out.bert_has_sdpa = since(3);
  out.roberta_has_sdpa = since(5);
  out.gpt_neo_adds_mask = since(1);
  out.llama_rotates_once = since(4);
  out.all_rotate_once = since(6);
  out.attention_is_function = since(6);
  out.casts_logits_always = !since(5);
  out.loss_is_function = since(5);
  out.loss_copies_logits = !since(7);
  return out;
}

}  // namespace ashlar::kernels
