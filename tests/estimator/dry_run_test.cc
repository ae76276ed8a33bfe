// The dry run behind the estimate: measured rows, a posted failure, sums, and the parts at the peak against closed
// forms.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "allocator/core/caching_allocator.h"
#include "allocator/device/sim_device.h"
#include "estimator/estimate.h"
#include "estimator/model.h"
#include "estimator/program.h"
#include "gmock/gmock.h"
#include "tests/documented_row.h"
#include "tests/estimator/model_file.h"

namespace ashlar::estimate {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

constexpr char kClassifier[] = "BertForSequenceClassification";

std::string DryRunErrorOf(const EstimateOptions& options) {
  const absl::Status status = EstimateMemory(ModelOf("bert-base-uncased", kClassifier), options).status();
  EXPECT_FALSE(status.ok());
  return std::string(status.message());
}

// The description's parameters are those that the program makes: two lists that know nothing of each other.
void ExpectSameParameters(const Model& model, const kernels::Parameters& parameters) {
  ASSERT_EQ(parameters.all().size(), model.parameters.size());
  for (std::size_t i = 0; i < model.parameters.size(); ++i) {
    const kernels::Parameter& made = parameters.all()[i];
    EXPECT_EQ(made.name, model.parameters[i].name);
    const std::vector<std::int64_t> sizes(made.tensor.sizes().begin(), made.tensor.sizes().end());
    EXPECT_EQ(sizes, model.parameters[i].sizes) << made.name;
  }
}

struct MeasuredContext {
  device::SimDevice device{{}};
  core::CachingAllocator allocator{&device, *policy::ParseConf("", policy::Compat::kTorch210)};
  kernels::Context context{&allocator, Stream{0}, *kernels::FrameworkOf("2.6"), *kernels::GpuNamed("A100")};
};

struct Described {
  const char* file;
  std::vector<const char*> architectures;
};

TEST(DryRunTest, DescriptionsAgreeWithPrograms) {
  const Described all[] = {
      {"bert-base-uncased",
       {"BertModel", kClassifier, "BertForMaskedLM", "BertLMHeadModel", "BertForPreTraining",
        "BertForNextSentencePrediction", "BertForMultipleChoice", "BertForTokenClassification",
        "BertForQuestionAnswering"}},
      {"roberta-base",
       {"RobertaModel", "RobertaForSequenceClassification", "RobertaForMaskedLM", "RobertaForCausalLM",
        "RobertaForTokenClassification", "RobertaForQuestionAnswering"}},
      {"xlm-roberta-base", {"XLMRobertaModel", "XLMRobertaForSequenceClassification", "XLMRobertaForMaskedLM"}},
      {"distilbert-base-uncased",
       {"DistilBertModel", "DistilBertForSequenceClassification", "DistilBertForMaskedLM",
        "DistilBertForTokenClassification", "DistilBertForQuestionAnswering"}},
      {"t5-small", {"T5ForConditionalGeneration", "T5Model", "T5EncoderModel"}},
      {"flan-t5-base", {"T5ForConditionalGeneration"}},
      {"tabformer-small", {""}}};
  for (const Described& described : all) {
    for (const char* architecture : described.architectures) {
      for (ModelSwitches switches : {ModelSwitches{.layers = 2}, ModelSwitches{.layers = 1, .width = 1536}}) {
        if (described.file == std::string("t5-small") && switches.width.has_value()) switches.shares_embeddings = false;
        SCOPED_TRACE(architecture);
        const absl::StatusOr<Model> model = SwitchedModel(ModelOf(described.file, architecture), switches);
        ASSERT_TRUE(model.ok()) << model.status();
        MeasuredContext measured;
        kernels::Parameters parameters(measured.context);
        const DryRunOptions options;
        ASSERT_EQ(WhyNoProgram(*model, options), "");
        const std::unique_ptr<Program> program = MakeProgram(parameters, *model, options);
        ExpectSameParameters(*model, parameters);
      }
    }
  }
}

// A run to its end: live bytes are weights, gradients, batch and libraries alone once the loss is gone.
TEST(DryRunTest, EveryHeadRuns) {
  for (const auto& [file, architecture] :
       {std::pair("bert-base-uncased", "BertModel"), std::pair("bert-base-uncased", "BertForPreTraining"),
        std::pair("bert-base-uncased", "BertLMHeadModel"), std::pair("bert-base-uncased", "BertForMultipleChoice"),
        std::pair("bert-base-uncased", "BertForQuestionAnswering"), std::pair("roberta-base", "RobertaForMaskedLM"),
        std::pair("roberta-base", "RobertaForSequenceClassification"),
        std::pair("t5-small", "T5ForConditionalGeneration"), std::pair("flan-t5-base", "T5ForConditionalGeneration"),
        std::pair("t5-small", "T5EncoderModel"), std::pair("tabformer-small", ""),
        std::pair("distilbert-base-uncased", "DistilBertModel"),
        std::pair("distilbert-base-uncased", "DistilBertForMaskedLM"),
        std::pair("distilbert-base-uncased", "DistilBertForQuestionAnswering")}) {
    SCOPED_TRACE(architecture);
    for (const bool is_training : {true, false}) {
      for (const bool is_checkpointed : {false, true}) {
        EstimateOptions options;
        options.run.batch = 2;
        options.run.steps = 2;
        options.run.is_training = is_training;
        options.run.is_checkpointed = is_checkpointed;
        options.run.torch_version = "1.10";  // keeps gradients
        options.run.switches.layers = 2;
        const Model model = ModelOf(file, architecture);
        if (!model.tokens_a_sample.has_value()) options.tokens = 64;
        const Estimate estimate = MustEstimate(model, options);
        ASSERT_TRUE(estimate.ascending.has_value());
        const DryRun& run = *estimate.ascending;
        EXPECT_TRUE(run.fits);
        EXPECT_EQ(run.parameters, estimate.model.count());
        EXPECT_EQ(run.parts.total(), run.peak_requested_bytes);
        EXPECT_EQ(run.parts.gradients + run.parts.optimizer,
                  estimate.states.front().gradients_bytes + estimate.states.front().optimizer_bytes);
      }
    }
  }
}

// NVML on a V100, Hugging Face's "Performance and Scalability" (2022).
struct Row {
  const char* name;
  const char* documented;  // the first cell of its row in docs/guide/estimate_accuracy.md
  std::uint64_t measured_mib;
  std::int64_t steps = 3;
  std::int64_t batch = 4;
  std::int64_t accumulation = 1;
  bool is_checkpointed = false;
  Precision precision = Precision::kFloat32;
  const char* optimizer = "adamw-hf";
};

std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }

