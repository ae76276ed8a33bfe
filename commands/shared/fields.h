// The fields of an answer, each written once: its key, its value, and what it means. The JSON of the answer and its
// schema (docs/schemas) are made of them.
//
//   template <>
//   const Fields<whatif::Risk>& FieldsOf<whatif::Risk>() {
//     static const auto* fields = new Fields<whatif::Risk>(
//         Fields<whatif::Risk>("risk")
//             .Add("name", [](const auto& risk) { return risk.name; }, "Stable key.")
//             .AddWord("level", [](const auto& risk) { return RiskLevelName(risk.level); }, RiskLevels(), "How bad."));
//     return *fields;
//   }
//   Json json = FieldsOf<whatif::Risk>().ToJson(risk);
//
// The type of a value tells its schema: a flag, a number, a text, another object with fields, an optional or a vector
// of these. An optional without a value is null.
#ifndef ASHLAR_COMMANDS_SHARED_FIELDS_H_
#define ASHLAR_COMMANDS_SHARED_FIELDS_H_

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "allocator/trace/note.h"
#include "commands/shared/json_values.h"

namespace ashlar::report {

template <typename T>
class Fields;

// Of each object of an answer a specialisation, beside the answer.
template <typename T>
const Fields<T>& FieldsOf();

// The objects of a schema by name, in the order in which they were first needed.
class Definitions {
 public:
  // A reference to the object, which `make` makes where it is not there yet.
  Json Reference(absl::string_view name, const std::function<Json(Definitions&)>& make);
  const Json::Members& all() const { return all_; }

 private:
  Json::Members all_;
};

// Nothing where the text is empty.
inline std::optional<std::string> NonEmpty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

// The schema, of a value that may be null.
Json NullOr(const Json& schema);

template <typename Value>
struct ValueOf {
  static Json ToJson(const Value& value) {
    if constexpr (std::is_constructible_v<Json, const Value&>) {
      return Json(value);
    } else {
      return FieldsOf<Value>().ToJson(value);
    }
  }
  static Json Schema(Definitions& definitions) {
    if constexpr (std::same_as<Value, bool>) {
      return {{"type", "boolean"}};
    } else if constexpr (std::unsigned_integral<Value>) {
      return {{"type", "integer"}, {"minimum", 0}};
    } else if constexpr (std::signed_integral<Value>) {
      return {{"type", "integer"}};
    } else if constexpr (std::floating_point<Value>) {
      return {{"type", "number"}};
    } else if constexpr (std::is_constructible_v<Json, const Value&>) {
      return {{"type", "string"}};
    } else {
      const auto& fields = FieldsOf<Value>();
      return definitions.Reference(fields.name(), [&](Definitions& all) { return fields.Schema(all); });
    }
  }
};

template <typename Value>
struct ValueOf<std::optional<Value>> {
  static Json ToJson(const std::optional<Value>& value) {
    return value.has_value() ? ValueOf<Value>::ToJson(*value) : Json();
  }
  static Json Schema(Definitions& definitions) { return NullOr(ValueOf<Value>::Schema(definitions)); }
};

template <typename Value>
struct ValueOf<std::vector<Value>> {
  static Json ToJson(const std::vector<Value>& values) {
    Json out = Json::Array();
    for (const Value& value : values) out.Append(ValueOf<Value>::ToJson(value));
    return out;
  }
  static Json Schema(Definitions& definitions) {
    Json out;
    out["type"] = "array";
    out["items"] = ValueOf<Value>::Schema(definitions);
    return out;
  }
};

template <typename Value>
Json JsonOf(const Value& value) {
  return ValueOf<Value>::ToJson(value);
}

template <typename T>
class Fields {
 public:
  // `name`: of the definition in the schema.
  explicit Fields(absl::string_view name) : name_(name) {}

