// Fields of what the processes of a run left as JSON. Nothing is taken for granted: what is missing or of another kind
// is empty or 0.
//
//   Get<std::uint64_t>(object, "peak_bytes");
#ifndef ASHLAR_LAUNCHER_JSON_FIELDS_H_
#define ASHLAR_LAUNCHER_JSON_FIELDS_H_

#include <string>
#include <type_traits>
#include <vector>

#include "nlohmann/json.hpp"

namespace ashlar::cli {

// The value of a key, or what stands for it where it is missing, null or of another kind.
template <typename T>
T Get(const nlohmann::json& object, const char* key, T otherwise = {}) {
  if (!object.is_object() || !object.contains(key)) return otherwise;
  const nlohmann::json& value = object[key];
  if constexpr (std::is_same_v<T, std::string>) {
    return value.is_string() ? value.get<std::string>() : otherwise;
  } else {
    if (!value.is_number()) return otherwise;
    const double number = value.get<double>();
    return std::is_unsigned_v<T> && number < 0 ? otherwise : value.get<T>();
  }
}

inline const nlohmann::json& GetArray(const nlohmann::json& object, const char* key) {
  static const nlohmann::json kEmpty = nlohmann::json::array();
  return object.is_object() && object.contains(key) && object[key].is_array() ? object[key] : kEmpty;
}

inline std::vector<std::string> GetTexts(const nlohmann::json& object, const char* key) {
  std::vector<std::string> out;
  for (const nlohmann::json& item : GetArray(object, key)) {
    if (item.is_string()) out.push_back(item.get<std::string>());
  }
  return out;
}

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_JSON_FIELDS_H_