class MeasuredRow : public testing::TestWithParam<Row> {};

TEST_P(MeasuredRow, IsWithinOnePercent) {
  const Row& row = GetParam();
  EstimateOptions options;
  options.run.steps = row.steps;
  options.run.batch = row.batch;
  options.run.accumulation = row.accumulation;
  options.run.is_checkpointed = row.is_checkpointed;
  options.run.precision = row.precision;
  options.run.optimizer = row.optimizer;
  options.run.torch_version = "1.10";
  options.device = "v100-16gb";
  const Estimate estimate = MustEstimate(ModelOf("bert-large-uncased", kClassifier), options);
  for (const std::optional<DryRun>* run : {&estimate.ascending, &estimate.descending}) {
    ASSERT_TRUE(run->has_value());
    const double shown_mib = static_cast<double>(estimate.DeviceBytes(**run)) / kMiB;
    EXPECT_NEAR(shown_mib, static_cast<double>(row.measured_mib), 0.01 * static_cast<double>(row.measured_mib));
    EXPECT_TRUE((*run)->fits);
    EXPECT_EQ((*run)->parts.total(), (*run)->peak_requested_bytes);
    EXPECT_LE((*run)->peak_requested_bytes, (*run)->peak_allocated_bytes);
    EXPECT_LE((*run)->peak_allocated_bytes, (*run)->peak_reserved_bytes);
    EXPECT_EQ((*run)->parameters, estimate.model.count());
  }
  EXPECT_EQ(estimate.ascending->peak_allocated_bytes, estimate.descending->peak_allocated_bytes);
  EXPECT_THAT(tests::DocumentedRow(row.documented),
              EndsWith(tests::ErrorCells(row.measured_mib, estimate.DeviceBytes(*estimate.ascending) / kMiB,
                                         estimate.DeviceBytes(*estimate.descending) / kMiB)));
}

