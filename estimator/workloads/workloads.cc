// BERT for sequence classification, trained on made-up sequences whose class is told by their first token.

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "estimator/models/bert.h"
#include "estimator/models/gpt.h"
#include "estimator/models/tabformer.h"
#include "estimator/workloads/model_config.h"
#include "estimator/workloads/training_flags.h"
#include "kernels/nn/parameters.h"
#include "kernels/workloads/batches.h"
#include "kernels/workloads/workload.h"

namespace ashlar::kernels {
namespace {

constexpr auto kBertTrainingFlags = WithTrainingFlags<5>({{
    {"model", "bert-base", "bert-base, bert-large, tiny, or a Hugging Face config.json"},
    {"lengths", "512", "of sequences: 512, uniform:16-512 or skewed:16-512"},
    {"padding", "longest", "a batch is padded to its longest sequence, or to the longest of all: max"},
    {"labels", "2", "classes"},
    {"checkpointing", "false", "keep each layer's input alone and run it again for its gradients"},
}});

absl::Status RunBertTraining(Runtime& runtime, Flags& flags, const OnProgress& on_progress) {
  Context& context = runtime.context();
  const absl::StatusOr<BertConfig> config = ReadBertConfig(flags.Text("model"));
  if (!config.ok()) return config.status();
  absl::StatusOr<LengthSource> lengths = LengthSource::Parse(flags.Text("lengths"), context.random().seed);
  if (!lengths.ok()) return lengths.status();
  if (absl::Status status = lengths->CheckFits(config->max_position_embeddings); !status.ok()) return status;
  const bool pads_to_max = flags.Text("padding") == "max";
  if (!pads_to_max && flags.Text("padding") != "longest") {
    return absl::InvalidArgumentError(
        absl::StrCat("--padding '", flags.Text("padding"), "' is neither longest nor max"));
  }
  const std::int64_t batch = flags.Int("batch", 1, 1 << 20), labels = flags.Int("labels", 1, 1 << 20);
  const bool is_checkpointed = flags.Bool("checkpointing");
  if (!flags.status().ok()) return flags.status();

  context.memory().set_phase("model");
  Parameters parameters(context, ParameterOptionsOf(flags));
  const BertClassifier model(parameters, *config, labels, {.is_checkpointed = is_checkpointed});
  Rng rng(context.random().seed);
  return RunTraining(
      parameters, flags,
      [&] {
        const std::int64_t longest = lengths->Longest(batch);
        const LabelledBatch data =
            Labelled(context, batch, pads_to_max ? lengths->longest() : longest, config->vocab_size, labels, rng);
        return model.Loss(data.ids, data.labels);
      },
      on_progress);
}

}  // namespace

const Workload kBertTraining = {"bert_training", "trains BERT for sequence classification", kBertTrainingFlags,
                                RunBertTraining};

// GPT-2 trained to go on with made-up sequences of a fixed stride.

namespace {

constexpr auto kGptTrainingFlags = WithTrainingFlags<3>({{
    {"model", "gpt2", "gpt2, gpt2-medium, tiny, or a Hugging Face config.json"},
    {"lengths", "512", "of sequences: 512, uniform:16-512 or skewed:16-512; a batch has its longest"},
    {"checkpointing", "false", "keep each layer's input alone and run it again for its gradients"},
}});

absl::Status RunGptTraining(Runtime& runtime, Flags& flags, const OnProgress& on_progress) {
  Context& context = runtime.context();
  const absl::StatusOr<Gpt2Config> config = ReadGpt2Config(flags.Text("model"));
  if (!config.ok()) return config.status();
  absl::StatusOr<LengthSource> lengths = LengthSource::Parse(flags.Text("lengths"), context.random().seed);
  if (!lengths.ok()) return lengths.status();
  if (absl::Status status = lengths->CheckFits(config->n_positions); !status.ok()) return status;
  const std::int64_t batch = flags.Int("batch", 1, 1 << 20);
  const bool is_checkpointed = flags.Bool("checkpointing");
  if (!flags.status().ok()) return flags.status();

  context.memory().set_phase("model");
  Parameters parameters(context, ParameterOptionsOf(flags));
  const Gpt2 model(parameters, *config, {.is_checkpointed = is_checkpointed});
  Rng rng(context.random().seed);
  return RunTraining(
      parameters, flags,
      [&] {
        const std::int64_t length = std::max<std::int64_t>(2, lengths->Longest(batch));
        const Tensor ids = TokenIds(context, {batch, length}, config->vocab_size, rng);
        return model.Loss(ids);
      },
      on_progress);
}

}  // namespace

const Workload kGptTraining = {"gpt_training", "trains GPT-2 to predict the next token", kGptTrainingFlags,
                               RunGptTraining};

// TabFormer trained on made-up tables: a column of n categories has n tokens of the vocabulary.

namespace {

constexpr std::int64_t kMostCategories = 1 << 30;

constexpr auto kTabformerTrainingFlags = WithTrainingFlags<5>({{
    {"columns", "17,17,18,18,18,18,18,18,18,18,18,18,2698", "categories of each column"},
    {"rows", "10", "rows of a sequence"},
    {"field-width", "64", "of a token; the model is as many times wider as there are columns. A multiple of 8"},
    {"layers", "12", "of BERT over the rows"},
    {"inner", "3072", "width inside a layer"},
}});

std::vector<std::int64_t> ColumnSizes(Flags& flags) {
  std::vector<std::int64_t> out;
  for (const absl::string_view part : absl::StrSplit(flags.Text("columns"), ',')) {
    std::int64_t size = 0;
    if (!absl::SimpleAtoi(part, &size) || size < 1 || size > kMostCategories) {
      flags.Fail(absl::InvalidArgumentError(
          absl::StrCat("--columns: '", part, "' is not a number of categories from 1 to ", kMostCategories)));
      return {1};
    }
    out.push_back(size);
  }
  return out;
}

// Tokens and labels of (B, rows, columns); a label counts within its column.
LabelledBatch Table(Context& context, const TabFormerConfig& config, std::int64_t batch, Rng& rng) {
  const Dims sizes = {batch, config.rows, config.columns()};
  Tensor ids = Empty(context, sizes, DType::kInt64, Part::kBatch);
  Tensor labels = Empty(context, sizes, DType::kInt64, Part::kBatch);
  if (context.computes()) {
    std::vector<std::int64_t> tokens, classes;
    for (std::int64_t row = 0; row < batch * config.rows; ++row) {
      const std::uint64_t pick = rng.Next();
      std::int64_t first = 0;
      for (const std::int64_t size : config.column_sizes) {
        classes.push_back(static_cast<std::int64_t>(pick % static_cast<std::uint64_t>(size)));
        tokens.push_back(first + classes.back());
        first += size;
      }
    }
    FillIds(ids, tokens);
    FillIds(labels, classes);
  }
  return {std::move(ids), std::move(labels)};
}

absl::Status RunTabformerTraining(Runtime& runtime, Flags& flags, const OnProgress& on_progress) {
  Context& context = runtime.context();
  TabFormerConfig config;
  config.column_sizes = ColumnSizes(flags);
  config.rows = flags.Int("rows", 1, 512);
  config.field_width = flags.Int("field-width", config.field_heads, 4096);
  config.layers = flags.Int("layers", 1, 1000);
  config.inner = flags.Int("inner", 1, 1 << 20);
  const std::int64_t batch = flags.Int("batch", 1, 1 << 20);
  if (config.field_width % config.field_heads != 0) {
    flags.Fail(absl::InvalidArgumentError("--field-width is not a multiple of 8"));
  }
  if (!flags.status().ok()) return flags.status();

  context.memory().set_phase("model");
  Parameters parameters(context, ParameterOptionsOf(flags));
  const TabFormer model(parameters, config);
  Rng rng(context.random().seed);
  return RunTraining(
      parameters, flags,
      [&] {
        const LabelledBatch data = Table(context, config, batch, rng);
        return model.Loss(data.ids, data.labels);
      },
      on_progress);
}

}  // namespace

const Workload kTabformerTraining = {"tabformer_training", "trains a hierarchical BERT over the rows of a table",
                                     kTabformerTrainingFlags, RunTabformerTraining};

absl::Span<const Workload> Workloads() {
  static const std::vector<Workload>* all = new std::vector<Workload>{
      kAttentionInference, kBertTraining, kEmbeddingServing, kGptTraining, kStreamFanout, kTabformerTraining};
  return *all;
}

const Workload* FindWorkload(absl::string_view name) {
  for (const Workload& workload : Workloads()) {
    if (workload.name == name) return &workload;
  }
  return nullptr;
}

}  // namespace ashlar::kernels
