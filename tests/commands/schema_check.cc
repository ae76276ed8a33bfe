#include "tests/commands/schema_check.h"

#include <utility>

namespace ashlar::tests {
namespace {

using Json = nlohmann::json;

constexpr char kDefinitions[] = "#/$defs/";

bool IsOfType(const Json& value, const std::string& type) {
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.is_boolean();
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "array") return value.is_array();
  return type == "object" && value.is_object();
}

bool IsOfAnyType(const Json& value, const Json& types) {
  if (types.is_string()) return IsOfType(value, types.get<std::string>());
  for (const Json& type : types) {
    if (IsOfType(value, type.get<std::string>())) return true;
  }
  return false;
}

bool IsKnownKeyword(const std::string& keyword) {
  static const std::set<std::string> kKnown = {
      "$schema", "$id",  "title",   "description", "$defs",    "$ref",       "anyOf",    "type",
      "items",   "enum", "minimum", "maximum",     "minItems", "properties", "maxItems", "additionalProperties",
      "required"};
  return kKnown.count(keyword) > 0;
}

void Append(std::vector<std::string> more, std::vector<std::string>& out) {
  for (std::string& line : more) out.push_back(std::move(line));
}

bool IsWithinBounds(const Json& schema, const Json& value) {
  if (!value.is_number()) return true;
  if (schema.contains("minimum") && value.get<double>() < schema["minimum"].get<double>()) return false;
  return !schema.contains("maximum") || value.get<double>() <= schema["maximum"].get<double>();
}

}  // namespace

SchemaCheck::SchemaCheck(Json schema) : schema_(std::move(schema)) {}

void SchemaCheck::Check(const Json& document) { Append(Validate(schema_, document, "$"), errors_); }

const Json& SchemaCheck::Resolve(const Json& schema) const {
  if (!schema.contains("$ref")) return schema;
  return schema_.at("$defs").at(schema["$ref"].get<std::string>().substr(sizeof(kDefinitions) - 1));
}

std::vector<std::string> SchemaCheck::Validate(const Json& schema, const Json& value, const std::string& path) {
  std::vector<std::string> out;
  for (const auto& [keyword, rule] : schema.items()) {
    if (!IsKnownKeyword(keyword)) out.push_back(path + ": the schema says '" + keyword + "', not known here");
  }
  if (schema.contains("$ref")) {
    if (value.is_object()) seen_.insert(schema["$ref"].get<std::string>().substr(sizeof(kDefinitions) - 1));
    Append(Validate(Resolve(schema), value, path), out);
  }
  if (schema.contains("anyOf")) {
    std::vector<std::string> first_errors;
    bool is_any = false;
    for (const Json& choice : schema["anyOf"]) {
      std::vector<std::string> errors = Validate(choice, value, path);
      is_any = is_any || errors.empty();
      // The branch of the same kind says most.
      if (!errors.empty() && (first_errors.empty() || value.is_object() == (choice.contains("$ref"))))
        first_errors = std::move(errors);
    }
    if (!is_any) Append(std::move(first_errors), out);
  }
  if (schema.contains("type") && !IsOfAnyType(value, schema["type"])) {
    out.push_back(path + ": " + value.dump() + " is not of type " + schema["type"].dump());
    return out;
  }
  if (schema.contains("enum") && std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
    out.push_back(path + ": " + value.dump() + " is not one of " + schema["enum"].dump());
  if (!IsWithinBounds(schema, value)) out.push_back(path + ": " + value.dump() + " is out of bounds");
  if (value.is_object() && schema.contains("properties")) Append(ValidateObject(schema, value, path), out);
  if (value.is_array() && schema.contains("items")) {
    if (value.size() < schema.value("minItems", 0u)) out.push_back(path + ": too short");
    if (value.size() > schema.value("maxItems", 1'000'000u)) out.push_back(path + ": too long");
    for (std::size_t i = 0; i < value.size(); ++i) {
      Append(Validate(schema["items"], value[i], path + "[" + std::to_string(i) + "]"), out);
    }
  }
  return out;
}

std::vector<std::string> SchemaCheck::ValidateObject(const Json& schema, const Json& value, const std::string& path) {
  std::vector<std::string> out;
  for (const Json& key : schema["required"]) {
    if (!value.contains(key.get<std::string>())) out.push_back(path + ": '" + key.get<std::string>() + "' is missing");
  }
  for (const auto& [key, entry] : value.items()) {
    if (!schema["properties"].contains(key)) {
      out.push_back(path + ": '" + key + "' is not in the schema");
    } else {
      Append(Validate(schema["properties"][key], entry, path + "." + key), out);
    }
  }
  return out;
}

std::vector<std::string> SchemaCheck::UnseenObjects() const {
  std::vector<std::string> out;
  for (const auto& [name, definition] : schema_["$defs"].items()) {
    if (definition.contains("properties") && seen_.count(name) == 0) out.push_back(name);
  }
  return out;
}

std::vector<std::string> SchemaCheck::SchemaFaults() const {
  std::vector<std::string> out;
  for (const auto& [name, definition] : schema_["$defs"].items()) {
    if (!definition.contains("properties")) continue;
    if (definition.value("additionalProperties", true)) out.push_back(name + " lets other keys pass");
    std::set<std::string> keys, required;
    for (const auto& [key, entry] : definition["properties"].items()) {
      keys.insert(key);
      const std::string text = entry.value("description", "");
      if (text.empty() || text.back() != '.') out.push_back(name + "." + key + " has no sentence that describes it");
    }
    for (const Json& key : definition.value("required", Json::array())) required.insert(key.get<std::string>());
    if (keys != required) out.push_back(name + ": required and properties differ");
  }
  return out;
}

}  // namespace ashlar::tests
