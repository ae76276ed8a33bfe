#include "estimator/workloads/model_config.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace ashlar::kernels {
namespace {

// Reads keys of one object, remembering the first that does not fit.
class Reader {
 public:
  Reader(std::string path, nlohmann::json json) : path_(std::move(path)), json_(std::move(json)) {}

  static absl::StatusOr<Reader> Open(const std::string& path) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": is a folder; name a file in it"));
    }
    std::ifstream file(path);
    if (!file) {
      return absl::NotFoundError(absl::StrCat("there is no model '", path, "': neither a built-in name nor a file"));
    }
    std::ostringstream text;
    text << file.rdbuf();
    nlohmann::json json = nlohmann::json::parse(text.str(), nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": not a JSON object; give a Hugging Face config.json"));
    }
    return Reader(path, std::move(json));
  }

  // A description of another family would run with defaults in place of what it says.
  void Family(absl::string_view family) {
    const auto named = json_.find("model_type");
    if (named != json_.end() && *named != std::string(family)) Fail("model_type", absl::StrCat("\"", family, "\""));
  }

  void Count(const char* key, std::int64_t& out) {
    if (!json_.contains(key)) return;
    const nlohmann::json& value = json_[key];
    if (value.is_number_integer() && value > 0 && value <= 1'000'000'000) {
      out = value.get<std::int64_t>();
    } else {
      Fail(key, "a whole number from 1 to 1000000000");
    }
  }

  void Fraction(const char* key, double& out) {
    if (!json_.contains(key)) return;
    const nlohmann::json& value = json_[key];
    if (value.is_number() && value >= 0.0 && value < 1.0) {
      out = value.get<double>();
    } else {
      Fail(key, "a number in [0, 1)");
    }
  }

  void Divides(const char* key, std::int64_t divisor, std::int64_t of) {
    if (of % divisor != 0) Fail(key, absl::StrCat("a divisor of ", of));
  }

  const absl::Status& status() const { return status_; }

 private:
  void Fail(absl::string_view key, absl::string_view wanted) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(absl::StrCat(path_, ": \"", key, "\" is not ", wanted));
  }

  std::string path_;
  nlohmann::json json_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<BertConfig> ReadBertConfig(const std::string& name_or_path) {
  BertConfig config;
  if (name_or_path == "bert-base") return config;
  if (name_or_path == "bert-large") return BertLarge();
  if (name_or_path == "tiny") {
    config.vocab_size = 256;
    config.hidden_size = 64;
    config.num_hidden_layers = 2;
    config.num_attention_heads = 4;
    config.intermediate_size = 128;
    config.max_position_embeddings = 1024;
    config.initializer_range = 0.1;
    return config;
  }
  absl::StatusOr<Reader> reader = Reader::Open(name_or_path);
  if (!reader.ok()) return reader.status();
  reader->Family("bert");
  reader->Count("vocab_size", config.vocab_size);
  reader->Count("hidden_size", config.hidden_size);
  reader->Count("num_hidden_layers", config.num_hidden_layers);
  reader->Count("num_attention_heads", config.num_attention_heads);
  reader->Count("intermediate_size", config.intermediate_size);
  reader->Count("max_position_embeddings", config.max_position_embeddings);
  reader->Count("type_vocab_size", config.type_vocab_size);
  reader->Fraction("hidden_dropout_prob", config.hidden_dropout_prob);
  reader->Fraction("attention_probs_dropout_prob", config.attention_probs_dropout_prob);
  reader->Fraction("layer_norm_eps", config.layer_norm_eps);
  reader->Fraction("initializer_range", config.initializer_range);
  reader->Divides("num_attention_heads", config.num_attention_heads, config.hidden_size);
  if (!reader->status().ok()) return reader->status();
  return config;
}

absl::StatusOr<Gpt2Config> ReadGpt2Config(const std::string& name_or_path) {
  Gpt2Config config;
  if (name_or_path == "gpt2") return config;
  if (name_or_path == "gpt2-medium") {
    config.n_embd = 1024;
    config.n_layer = 24;
    config.n_head = 16;
    return config;
  }
  if (name_or_path == "tiny") {
    config.vocab_size = 64;
    config.n_positions = 256;
    config.n_embd = 48;
    config.n_layer = 2;
    config.n_head = 4;
    config.resid_pdrop = config.embd_pdrop = config.attn_pdrop = 0;
    config.initializer_range = 0.1;
    return config;
  }
  absl::StatusOr<Reader> reader = Reader::Open(name_or_path);
  if (!reader.ok()) return reader.status();
  reader->Family("gpt2");
  reader->Count("vocab_size", config.vocab_size);
  reader->Count("n_positions", config.n_positions);
  reader->Count("n_embd", config.n_embd);
  reader->Count("n_layer", config.n_layer);
  reader->Count("n_head", config.n_head);
  reader->Fraction("resid_pdrop", config.resid_pdrop);
  reader->Fraction("embd_pdrop", config.embd_pdrop);
  reader->Fraction("attn_pdrop", config.attn_pdrop);
  reader->Fraction("layer_norm_epsilon", config.layer_norm_epsilon);
  reader->Fraction("initializer_range", config.initializer_range);
  reader->Divides("n_head", config.n_head, config.n_embd);
  if (!reader->status().ok()) return reader->status();
  return config;
}

}  // namespace ashlar::kernels
