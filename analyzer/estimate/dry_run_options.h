// The options of a dry run: how many steps of which batches, how trained, under which framework, GPU and settings.
#ifndef ASHLAR_ANALYZER_ESTIMATE_DRY_RUN_OPTIONS_H_
#define ASHLAR_ANALYZER_ESTIMATE_DRY_RUN_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/estimate/model_states.h"
#include "analyzer/estimate/model_switches.h"
#include "kernels/nn/transformers.h"

namespace ashlar::estimate {

// One batch: its samples, all of `tokens` tokens (padded to them).
struct BatchShape {
  std::int64_t batch = 1;
  std::int64_t tokens = 1;
  std::int64_t target_tokens = 0;  // of an encoder-decoder's decoder; 0: as many
  bool is_padded = false;          // some sample is shorter: a mask says where
  std::int64_t real_tokens = 0;    // of all samples without padding; 0: not known, batch x tokens
};

struct DryRunOptions {
  bool is_training = true;
  std::int64_t steps = 3;  // optimizer steps, or forward passes; 0: the weights alone
  std::int64_t batch = 8;
  std::int64_t tokens = 512;             // a sample; not for models whose description fixes it
  std::int64_t target_tokens = 0;        // of an encoder-decoder's decoder; 0: as many
  std::vector<BatchShape> batches = {};  // one after the other, then from the first again; empty: batch x tokens each
  bool is_padded = false;                // of batch x tokens: some sample is shorter
  bool keeps_outputs = false;            // the caller's variable holds what a call returned until the next one has
  std::int64_t accumulation = 1;
  bool is_checkpointed = false;
  Precision precision = Precision::kFloat32;
  std::optional<kernels::Attention> attention = {};  // nullopt: what transformers of the torch version takes
  std::string optimizer = "adamw";
  ModelSwitches switches = {};  // the model is described again with them where it was described without
  std::string torch_version = "2.6";
  std::string transformers_version = {};             // empty: that of torch's time
  std::string gpu = "A100";                          // of kernels::GpuNamed: sizes of library buffers
  std::string conf = {};                             // as for PYTORCH_CUDA_ALLOC_CONF
  std::optional<std::uint64_t> capacity_bytes = {};  // that the allocator may have; nullopt: it never runs out
};

}  // namespace ashlar::estimate

#endif  // ASHLAR_ANALYZER_ESTIMATE_DRY_RUN_OPTIONS_H_
