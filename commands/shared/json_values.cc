#include "commands/shared/json_values.h"

#include <algorithm>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace ashlar::report {
namespace {

// A list of two that begins with a text.
bool IsMember(const Json& item) {
  const auto* items = std::get_if<Json::Items>(&item.value());
  return items != nullptr && items->size() == 2 && std::holds_alternative<std::string>(items->front().value());
}

nlohmann::ordered_json ToLibrary(const Json& json) {
  return std::visit(
      [](const auto& value) -> nlohmann::ordered_json {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, Json::Items>) {
          auto out = nlohmann::ordered_json::array();
          for (const Json& item : value) out.push_back(ToLibrary(item));
          return out;
        } else if constexpr (std::is_same_v<T, Json::Members>) {
          auto out = nlohmann::ordered_json::object();
          for (const auto& [key, item] : value) out[key] = ToLibrary(item);
          return out;
        } else {
          return value;
        }
      },
      json.value());
}

// The library leaves DEL and C1 as they are, which a terminal may obey. All else of JSON is ASCII outside of texts.
std::string WithoutControls(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    const auto byte = static_cast<unsigned char>(json[i]);
    const auto next = static_cast<unsigned char>(i + 1 < json.size() ? json[i + 1] : 0);
    if (byte == 0x7f) {
      out += "\\u007f";
    } else if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {
      absl::StrAppend(&out, "\\u00", absl::Hex(next));
      ++i;
    } else {
      out += json[i];
    }
  }
  return out;
}

std::string Dumped(const nlohmann::ordered_json& json, int indent) {
  return WithoutControls(json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

absl::StatusOr<nlohmann::ordered_json> ParsedJson(absl::string_view text) {
  constexpr int kDeepest = 64;
  bool is_too_deep = false;
  const auto look = [&](int depth, nlohmann::ordered_json::parse_event_t, nlohmann::ordered_json&) {
    is_too_deep = is_too_deep || depth > kDeepest;
    return !is_too_deep;
  };
  nlohmann::ordered_json parsed =
      nlohmann::ordered_json::parse(text.begin(), text.end(), look, /*allow_exceptions=*/false);
  if (is_too_deep) return absl::InvalidArgumentError("this JSON nests too deep");
  if (parsed.is_discarded()) return absl::InvalidArgumentError("this is no JSON");
  return parsed;
}

}  // namespace

Json::Json(std::initializer_list<Json> items) : value_(Items(items)) {
  if (items.size() == 0 || !std::all_of(items.begin(), items.end(), IsMember)) return;
  *this = Object();
  for (const Json& item : items) {
    const Items& pair = std::get<Items>(item.value_);
    (*this)[std::get<std::string>(pair[0].value_)] = pair[1];
  }
}

Json Json::Array(std::initializer_list<Json> items) {
  Json out;
  out.value_ = Items(items);
  return out;
}

Json Json::Object() {
  Json out;
  out.value_ = Members();
  return out;
}

Json& Json::operator[](absl::string_view key) {
  if (std::holds_alternative<std::nullptr_t>(value_)) value_ = Members();
  Members& members = std::get<Members>(value_);
  const auto found =
      std::find_if(members.begin(), members.end(), [&](const auto& member) { return member.first == key; });
  return found != members.end() ? found->second : members.emplace_back(std::string(key), Json()).second;
}

bool Json::Has(absl::string_view key) const {
  const auto* members = std::get_if<Members>(&value_);
  return members != nullptr &&
         std::any_of(members->begin(), members->end(), [&](const auto& member) { return member.first == key; });
}

void Json::Append(Json item) {
  if (std::holds_alternative<std::nullptr_t>(value_)) value_ = Items();
  std::get<Items>(value_).push_back(std::move(item));
}

void Json::Update(const Json& other) {
  for (const auto& [key, item] : std::get<Members>(other.value_)) (*this)[key] = item;
}

std::string Json::ToText() const { return Dumped(ToLibrary(*this), 2) + "\n"; }

std::string Json::ToCompactText() const { return Dumped(ToLibrary(*this), -1); }

absl::StatusOr<std::string> CompactJson(absl::string_view text) {
  const absl::StatusOr<nlohmann::ordered_json> parsed = ParsedJson(text);
  if (!parsed.ok()) return parsed.status();
  return Dumped(*parsed, -1);
}

bool HasJsonKeys(absl::string_view text, std::initializer_list<absl::string_view> keys) {
  const absl::StatusOr<nlohmann::ordered_json> parsed = ParsedJson(text);
  const auto has = [&](absl::string_view key) { return parsed->contains(std::string(key)); };
  return parsed.ok() && parsed->is_object() && std::all_of(keys.begin(), keys.end(), has);
}

Json TextOrNull(const std::string& text) { return text.empty() ? Json() : Json(text); }

}  // namespace ashlar::report