INSTANTIATE_TEST_SUITE_P(
    , MeasuredRow,
    testing::Values(
        Row{.name = "Weights", .documented = "weights alone", .measured_mib = 2631, .steps = 0},
        Row{.name = "AdamW", .documented = "AdamW, batch 4", .measured_mib = 14949},
        Row{.name = "Accumulation",
            .documented = "batch 1, 4 batches a step",
            .measured_mib = 8681,
            .batch = 1,
            .accumulation = 4},
        Row{.name = "Checkpointing",
            .documented = "and checkpointing",
            .measured_mib = 6775,
            .batch = 1,
            .accumulation = 4,
            .is_checkpointed = true},
        Row{.name = "Half",
            .documented = "batch 4, autocast fp16",
            .measured_mib = 13939,
            .precision = Precision::kFloat16Mixed},
        Row{.name = "HalfCheckpointing",
            .documented = "batch 1, 4 a step, checkpointing, fp16",
            .measured_mib = 7275,
            .batch = 1,
            .accumulation = 4,
            .is_checkpointed = true,
            .precision = Precision::kFloat16Mixed},
        Row{.name = "Adafactor", .documented = "Adafactor, batch 4", .measured_mib = 12295, .optimizer = "adafactor"},
        Row{.name = "HalfCheckpointingAdafactor",
            .documented = "batch 1, 4 a step, checkpointing, fp16, Adafactor",
            .measured_mib = 4847,
            .batch = 1,
            .accumulation = 4,
            .is_checkpointed = true,
            .precision = Precision::kFloat16Mixed,
            .optimizer = "adafactor"},
        Row{.name = "AdamW8Bit",
            .documented = "8-bit AdamW, batch 4",
            .measured_mib = 13085,
            .optimizer = "adamw-8bit"}),
    [](const testing::TestParamInfo<Row>& row) { return row.param.name; });

// A layer of BERT keeps N d 34 + N f 8 + B H S^2 13 bytes in torch 1.10, counted from its modules; the run peaks when
// the backward of the last layer has begun, the states of the first step beside it.
TEST(DryRunTest, PartsAtThePeak) {
  EstimateOptions options;
  options.run.batch = 4;
  options.run.torch_version = "1.10";
  options.run.optimizer = "adamw-hf";
  const Estimate estimate = MustEstimate(ModelOf("bert-large-uncased", kClassifier), options);
  const DryRun& run = *estimate.ascending;
  const double n = 4 * 512, d = 1024, f = 4096, scores = 4.0 * 16 * 512 * 512;
  const double saved = 24 * (n * d * 34 + n * f * 8 + scores * 13);
  EXPECT_NEAR(static_cast<double>(run.parts.saved_activations), saved, 0.01 * saved);
  const auto parameters = static_cast<std::uint64_t>(estimate.model.count());
  const std::uint64_t buffers = 2 * 512 * 8;  // position and type ids, int64
  EXPECT_EQ(run.parts.weights, 4 * parameters + buffers);
  EXPECT_EQ(run.parts.gradients, 4 * parameters);  // kept, zeroed, from the first step
  EXPECT_EQ(run.parts.optimizer, 8 * parameters);
  EXPECT_EQ(run.moment.step, 2);
  EXPECT_EQ(run.moment.place.phase, "backward");
  EXPECT_EQ(run.moment.place.module, "bert.encoder.layer.23.output.dense");  // the first of the last layer
  EXPECT_EQ(run.moment.place.operation, "MmBackward");
  // What shapes alone tell of the states is what the run holds.
  EXPECT_EQ(estimate.states.front().total() + buffers, run.parts.weights + run.parts.gradients + run.parts.optimizer);
}

// Scores of 12 heads in float are the largest request: where they do not fit it fails in a layer's attention.
TEST(DryRunTest, AFailureNamesModuleAndOperation) {
  EstimateOptions options;
  options.run.batch = 16;
  options.run.attention = kernels::Attention::kEager;
  options.capacity_bytes = 6 * kGiB;
  const DryRun run = *MustEstimate(ModelOf("bert-base-uncased", kClassifier), options).ascending;
  ASSERT_FALSE(run.fits);
  EXPECT_EQ(run.failed_bytes, 16u * 12 * 512 * 512 * 4);
  EXPECT_EQ(run.moment.place.phase, "forward");
  EXPECT_THAT(run.moment.place.module, AllOf(testing::StartsWith("bert.encoder.layer."), EndsWith(".attention.self")));
  EXPECT_THAT(run.moment.place.operation, testing::AnyOf("bmm", "div", "add", "softmax", "dropout"));
  EXPECT_EQ(run.moment.place.owner + run.moment.place.tensor, "");
  // A layer leaves 28.4 MB of gradients where its input of 25.2 MB ends: the first layer, whose backward runs last.
  options.run.is_checkpointed = true;
  options.run.optimizer = "sgd";
  options.capacity_bytes.reset();
  const DryRun again = *MustEstimate(ModelOf("bert-base-uncased", kClassifier), options).ascending;
  EXPECT_EQ(again.moment.place.phase, "backward");
  EXPECT_THAT(again.moment.place.module, EndsWith("encoder.layer.0.output.dense"));
}

