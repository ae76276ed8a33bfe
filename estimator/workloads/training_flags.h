// The flags that training workloads share, and what they say.
#ifndef ASHLAR_ESTIMATOR_WORKLOADS_TRAINING_FLAGS_H_
#define ASHLAR_ESTIMATOR_WORKLOADS_TRAINING_FLAGS_H_

#include <array>
#include <cstddef>

#include "kernels/workloads/training.h"
#include "kernels/workloads/workload.h"

namespace ashlar::kernels {

inline constexpr std::array<FlagSpec, 8> kTrainingFlags = {{
    {"steps", "3", "optimizer steps"},
    {"batch", "4", "sequences of a micro-batch"},
    {"accumulation", "1", "micro-batches of a step"},
    {"precision", "fp32", "fp32, or autocast to fp16 or bf16"},
    {"optimizer", "adamw",
     "adamw, adamw-hf, adamw-loop, adamw-foreach, adamw-fused, adamw-8bit, adamw-teaching, adafactor, "
     "adafactor-torch, sgd"},
    {"learning-rate", "0.001", "of the optimizer"},
    {"clip-norm", "1", "largest norm of all gradients; 0: not clipped"},
    {"freeze", "", "parameters that are not trained, by parts of their names: embeddings,encoder.layer.*.attention"},
}};

template <std::size_t N>
constexpr std::array<FlagSpec, N + kTrainingFlags.size()> WithTrainingFlags(const std::array<FlagSpec, N>& own) {
  std::array<FlagSpec, N + kTrainingFlags.size()> out = {};
  for (std::size_t i = 0; i < N; ++i) out[i] = own[i];
  for (std::size_t i = 0; i < kTrainingFlags.size(); ++i) out[N + i] = kTrainingFlags[i];
  return out;
}

// Of the model that is made next.
ParameterOptions ParameterOptionsOf(const Flags& flags);
TrainingOptions TrainingOptionsOf(Flags& flags);

// `steps` of training on the losses of `loss`.
absl::Status RunTraining(const Parameters& parameters, Flags& flags, const Training::Loss& loss,
                         const OnProgress& on_progress);

}  // namespace ashlar::kernels

#endif  // ASHLAR_ESTIMATOR_WORKLOADS_TRAINING_FLAGS_H_
