// BERT for sequence classification, trained on made-up sequences whose class is told by their first token.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/nn/bert.h"
#include "kernels/workloads/batches.h"
#include "kernels/workloads/model_config.h"
#include "kernels/workloads/training_flags.h"

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

}  // namespace ashlar::kernels
