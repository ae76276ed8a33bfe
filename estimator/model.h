// A model as its description tells it: every parameter by name and shape, in the order of PyTorch's named_parameters(),
// tied weights once. Nothing is allocated.
#ifndef ASHLAR_ESTIMATOR_MODEL_H_
#define ASHLAR_ESTIMATOR_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/trace/snapshot.h"
#include "nlohmann/json.hpp"

namespace ashlar::estimate {

// The changes that people make to a model so that it takes less memory, as the flags of `ashlar estimate` have them. A
// model is described again with them: its parameters, what is frozen and what lies on the host agree with what runs.

struct Model;

struct ModelSwitches {
  std::optional<std::int64_t> vocabulary = {};  // --vocab: rows of the token embeddings, and the head's logits
  std::optional<std::int64_t> layers = {};      // --layers: of each stack
  std::optional<std::int64_t> width = {};       // --hidden
  std::optional<bool> ties_embeddings = {};     // --tie, --untie: input and output embeddings are one tensor
  std::optional<bool> shares_embeddings = {};   // --shared-embeddings, --separate-embeddings: encoder and decoder
  std::vector<std::string> frozen = {};         // --freeze: patterns, as kernels::IsNamedBy takes them
  bool has_host_embeddings = false;             // --embeddings-cpu: input embeddings with gradients and states
  friend bool operator==(const ModelSwitches&, const ModelSwitches&) = default;
};

// "6 layers, vocabulary 5000, frozen bert.embeddings, embeddings on the host"; empty without any.
std::string SwitchesText(const ModelSwitches& switches);

// Sets the keys of a description of `family` that the switches stand for. Errors name the flag.
absl::Status SetKeys(const ModelSwitches& switches, absl::string_view family, nlohmann::ordered_json& description);

// Marks the parameters of a model whose switches are set. Errors name the flag.
absl::Status MarkParameters(Model& model);

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

// Reads the description of a model: a Hugging Face config.json, or a model file of our own (docs/guide/estimate.md).
//
//   absl::StatusOr<Model> model = ReadModel(bytes, {});
//   model->count();   // 109,482,240
struct ModelFileOptions {
  std::string architecture = {};  // in place of the file's
  ModelSwitches switches = {};    // changes to what the file says
};

// InvalidArgument, one line: line and column where the text is not JSON, else the key and what it should be; the known
// families where model_type is none of them.
absl::StatusOr<Model> ReadModel(absl::string_view bytes, const ModelFileOptions& options);

// The model with these switches in place of those it was described with. Errors name the flag.
absl::StatusOr<Model> SwitchedModel(const Model& model, const ModelSwitches& switches);

// A model of which only this is known. From 1 to 10^15.
absl::StatusOr<Model> ModelOfCount(std::int64_t parameters);

}  // namespace ashlar::estimate

#endif  // ASHLAR_ESTIMATOR_MODEL_H_
