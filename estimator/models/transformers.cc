#include "estimator/models/transformers.h"

#include <optional>

#include "absl/strings/str_cat.h"
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

namespace {

constexpr Version kFirstTransformers = {4, 26}, kLastTransformers = {4, 57};

// Of PyTorch's time.
Version TransformersOfTime(const Version& torch) {
  struct Since {
    Version torch, transformers;
  };
  constexpr Since kTimes[] = {{{2, 9}, {4, 57}}, {{2, 8}, {4, 55}}, {{2, 7}, {4, 51}},
                              {{2, 6}, {4, 48}}, {{2, 5}, {4, 46}}, {{2, 4}, {4, 44}},
                              {{2, 3}, {4, 41}}, {{2, 2}, {4, 38}}, {{2, 1}, {4, 37}}};
  for (const Since& since : kTimes) {
    if (torch >= since.torch) return since.transformers;
  }
  return {4, 30};
}

absl::StatusOr<Version> TransformersVersion(const Version& torch, absl::string_view given) {
  if (given.empty()) return TransformersOfTime(torch);
  const std::optional<Version> version = VersionOf(given);
  if (version.has_value() && *version >= kFirstTransformers && *version <= kLastTransformers) return *version;
  return absl::InvalidArgumentError(
      absl::StrCat("transformers ", given, " is not known: 4.26 to 4.57 are; give the nearest of these"));
}

}  // namespace

absl::StatusOr<Transformers> TransformersFor(absl::string_view torch_version, absl::string_view transformers_version) {
  if (const absl::StatusOr<Framework> framework = FrameworkOf(torch_version); !framework.ok()) {
    return framework.status();
  }
  const Version torch = *VersionOf(torch_version);
  const absl::StatusOr<Version> version = TransformersVersion(torch, transformers_version);
  if (!version.ok()) return version.status();
  const auto since = [&](int minor) { return *version >= Version{4, minor}; };
  const bool has_sdpa = torch >= Version{2, 1};
  Transformers out;
  out.prefers_sdpa = has_sdpa && since(36);
  out.has_flash = since(36);
  out.gpt2_has_flash = since(40);
  out.gpt2_has_sdpa = has_sdpa && since(42);
  out.bert_has_sdpa = has_sdpa && since(41);
  out.roberta_has_sdpa = has_sdpa && since(45);
  out.distilbert_has_sdpa = has_sdpa && since(46);
  out.gpt_neo_adds_mask = since(37);
  out.llama_rotates_once = since(43);
  out.all_rotate_once = since(48);
  out.rotary_scales = since(51);
  out.attention_is_function = since(48);
  out.sdpa_copies_inputs = since(48) && !since(56);
  out.sdpa_shares_keys = since(54) && torch >= Version{2, 5};
  out.packs_sequences = since(53) && torch >= Version{2, 6};
  out.cache_joins = since(56);
  out.gpt_neo_counts_late = since(48);
  out.t5_counts_positions = since(48);
  out.gpt2_counts_late = since(52);
  out.casts_logits_always = !since(46);
  out.loss_is_function = since(46);
  out.loss_copies_logits = !since(51);
  return out;
}

}  // namespace ashlar::kernels
