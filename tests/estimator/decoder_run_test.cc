// Dry runs of decoders: programs and descriptions agree, every family runs, and what attention and precision change is
// what was counted by hand.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/device/sim_device.h"
#include "estimator/estimate.h"
#include "estimator/program.h"
#include "gmock/gmock.h"
#include "tests/estimator/model_file.h"

namespace ashlar::estimate {
namespace {

using kernels::Attention;
using testing::AllOf;
using testing::HasSubstr;

struct DecoderFile {
  const char* name;
  const char* stem;  // of its architectures
  const char* causal = "ForCausalLM";
};
constexpr DecoderFile kFiles[] = {{"gpt2", "GPT2", "LMHeadModel"}, {"gpt2-xl", "GPT2", "LMHeadModel"},
                                  {"gpt-neo-125m", "GPTNeo"},      {"llama-2-7b", "Llama"},
                                  {"llama-3-8b", "Llama"},         {"mistral-7b", "Mistral"},
                                  {"qwen2-0.5b", "Qwen2"},         {"gemma-2b", "Gemma"}};

std::string CausalOf(const DecoderFile& file) { return absl::StrCat(file.stem, file.causal); }

// Two lists that know nothing of each other.
TEST(DecoderRunTest, DescriptionsAgreeWithPrograms) {
  for (const DecoderFile& file : kFiles) {
    for (const std::string& head :
         {std::string("Model"), std::string(file.causal), std::string("ForSequenceClassification")}) {
      const Model model = ModelOf(file.name, absl::StrCat(file.stem, head));
      SCOPED_TRACE(model.architecture);
      device::SimDeviceOptions ample;
      ample.capacity_bytes = std::uint64_t{1} << 46;
      device::SimDevice device(ample);
      core::CachingAllocator allocator(&device, *policy::ParseConf("", policy::Compat::kTorch210));
      kernels::Context context(&allocator, Stream{0}, *kernels::FrameworkOf("2.6"), *kernels::GpuNamed("A100"));
      kernels::Parameters parameters(context);
      const DryRunOptions options{.is_training = false};
      ASSERT_EQ(WhyNoProgram(model, options), "");
      const std::unique_ptr<Program> program = MakeProgram(parameters, model, options);
      ASSERT_EQ(parameters.all().size(), model.parameters.size());
      for (std::size_t i = 0; i < model.parameters.size(); ++i) {
        const kernels::Parameter& made = parameters.all()[i];
        ASSERT_EQ(made.name, model.parameters[i].name);
        const std::vector<std::int64_t> sizes(made.tensor.sizes().begin(), made.tensor.sizes().end());
        ASSERT_EQ(sizes, model.parameters[i].sizes) << made.name;
      }
    }
  }
}

DryRun DecoderRunMustRun(const Model& model, const DryRunOptions& options) {
  const absl::StatusOr<DryRun> run = RunDry(model, options, device::AddressOrder::kAscending);
  EXPECT_TRUE(run.ok()) << run.status();
  return run.ok() ? *run : DryRun();
}

TEST(DecoderRunTest, EveryFamilyTrainsAndInfers) {
  for (const DecoderFile& file : kFiles) {
    SCOPED_TRACE(file.name);
    const Model model = ModelOf(file.name, CausalOf(file));
    const auto parameters = static_cast<std::uint64_t>(model.count());
    DryRunOptions options{.steps = 2, .batch = 2, .tokens = 64};
    const DryRun training = DecoderRunMustRun(model, options);
    EXPECT_EQ(training.parts.total(), training.peak_requested_bytes);
    EXPECT_EQ(training.parameters, model.count());
    EXPECT_GE(training.peak_requested_bytes, 16 * parameters);  // weights, gradients, two states
    options.is_checkpointed = true;
    EXPECT_LE(DecoderRunMustRun(model, options).peak_requested_bytes, training.peak_requested_bytes);
    options.is_training = false;
    const DryRun inference = DecoderRunMustRun(model, options);
    EXPECT_EQ(inference.parts.gradients + inference.parts.optimizer + inference.parts.saved_activations, 0u);
    EXPECT_GE(inference.parts.weights, 4 * parameters);
    EXPECT_LT(inference.peak_requested_bytes, training.peak_requested_bytes / 3);
    options.precision = Precision::kBFloat16Pure;
    const DryRun half = DecoderRunMustRun(model, options);
    EXPECT_EQ(2 * (inference.parts.weights - half.parts.weights), 4 * parameters);
  }
}

// Weights and both states of two bytes each, and a float buffer of rotary frequencies: head size / 2.
TEST(DecoderRunTest, PureHalfIsHalf) {
  const Model model = ModelOf("qwen2-0.5b");
  const auto parameters = static_cast<std::uint64_t>(model.count());
  DryRunOptions options{.steps = 2, .batch = 1, .tokens = 16, .precision = Precision::kBFloat16Pure};
  options.optimizer = "adamw-fused";
  const DryRun run = DecoderRunMustRun(model, options);
  EXPECT_EQ(run.parts.weights, 2 * parameters + 896 / 14 / 2 * 4);
  EXPECT_EQ(run.parts.optimizer, 4 * parameters + 4 * model.parameters.size());  // a step of each on the device
  const ModelStates states = TrainingStates(model, Precision::kBFloat16Pure, "adamw");
  EXPECT_EQ(states.total(), 8 * parameters);
}

// Eager attention of GPT-2 keeps 9 bytes a score, and the 4 of a divisor; the memory-efficient kernel a sum a row. Its
// output is by token in memory, so that the projection takes it as it is: of either there is one context.
TEST(DecoderRunTest, WhatFusedAttentionSaves) {
  const Model model = ModelOf("gpt2");
  DryRunOptions options{.steps = 1, .batch = 4, .tokens = 256, .attention = Attention::kEager};
  options.optimizer = "sgd";  // without states the peak lies where all is kept
  const DryRun eager = DecoderRunMustRun(model, options);
  options.attention = Attention::kSdpa;
  const DryRun fused = DecoderRunMustRun(model, options);
  constexpr std::uint64_t kScores = 4 * 12 * 256 * 256, kTokens = 4 * 256, kHeads = 12;
  EXPECT_EQ(eager.parts.saved_activations - fused.parts.saved_activations,
            12 * (9 * kScores + 4 - 4 * kTokens * kHeads));
}

TEST(DecoderRunTest, AttentionFollowsTheVersion) {
  const auto of = [](const char* file, const char* torch) {
    return DefaultAttention(ModelOf(file), {.torch_version = torch});
  };
  EXPECT_EQ(of("llama-2-7b", "2.0"), Attention::kEager);
  EXPECT_EQ(of("llama-2-7b", "2.1"), Attention::kSdpa);
  EXPECT_EQ(of("gpt2", "2.3"), Attention::kEager);
  EXPECT_EQ(of("gpt2", "2.4"), Attention::kSdpa);
  EXPECT_EQ(of("gpt-neo-125m", "2.6"), Attention::kEager);
  EXPECT_EQ(of("bert-base-uncased", "2.2"), Attention::kEager);
  EXPECT_EQ(of("bert-base-uncased", "2.3"), Attention::kSdpa);
  EXPECT_EQ(of("roberta-base", "2.4"), Attention::kEager);
  EXPECT_EQ(of("roberta-base", "2.5"), Attention::kSdpa);
  EXPECT_EQ(of("distilbert-base-uncased", "2.5"), Attention::kSdpa);
  EXPECT_EQ(of("t5-small", "2.6"), std::nullopt);
  const absl::StatusOr<Estimate> estimate = EstimateMemory(ModelOf("gpt2"), {.run = {.steps = 0}});
  EXPECT_EQ(estimate->run.attention, Attention::kSdpa);
}

TEST(DecoderRunTest, WhatCannotRunSaysWhy) {
  const Model llama = ModelOf("llama-2-7b");
  EXPECT_THAT(WhyNoProgram(llama, {.attention = Attention::kFlash}), HasSubstr("--precision bf16"));
  EXPECT_THAT(WhyNoProgram(llama, {.precision = Precision::kFloat16Mixed, .attention = Attention::kFlash, .gpu = "T4"}),
              HasSubstr("does not run on a T4"));
  DryRunOptions older{.precision = Precision::kBFloat16Pure, .attention = Attention::kFlash, .torch_version = "2.0"};
  EXPECT_EQ(WhyNoProgram(llama, older),
            "transformers of torch 2.0 had no FlashAttention 2: give --attention eager, or --torch 2.1 or later");
  older.torch_version = "2.2";
  EXPECT_EQ(WhyNoProgram(llama, older), "");
  EXPECT_EQ(
      WhyNoProgram(ModelOf("gpt2"), older),
      "transformers of torch 2.2 had no FlashAttention 2 for GPT-2: give --attention eager, or --torch 2.3 or later");
  older.torch_version = "2.3";
  EXPECT_EQ(WhyNoProgram(ModelOf("gpt2"), older), "");
  EXPECT_THAT(WhyNoProgram(llama, {.precision = Precision::kBFloat16Pure, .optimizer = "adafactor"}),
              HasSubstr("adafactor"));
  EXPECT_THAT(WhyNoProgram(ModelOf("gpt-neo-125m"), {.attention = Attention::kSdpa}),
              HasSubstr("--attention eager or flash"));
  const Model bert = ModelOf("bert-base-uncased", "BertForSequenceClassification");
  EXPECT_EQ(WhyNoProgram(bert, {.precision = Precision::kBFloat16Pure}), "");
  EXPECT_THAT(WhyNoProgram(ModelOf("t5-small"), {.precision = Precision::kBFloat16Pure}),
              HasSubstr("pure half precision"));
  EXPECT_THAT(WhyNoProgram(bert, {.precision = Precision::kFloat16Pure, .optimizer = "adafactor"}),
              HasSubstr("adafactor"));
  DryRunOptions padded{.precision = Precision::kBFloat16Pure, .attention = Attention::kFlash};
  EXPECT_EQ(WhyNoProgram(llama, padded), "");
  padded.is_padded = true;
  EXPECT_EQ(WhyNoProgram(llama, padded), "");
  EXPECT_THAT(WhyNoProgram(ModelOf("tabformer-small"), {.is_padded = true}), HasSubstr("all of one length"));
  EXPECT_EQ(WhyNoProgram(bert, {.attention = Attention::kFlash}),
            "BERT has no flash_attn in the transformers followed here: --attention sdpa");
  EXPECT_EQ(WhyNoProgram(ModelOf("roberta-base"), {.attention = Attention::kFlash}),
            "RoBERTa has no flash_attn in the transformers followed here: --attention sdpa");
  const Model distilbert = ModelOf("distilbert-base-uncased");
  EXPECT_THAT(WhyNoProgram(distilbert, {.attention = Attention::kFlash}), HasSubstr("no fp32"));
  EXPECT_EQ(WhyNoProgram(distilbert, padded), "");
  EXPECT_THAT(WhyNoProgram(ModelOf("t5-small"), {.attention = Attention::kSdpa}),
              HasSubstr("T5 has no fused attention"));
  EXPECT_THAT(WhyNoProgram(ModelOf("tabformer-small"), {.attention = Attention::kSdpa}),
              HasSubstr("--attention eager"));
  const absl::StatusOr<Model> relu = ReadModel(R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
      "hidden_act": "relu"})",
                                               {});
  EXPECT_THAT(WhyNoProgram(*relu, {}), HasSubstr("'relu'"));
}

}  // namespace
}  // namespace ashlar::estimate
