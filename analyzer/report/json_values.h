// What the JSON of every report is made of: keys in the order given, null for what is not known.
#ifndef ASHLAR_ANALYZER_REPORT_JSON_VALUES_H_
#define ASHLAR_ANALYZER_REPORT_JSON_VALUES_H_

#include <optional>
#include <string>

#include "nlohmann/json.hpp"

namespace ashlar::report {

using Json = nlohmann::ordered_json;

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value.has_value() ? Json(*value) : Json(nullptr);
}

inline Json TextOrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_JSON_VALUES_H_
