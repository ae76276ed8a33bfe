// A JSON value as the reports print it: keys in the order given, null for what is not known. Made of lists in braces,
// as one would write it; a list whose items are all pairs that begin with a text is an object:
//
//   Json out = {{"bytes", 42}, {"name", "bert"}, {"free_bytes", OrNull(free_bytes)}};
//   out["notes"] = Json::Array();
//   out["notes"].Append("read: PyTorch snapshot");
//   std::string text = out.ToText();
//
// The library that writes it (nlohmann/json) is behind json_values.cc alone.
#ifndef ASHLAR_COMMANDS_SHARED_JSON_VALUES_H_
#define ASHLAR_COMMANDS_SHARED_JSON_VALUES_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ashlar::report {

class Json {
 public:
  using Items = std::vector<Json>;
  using Members = std::vector<std::pair<std::string, Json>>;

  // NOLINTBEGIN(google-explicit-constructor): a value is JSON as it is written
  Json(std::nullptr_t = nullptr) {}
  Json(bool value) : value_(value) {}
  Json(double value) : value_(value) {}
  template <std::signed_integral Int>
  Json(Int value) : value_(static_cast<std::int64_t>(value)) {}
  template <std::unsigned_integral Int>
    requires(!std::same_as<Int, bool>)
  Json(Int value) : value_(static_cast<std::uint64_t>(value)) {}
  Json(std::string text) : value_(std::move(text)) {}
  Json(const char* text) : value_(std::string(text)) {}
  Json(absl::string_view text) : value_(std::string(text)) {}
  template <typename T>
  Json(const std::vector<T>& items) : value_(Items(items.begin(), items.end())) {}
  Json(std::initializer_list<Json> items);
  // NOLINTEND(google-explicit-constructor)

  static Json Array(std::initializer_list<Json> items = {});
  static Json Object();

  // The value of a key of an object, null at first; null becomes an object.
  Json& operator[](absl::string_view key);
  // Whether it is an object with the key.
  bool Has(absl::string_view key) const;
  // To the end of an array; null becomes one.
  void Append(Json item);
  // Every member of `other`, an object.
  void Update(const Json& other);

  const auto& value() const { return value_; }
  // Two-space indentation and a newline at the end; bytes that are no UTF-8 are replaced.
  std::string ToText() const;
  // The same without a blank or a newline.
  std::string ToCompactText() const;

 private:
  std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string, Items, Members> value_;
};

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value.has_value() ? Json(*value) : Json();
}

Json TextOrNull(const std::string& text);

// Printed JSON without blanks and newlines, keys in their order. InvalidArgument where it is none, or nests deeper than
// any answer does.
absl::StatusOr<std::string> CompactJson(absl::string_view text);
// Whether it is an object with all of these keys.
bool HasJsonKeys(absl::string_view text, std::initializer_list<absl::string_view> keys);

}  // namespace ashlar::report

#endif  // ASHLAR_COMMANDS_SHARED_JSON_VALUES_H_
