// What readers of large JSON files share: the events of nlohmann's parser, one scalar handler for all kinds of values.
// Nothing is held of what was read, and nothing recurses.
//
//   class Keys final : public JsonEvents {
//     bool key(std::string& name) override { ... }
//   };
//   absl::Status status = ParseJson("Chrome trace", bytes, keys);
#ifndef ASHLAR_ANALYZER_FORMATS_JSON_JSON_EVENTS_H_
#define ASHLAR_ANALYZER_FORMATS_JSON_JSON_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace ashlar::formats {

using JsonScalar = std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, absl::string_view>;

class JsonEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  // A value that is no container; false ends the reading.
  virtual bool Scalar(const JsonScalar& value) = 0;

  // Where it ended before its end; empty: nowhere.
  const std::string& error() const { return error_; }

  bool null() final { return Scalar(std::monostate{}); }
  bool boolean(bool value) final { return Scalar(value); }
  bool number_integer(std::int64_t value) final { return Scalar(value); }
  bool number_unsigned(std::uint64_t value) final { return Scalar(value); }
  bool number_float(double value, const std::string& /*text*/) final { return Scalar(value); }
  bool string(std::string& value) final { return Scalar(absl::string_view(value)); }
  bool binary(binary_t& /*value*/) final { return false; }
  bool start_object(std::size_t /*elements*/) override { return true; }
  bool key(std::string& /*name*/) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t /*elements*/) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t position, const std::string& /*last*/, const nlohmann::json::exception& /*why*/) final {
    error_ = absl::StrCat("no JSON from byte ", position, " on");
    return false;
  }

 private:
  std::string error_;
};

inline absl::Status ParseJson(absl::string_view what, absl::string_view bytes, JsonEvents& events) {
  if (nlohmann::json::sax_parse(bytes.begin(), bytes.end(), &events)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("this ", what, " is ",
                                                 events.error().empty() ? "not as it is written" : events.error(),
                                                 ": it was cut or damaged, fetch it again"));
}

}  // namespace ashlar::formats

#endif  // ASHLAR_ANALYZER_FORMATS_JSON_JSON_EVENTS_H_
