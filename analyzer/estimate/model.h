// A model as its description tells it: every parameter by name and shape, in the order of PyTorch's named_parameters(),
// tied weights once. Nothing is allocated.
#ifndef ASHLAR_ANALYZER_ESTIMATE_MODEL_H_
#define ASHLAR_ANALYZER_ESTIMATE_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/estimate/model_switches.h"

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

class ProgramMaker;

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
  std::shared_ptr<const ProgramMaker> program = nullptr;  // program.h; null where there is none to run
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