// From torch 2 on gradients are freed between steps.
TEST(DryRunTest, NewerFrameworksFreeGradients) {
  EstimateOptions options;
  options.run.batch = 4;
  const Estimate estimate = MustEstimate(ModelOf("bert-large-uncased", kClassifier), options);
  EXPECT_LT(estimate.ascending->parts.gradients, 4 * static_cast<std::uint64_t>(estimate.model.count()));
  EXPECT_EQ(estimate.driver_bytes, 0u);
  EXPECT_GT(estimate.ascending->parts.libraries, 0u);
}

TEST(DryRunTest, InferenceKeepsNothing) {
  EstimateOptions options;
  options.run.is_training = false;
  const Estimate estimate = MustEstimate(ModelOf("bert-base-uncased", kClassifier), options);
  const DryRun& run = *estimate.ascending;
  EXPECT_EQ(run.parts.gradients + run.parts.optimizer + run.parts.saved_activations, 0u);
  EXPECT_EQ(run.parts.total(), run.peak_requested_bytes);
  // Scores of one layer, 8 x 12 x 512 x 512 floats, three times at most.
  EXPECT_LT(run.parts.temporaries, 4u * 8 * 12 * 512 * 512 * 4);
  EXPECT_EQ(run.moment.place.phase, "forward");
}

