// GPT-2 trained to go on with made-up sequences of a fixed stride.
#include <algorithm>

#include "kernels/nn/gpt2.h"
#include "kernels/workloads/batches.h"
#include "kernels/workloads/model_config.h"
#include "kernels/workloads/training_flags.h"

namespace ashlar::kernels {
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

}  // namespace ashlar::kernels