  // `value(of)` is what the field says of a T.
  template <typename Get>
  Fields& Add(absl::string_view key, Get value, absl::string_view description = "") {
    using Value = std::decay_t<std::invoke_result_t<Get, const T&>>;
    return AddField(
        key, [value](const T& of) { return ValueOf<Value>::ToJson(value(of)); }, &ValueOf<Value>::Schema, description);
  }
  // One of these words.
  template <typename Get>
  Fields& AddWord(absl::string_view key, Get word, const std::vector<absl::string_view>& words,
                  absl::string_view description) {
    Json schema = {{"type", "string"}};
    schema["enum"] = Json::Array();
    for (const absl::string_view one : words) schema["enum"].Append(one);
    return AddField(
        key, [word](const T& of) { return Json(word(of)); }, [schema](Definitions&) { return schema; }, description);
  }
  // The field before has at least so many items, or is no lower number.
  Fields& AtLeast(std::int64_t least) {
    fields_.back().least = least;
    return *this;
  }
  // The fields of a part, or of the object that this one shows.
  template <typename Part, typename Get>
  Fields& AddFrom(const Fields<Part>& fields, Get part) {
    for (const auto& field : fields.fields_) {
      fields_.push_back({field.key, [field, part](const T& of) { return field.value(part(of)); }, field.schema,
                         field.description, field.least});
    }
    return *this;
  }
  // Some of the fields, as an object of another name.
  using Keys = std::initializer_list<absl::string_view>;
  Fields Only(absl::string_view name, Keys keys) const { return Chosen(name, keys, true); }
  Fields AllBut(absl::string_view name, Keys keys) const { return Chosen(name, keys, false); }

  const std::string& name() const { return name_; }

  Json ToJson(const T& of) const {
    Json out = Json::Object();
    for (const Field& field : fields_) out[field.key] = field.value(of);
    return out;
  }

  Json Schema(Definitions& definitions) const {
    Json required = Json::Array();
    Json properties = Json::Object();
    for (const Field& field : fields_) {
      required.Append(field.key);
      Json& schema = properties[field.key] = field.schema(definitions);
      if (field.least.has_value()) schema[schema.Has("items") ? "minItems" : "minimum"] = *field.least;
      if (!field.description.empty()) schema["description"] = field.description;
    }
    Json out;
    out["type"] = "object";
    out["additionalProperties"] = false;
    out["required"] = required;
    out["properties"] = properties;
    return out;
  }

 private:
  template <typename Other>
  friend class Fields;

  struct Field {
    std::string key;
    std::function<Json(const T&)> value;
    std::function<Json(Definitions&)> schema;
    std::string description;
    std::optional<std::int64_t> least = {};
  };

  Fields& AddField(absl::string_view key, std::function<Json(const T&)> value, std::function<Json(Definitions&)> schema,
                   absl::string_view description) {
    fields_.push_back({std::string(key), std::move(value), std::move(schema), std::string(description)});
    return *this;
  }

  Fields Chosen(absl::string_view name, Keys keys, bool are_chosen) const {
    Fields out(name);
    for (const Field& field : fields_) {
      const bool is_named = std::find(keys.begin(), keys.end(), field.key) != keys.end();
      if (is_named == are_chosen) out.fields_.push_back(field);
    }
    return out;
  }

  std::string name_;
  std::vector<Field> fields_;
};

template <>
const Fields<trace::Note>& FieldsOf<trace::Note>();

// The whole schema of an answer, as docs/schemas/NAME.schema.json has it: a property a line.
std::string SchemaText(absl::string_view title, absl::string_view description, absl::string_view root,
                       const Definitions& definitions);

template <typename T>
std::string SchemaTextOf(absl::string_view title, absl::string_view description) {
  Definitions definitions;
  ValueOf<T>::Schema(definitions);
  return SchemaText(title, description, FieldsOf<T>().name(), definitions);
}

}  // namespace ashlar::report

#endif  // ASHLAR_COMMANDS_SHARED_FIELDS_H_
