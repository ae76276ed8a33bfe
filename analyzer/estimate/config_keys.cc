#include "analyzer/estimate/config_keys.h"

#include "absl/strings/str_cat.h"

namespace ashlar::estimate {
namespace {

constexpr std::int64_t kMostValue = 2'147'483'647;

std::string Shown(const ConfigKeys::Json& value) {
  if (value.is_structured()) return absl::StrCat("an ", value.type_name());
  const std::string text = value.dump(-1, ' ', true, ConfigKeys::Json::error_handler_t::replace);
  return text.size() <= 40 ? text : text.substr(0, 37) + "...";
}

}  // namespace

const ConfigKeys::Json* ConfigKeys::Find(const char* key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void ConfigKeys::TookDefault(const char* key, const std::string& value) {
  defaults_.push_back(absl::StrCat(path_, key, " ", value));
}

void ConfigKeys::Fail(const std::string& message) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(message);
}

std::int64_t ConfigKeys::CountOr(const char* key, std::int64_t derived) {
  const Json* value = Find(key);
  if (value == nullptr) return derived;
  if (value->is_number_unsigned() && value->get<std::uint64_t>() >= 1 && value->get<std::uint64_t>() <= kMostValue) {
    return static_cast<std::int64_t>(value->get<std::uint64_t>());
  }
  Fail(absl::StrCat("\"", path_, key, "\": ", Shown(*value), " is not a whole number from 1 to ", kMostValue));
  return derived;
}

std::int64_t ConfigKeys::Count(const char* key, std::int64_t default_value) {
  if (Find(key) == nullptr) TookDefault(key, absl::StrCat(default_value));
  return CountOr(key, default_value);
}

std::int64_t ConfigKeys::RequiredCount(const char* key) {
  if (Find(key) == nullptr) Fail(absl::StrCat("\"", path_, key, "\" is missing: it has no default"));
  return CountOr(key, 1);
}

double ConfigKeys::Share(const char* key, double default_value) {
  const Json* value = Find(key);
  if (value == nullptr) {
    TookDefault(key, absl::StrCat(default_value));
    return default_value;
  }
  if (value->is_number() && value->get<double>() >= 0 && value->get<double>() <= 1) return value->get<double>();
  Fail(absl::StrCat("\"", path_, key, "\": ", Shown(*value), " is not a number from 0 to 1"));
  return default_value;
}

bool ConfigKeys::Flag(const char* key, bool default_value) {
  const Json* value = Find(key);
  if (value == nullptr) return default_value;
  if (value->is_boolean()) return value->get<bool>();
  Fail(absl::StrCat("\"", path_, key, "\": ", Shown(*value), " is neither true nor false"));
  return default_value;
}

std::string ConfigKeys::Text(const char* key, const char* default_value) {
  const Json* value = Find(key);
  if (value == nullptr) return default_value;
  if (value->is_string()) return value->get<std::string>();
  Fail(absl::StrCat("\"", path_, key, "\": ", Shown(*value), " is not a text"));
  return default_value;
}

std::int64_t ConfigKeys::Labels() {
  const Json* names = Find("id2label");
  if (names != nullptr && names->is_object() && !names->empty()) return static_cast<std::int64_t>(names->size());
  return CountOr("num_labels", 2);
}

std::string ConfigKeys::Architecture() {
  const Json* list = Find("architectures");
  if (list == nullptr || (list->is_array() && list->empty())) return {};
  if (list->is_array() && list->front().is_string()) return list->front().get<std::string>();
  Fail(absl::StrCat("\"architectures\": ", Shown(*list), " is not a list of class names"));
  return {};
}

}  // namespace ashlar::estimate
