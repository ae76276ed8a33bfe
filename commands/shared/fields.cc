#include "commands/shared/fields.h"

#include <algorithm>
#include <cstddef>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace ashlar::report {
namespace {

constexpr std::size_t kSchemaColumns = 120;

std::string OnOneLine(const Json& json) {
  if (const auto* members = std::get_if<Json::Members>(&json.value())) {
    const auto append = [](std::string* out, const auto& member) {
      absl::StrAppend(out, Json(member.first).ToCompactText(), ": ", OnOneLine(member.second));
    };
    return absl::StrCat("{", absl::StrJoin(*members, ", ", append), "}");
  }
  if (const auto* items = std::get_if<Json::Items>(&json.value())) {
    const auto append = [](std::string* out, const Json& item) { absl::StrAppend(out, OnOneLine(item)); };
    return absl::StrCat("[", absl::StrJoin(*items, ", ", append), "]");
  }
  return json.ToCompactText();
}

// "required" of an object: on one line, or packed between brackets that have lines of their own.
std::string Packed(const Json& names) {
  constexpr absl::string_view kNamesIndent = "\n        ";
  std::string line = OnOneLine(names);
  if (line.size() + 18 <= kSchemaColumns) return line;
  std::string out = "[";
  std::size_t width = kSchemaColumns;
  const Json::Items& items = std::get<Json::Items>(names.value());
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string name = absl::StrCat(items[i].ToCompactText(), i + 1 < items.size() ? "," : "");
    const bool fits = width + 1 + name.size() <= kSchemaColumns;
    absl::StrAppend(&out, fits ? " " : kNamesIndent, name);
    width = (fits ? width + 1 : kNamesIndent.size() - 1) + name.size();
  }
  return absl::StrCat(out, "\n      ]");
}

std::string ObjectText(const Json& schema) {
  std::vector<std::string> lines;
  for (const auto& [key, value] : std::get<Json::Members>(schema.value())) {
    std::string text = key == "required" ? Packed(value) : OnOneLine(value);
    if (key == "properties") {
      const auto append = [](std::string* out, const auto& member) {
        absl::StrAppend(out, "        ", Json(member.first).ToCompactText(), ": ", OnOneLine(member.second));
      };
      text = absl::StrCat("{\n", absl::StrJoin(std::get<Json::Members>(value.value()), ",\n", append), "\n      }");
    }
    lines.push_back(absl::StrCat("      \"", key, "\": ", text));
  }
  return absl::StrCat("{\n", absl::StrJoin(lines, ",\n"), "\n    }");
}

}  // namespace

Json Definitions::Reference(absl::string_view name, const std::function<Json(Definitions&)>& make) {
  const auto has_name = [name](const auto& member) { return member.first == name; };
  if (std::none_of(all_.begin(), all_.end(), has_name)) {
    // Its place first: `make` adds what the object needs.
    const std::size_t place = all_.size();
    all_.emplace_back(std::string(name), Json());
    Json made = make(*this);
    all_[place].second = std::move(made);
  }
  return {{"$ref", absl::StrCat("#/$defs/", name)}};
}

Json NullOr(const Json& schema) {
  if (!schema.Has("type")) {
    Json out;
    out["anyOf"] = Json::Array({Json({{"type", "null"}}), schema});
    return out;
  }
  Json out = schema;
  out["type"] = Json::Array({out["type"], "null"});
  return out;
}

Json ArrayOf(const Json& items) {
  Json out;
  out["type"] = "array";
  out["items"] = items;
  return out;
}

void FieldList::Add(absl::string_view key, Value value, SchemaMaker schema, absl::string_view description) {
  fields_.push_back({std::string(key), value, schema, std::string(description)});
}

void FieldList::AddWord(absl::string_view key, Value word, SchemaMaker schema,
                        const std::vector<absl::string_view>& words, absl::string_view description) {
  Add(key, word, schema, description);
  fields_.back().words = std::vector<std::string>(words.begin(), words.end());
}

void FieldList::AddFrom(const FieldList& fields, Part part) {
  for (Field field : fields.fields_) {
    field.path.insert(field.path.begin(), part);
    fields_.push_back(std::move(field));
  }
}

FieldList FieldList::Chosen(absl::string_view name, Keys keys, bool are_chosen) const {
  FieldList out(name);
  for (const Field& field : fields_) {
    const bool is_named = std::find(keys.begin(), keys.end(), field.key) != keys.end();
    if (is_named == are_chosen) out.fields_.push_back(field);
  }
  return out;
}

Json FieldList::ToJson(const void* of) const {
  Json out = Json::Object();
  for (const Field& field : fields_) {
    const void* object = of;
    for (const Part& part : field.path) object = part.call(part.get, object);
    out[field.key] = field.value.call(field.value.get, object);
  }
  return out;
}

Json FieldList::Reference(Definitions& definitions) const {
  return definitions.Reference(name_, [this](Definitions& all) { return Schema(all); });
}

Json FieldList::Schema(Definitions& definitions) const {
  Json required = Json::Array();
  Json properties = Json::Object();
  for (const Field& field : fields_) {
    required.Append(field.key);
    properties[field.key] = field.SchemaIn(definitions);
  }
  Json out;
  out["type"] = "object";
  out["additionalProperties"] = false;
  out["required"] = required;
  out["properties"] = properties;
  return out;
}

Json FieldList::Field::SchemaIn(Definitions& definitions) const {
  Json out = schema(definitions);
  if (!words.empty()) {
    const bool may_be_null = std::holds_alternative<Json::Items>(out["type"].value());
    out["enum"] = words;
    if (may_be_null) out["enum"].Append(nullptr);
  }
  if (least.has_value()) out[out.Has("items") ? "minItems" : "minimum"] = *least;
  if (most.has_value()) out["maximum"] = *most;
  if (!description.empty()) out["description"] = description;
  return out;
}

template <>
const Fields<trace::Note>& FieldsOf<trace::Note>() {
  static const auto* fields = new Fields<trace::Note>(Fields<trace::Note>("note")
                                                          .Add("name", &trace::Note::name, "Stable key.")
                                                          .Add("message", &trace::Note::message, "One sentence.")
                                                          .Add("count", &trace::Note::count, "How often."));
  return *fields;
}

std::string SchemaText(absl::string_view command, absl::string_view description, const Json& root,
                       const Definitions& definitions) {
  const auto append = [](std::string* out, const auto& member) {
    absl::StrAppend(out, "    ", Json(member.first).ToCompactText(), ": ", ObjectText(member.second));
  };
  std::string out =
      absl::StrCat("{\n  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n  \"$id\": ",
                   Json(absl::StrCat("https://ashlar.invalid/schemas/", command, ".schema.json")).ToCompactText(),
                   ",\n  \"title\": ", Json(absl::StrCat("ashlar ", command, " --json")).ToCompactText(),
                   ",\n  \"description\": ", Json(description).ToCompactText());
  for (const auto& [key, value] : std::get<Json::Members>(root.value())) {
    absl::StrAppend(&out, ",\n  ", Json(key).ToCompactText(), ": ", OnOneLine(value));
  }
  return absl::StrCat(out, ",\n  \"$defs\": {\n", absl::StrJoin(definitions.all(), ",\n", append), "\n  }\n}\n");
}

}  // namespace ashlar::report
