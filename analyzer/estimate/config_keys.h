// The keys of a model's description. A missing key has transformers' default of its family, which the notes name; the
// first bad value is kept as the status, and reading goes on.
#ifndef ASHLAR_ANALYZER_ESTIMATE_CONFIG_KEYS_H_
#define ASHLAR_ANALYZER_ESTIMATE_CONFIG_KEYS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace ashlar::estimate {

class ConfigKeys {
 public:
  using Json = nlohmann::ordered_json;

  // `path` names the object in errors: "" or "columns[2].". The object outlives it.
  explicit ConfigKeys(const Json& object, std::string path = "") : object_(object), path_(std::move(path)) {}

  // A whole number from 1 to 2^31 - 1.
  std::int64_t Count(const char* key, std::int64_t default_value);
  // The same where transformers itself derives a missing or null value from others: not noted.
  std::int64_t CountOr(const char* key, std::int64_t derived);
  // The same without a default: missing is an error.
  std::int64_t RequiredCount(const char* key);
  // From 0 to 1.
  double Share(const char* key, double default_value);
  bool Flag(const char* key, bool default_value);
  std::string Text(const char* key, const char* default_value);
  // How many labels a head tells apart: id2label's entries, num_labels, or 2.
  std::int64_t Labels();
  // The first of "architectures", or empty.
  std::string Architecture();

  const Json& object() const { return object_; }

  void Fail(const std::string& message);
  const absl::Status& status() const { return status_; }
  // "vocab_size 30522", for each key that took its default.
  const std::vector<std::string>& defaults() const { return defaults_; }

 private:
  const Json* Find(const char* key) const;  // nullptr where missing or null
  void TookDefault(const char* key, const std::string& value);

  const Json& object_;
  std::string path_;
  absl::Status status_;
  std::vector<std::string> defaults_;
};

}  // namespace ashlar::estimate

#endif  // ASHLAR_ANALYZER_ESTIMATE_CONFIG_KEYS_H_