// "Tried to allocate 2.69 GiB (GPU 0; 14.76 GiB total capacity; 12.32 GiB already allocated)".
TEST(DryRunTest, ThePostedFailureOfTheTabularBert) {
  EstimateOptions options;
  options.run.batch = 8;
  options.run.optimizer = "adamw-hf";
  options.run.torch_version = "1.10";
  options.device = "T4";
  const Estimate estimate = MustEstimate(ModelOf("tabformer-large"), options);
  const DryRun& run = *estimate.ascending;
  EXPECT_FALSE(run.fits);
  EXPECT_EQ(run.failed_bytes, 2'888'081'664u);
  EXPECT_EQ(run.moment.step, 1);
  EXPECT_EQ(run.moment.place.phase, "optimizer step");
  EXPECT_EQ(run.moment.place.owner, "tb_model.bert.embeddings.word_embeddings.weight");
  EXPECT_EQ(run.moment.place.tensor, "sqrt(exp_avg_sq)");
  const double allocated_gib = static_cast<double>(run.parts.total()) / kGiB;
  EXPECT_NEAR(allocated_gib, 12.32, 0.002 * 12.32);
  EXPECT_THAT(tests::DocumentedRow("the tabular BERT on a T4"),
              EndsWith(absl::StrFormat("| 12.32 | %.3f | %.2f |", allocated_gib, (allocated_gib / 12.32 - 1) * 100)));
  EXPECT_LE(estimate.DeviceBytes(run), *estimate.capacity_bytes);
  EXPECT_GE(run.reserved_bytes, run.parts.total());
  ASSERT_EQ(estimate.outliers.size(), 1u);
  EXPECT_EQ(estimate.outliers[0].column->name, "visitor_id");
  EXPECT_EQ(estimate.outliers[0].parameters, 722'020'416);
  EXPECT_EQ(estimate.outliers[0].parameters_without_column, 95'898'496 + 897 * 214);
  options.run.batch = 1;  // no help
  EXPECT_EQ(MustEstimate(ModelOf("tabformer-large"), options).ascending->failed_bytes, 2'888'081'664u);
  options.run.batch = 8;
  EXPECT_TRUE(MustEstimate(ModelOf("tabformer-small"), options).ascending->fits);
}

TEST(DryRunTest, WithoutAProgramItSaysSo) {
  const Estimate estimate = MustEstimate(*ModelOfCount(2'506'172'416), {});
  EXPECT_THAT(estimate.no_dry_run, HasSubstr("no dry run for a list of parameters yet"));
  EXPECT_FALSE(estimate.ascending.has_value());
  EXPECT_EQ(estimate.states.front().total(), std::uint64_t{16} * 2'506'172'416);
  EXPECT_THAT(MustEstimate(*ModelOfCount(1000), {}).no_dry_run, HasSubstr("a list of parameters"));
}

TEST(DryRunTest, OutliersAndLayers) {
  const Model model = ModelOf("bert-large-uncased", kClassifier);
  EXPECT_TRUE(FindOutliers(model).empty());
  const std::vector<LayerSum> layers = SumLayers(model);
  ASSERT_EQ(layers.size(), 1u + 24 + 1 + 1);
  EXPECT_EQ(layers[1].parameters, 12'596'224);
  std::int64_t sum = 0;
  for (const LayerSum& layer : layers) sum += layer.parameters;
  EXPECT_EQ(sum, model.count());
  const std::vector<Outlier> gemma = FindOutliers(ModelOf("gemma-2b"));
  ASSERT_EQ(gemma.size(), 1u);
  EXPECT_TRUE(gemma[0].is_embedding);
  EXPECT_FALSE(gemma[0].column.has_value());
}

// Messages posted by users; a device that none was found for takes another's, and says so.
TEST(DryRunTest, TheContextFollowsDeviceAndVersion) {
  const auto context_of = [](const char* device, const char* torch) {
    EstimateOptions options;
    options.run = {.steps = 0, .batch = 1, .torch_version = torch};
    options.device = device;
    const Estimate estimate = *EstimateMemory(ModelOf("bert-base-uncased"), options);
    return std::pair(estimate.context_bytes / kMiB, estimate.context_source);
  };
  EXPECT_EQ(context_of("T4", "1.12").first, 887u);
  EXPECT_EQ(context_of("T4", "1.13").first, 137u);
  EXPECT_EQ(context_of("V100-16GB", "1.10").first, 1341u);
  EXPECT_THAT(context_of("A100-80GB", "1.10"), testing::Pair(1341u, HasSubstr("that of V100-16GB")));
  EXPECT_THAT(context_of("H100-80GB", "2.6"), testing::Pair(524u, HasSubstr("that of H200")));
  EXPECT_THAT(context_of("", "2.6"), testing::Pair(501u, HasSubstr("--context")));
}

TEST(DryRunTest, ErrorsNameTheFlag) {
  EXPECT_THAT(DryRunErrorOf({.run = {.batch = 0}}), HasSubstr("--batch: 0"));
  EXPECT_THAT(DryRunErrorOf({.run = {.optimizer = "adam"}}), AllOf(HasSubstr("--optimizer"), HasSubstr("adafactor")));
  EXPECT_THAT(DryRunErrorOf({.run = {.torch_version = "new"}}), HasSubstr("--torch"));
  EXPECT_THAT(DryRunErrorOf({.run = {.conf = "frob:1"}}), HasSubstr("--conf"));
  EXPECT_THAT(DryRunErrorOf({.tokens = 513}), HasSubstr("--seq: 513"));
  EXPECT_THAT(DryRunErrorOf({.device = "Z80"}), AllOf(HasSubstr("--device"), HasSubstr("A100-40GB")));
  EXPECT_THAT(DryRunErrorOf({.capacity_bytes = 256 * kMiB}), HasSubstr("--capacity"));
  EXPECT_THAT(DryRunErrorOf({.gpu = "Z80"}), HasSubstr("--gpu"));
  const absl::StatusOr<Model> endless = ReadModel(
      R"({"model_type": "bert", "architectures": ["BertForSequenceClassification"], "max_position_embeddings": 90000000})",
      {});
  const absl::Status huge = EstimateMemory(*endless, {.run = {.batch = 1000000}, .tokens = 90'000'000}).status();
  EXPECT_THAT(std::string(huge.message()), AllOf(HasSubstr("--batch"), HasSubstr("10^15")));
  const absl::Status status = EstimateMemory(ModelOf("tabformer-small"), {.tokens = 3}).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("130 tokens"));
}

}  // namespace
}  // namespace ashlar::estimate
