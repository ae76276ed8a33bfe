// A model as its description tells it: every parameter by name and shape, in the order of PyTorch's named_parameters(),
// tied weights once. Nothing is allocated.
#ifndef ASHLAR_ANALYZER_ESTIMATE_MODEL_H_
#define ASHLAR_ANALYZER_ESTIMATE_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/estimate/model_switches.h"
#include "kernels/nn/decoder.h"
#include "kernels/nn/encoder_task.h"
#include "kernels/nn/gpt2.h"
#include "kernels/nn/gpt_neo.h"
#include "kernels/nn/t5.h"
#include "kernels/nn/tabformer.h"

namespace ashlar::estimate {

struct ModelParameter {
  std::string name;
  std::vector<std::int64_t> sizes;
  bool is_frozen = false;      // without gradient and optimizer states
  bool is_on_host = false;     // with its gradient and states: none of them on the device
  std::int64_t count() const;  // of elements
  bool is_trained_on_device() const { return !is_frozen && !is_on_host; }
};

// A name that is another parameter's tensor: counted with that one.
struct TiedName {
  std::string name;
  std::string of;
};

// A column of a table whose categories are rows of one vocabulary.
struct Column {
  std::string name;
  std::int64_t categories = 0;
};

// What the workload program of an architecture needs to know; nothing where there is no such program.
struct BertProgramConfig {
  kernels::BertConfig bert;
  kernels::EncoderHead head;
  std::optional<std::int64_t> padding_id = {};  // of roberta and xlm-roberta
};
struct DistilBertProgramConfig {
  kernels::DistilBertConfig bert;
  kernels::EncoderHead head;
};
struct T5ProgramConfig {
  kernels::T5Config t5;
  kernels::T5Head head = kernels::T5Head::kLanguage;
};
template <typename Config>
struct DecoderProgramConfig {
  Config decoder;
  kernels::DecoderHead head = kernels::DecoderHead::kNone;
  std::int64_t labels = 2;      // of a classifier
  std::string activation = {};  // as the description names it
};
using LlamaProgramConfig = DecoderProgramConfig<kernels::DecoderConfig>;
using Gpt2ProgramConfig = DecoderProgramConfig<kernels::Gpt2Config>;
using GptNeoProgramConfig = DecoderProgramConfig<kernels::GptNeoConfig>;
using ProgramConfig =
    std::variant<std::monostate, BertProgramConfig, DistilBertProgramConfig, T5ProgramConfig, kernels::TabFormerConfig,
                 LlamaProgramConfig, Gpt2ProgramConfig, GptNeoProgramConfig>;

// What a model was read from.
struct ModelSource {
  std::string bytes;
  std::string architecture;  // in place of the file's; empty without
};

struct Model {
  std::string family;        // "bert"; "parameters" where only names and shapes, or only their number, are known
  std::string architecture;  // "BertForSequenceClassification"; empty without
  std::vector<ModelParameter> parameters;
  std::vector<TiedName> tied = {};
  std::vector<Column> columns = {};
  std::optional<std::int64_t> max_positions = {};    // tokens that a sequence may have, where the model limits them
  std::optional<std::int64_t> tokens_a_sample = {};  // where the description fixes them
  ProgramConfig program = {};
  std::vector<trace::Note> notes = {};
  ModelSwitches switches = {};                          // that it was described with
  std::shared_ptr<const ModelSource> source = nullptr;  // null where only a number of parameters was given

  std::int64_t count() const;  // of elements of all parameters
};

// The layer that a parameter belongs to: its module up to a first number ("bert.encoder.layer.0"); without one, its
// module's parent where that has one itself ("bert.embeddings"), else its module ("classifier").
std::string LayerOf(absl::string_view parameter_name);

// A lookup table by name and shape: two dims, and "embed", "wte", "wpe" or "shared" in the name.
bool IsEmbedding(const ModelParameter& parameter);

}  // namespace ashlar::estimate

#endif  // ASHLAR_ANALYZER_ESTIMATE_MODEL_H_
