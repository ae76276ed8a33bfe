// TabFormer trained on made-up tables: a column of n categories has n tokens of the vocabulary.
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/nn/fill.h"
#include "kernels/nn/tabformer.h"
#include "kernels/workloads/batches.h"
#include "kernels/workloads/training_flags.h"

namespace ashlar::kernels {
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

}  // namespace ashlar::kernels
