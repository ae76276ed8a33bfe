// An answer's fields: its JSON and its schema.
#include "commands/shared/fields.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace ashlar::report {
namespace {

struct FieldsPart {
  std::string name;
  bool is_whole = false;
};
struct FieldsAnswer {
  std::uint64_t bytes = 0;
  std::optional<double> share = {};
  std::optional<FieldsPart> part = {};
  std::vector<FieldsPart> parts = {};
};

}  // namespace

template <>
const Fields<FieldsPart>& FieldsOf<FieldsPart>() {
  static const auto* fields =
      new Fields<FieldsPart>(Fields<FieldsPart>("part")
                                 .Add("name", &FieldsPart::name, "Of the \"part\".")
                                 .AddWord(
                                     "kind", [](const auto& part) { return part.is_whole ? "whole" : "cut"; },
                                     {"whole", "cut"}, "Whether it is cut."));
  return *fields;
}

template <>
const Fields<FieldsAnswer>& FieldsOf<FieldsAnswer>() {
  static const auto* fields = new Fields<FieldsAnswer>(Fields<FieldsAnswer>("answer")
                                                           .Add("bytes", &FieldsAnswer::bytes, "All.")
                                                           .Add("share", &FieldsAnswer::share, "Of them.")
                                                           .AtLeast(-1)
                                                           .Add("part", &FieldsAnswer::part)
                                                           .Add("parts", &FieldsAnswer::parts, "Largest first.")
                                                           .AtLeast(1));
  return *fields;
}

namespace {

TEST(FieldsTest, JsonHasTheFieldsInTheirOrder) {
  const Fields<FieldsAnswer>& fields = FieldsOf<FieldsAnswer>();
  EXPECT_EQ(fields.ToJson({.bytes = 7, .share = {}, .part = {}, .parts = {}}).ToCompactText(),
            R"({"bytes":7,"share":null,"part":null,"parts":[]})");
  EXPECT_EQ(fields.ToJson({.bytes = 7, .share = 0.5, .part = FieldsPart{"a", true}, .parts = {{"b"}}}).ToCompactText(),
            R"({"bytes":7,"share":0.5,"part":{"name":"a","kind":"whole"},"parts":[{"name":"b","kind":"cut"}]})");
}

TEST(FieldsTest, SomeOfTheFieldsAreAnObjectOfAnotherName) {
  const FieldsAnswer answer = {.bytes = 7, .share = 0.5, .part = {}, .parts = {}};
  EXPECT_EQ(FieldsOf<FieldsAnswer>().Only("short", {"share", "bytes"}).ToJson(answer).ToCompactText(),
            R"({"bytes":7,"share":0.5})");
  EXPECT_EQ(FieldsOf<FieldsAnswer>().AllBut("short", {"part", "parts"}).ToJson(answer).ToCompactText(),
            R"({"bytes":7,"share":0.5})");
  struct Shown {
    const FieldsAnswer& answer;
  };
  Fields<Shown> shown("shown");
  shown.AddFrom(FieldsOf<FieldsAnswer>().Only("", {"bytes"}),
                [](const auto& of) -> const FieldsAnswer& { return of.answer; });
  EXPECT_EQ(shown.ToJson({answer}).ToCompactText(), R"({"bytes":7})");
  Fields<std::vector<Shown>> first("first");
  first.AddFrom(shown, [](const auto& all) -> const Shown& { return all.front(); });
  EXPECT_EQ(first.ToJson({{answer}}).ToCompactText(), R"({"bytes":7})");
}

TEST(FieldsTest, TypesOfValuesTellTheSchema) {
  EXPECT_EQ(SchemaTextOf<FieldsAnswer>("test", "An answer."), R"({
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "$id": "https://ashlar.invalid/schemas/test.schema.json",
  "title": "ashlar test --json",
  "description": "An answer.",
  "$ref": "#/$defs/answer",
  "$defs": {
    "answer": {
      "type": "object",
      "additionalProperties": false,
      "required": ["bytes", "share", "part", "parts"],
      "properties": {
        "bytes": {"type": "integer", "minimum": 0, "description": "All."},
        "share": {"type": ["number", "null"], "minimum": -1, "description": "Of them."},
        "part": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/part"}]},
        "parts": {"type": "array", "items": {"$ref": "#/$defs/part"}, "minItems": 1, "description": "Largest first."}
      }
    },
    "part": {
      "type": "object",
      "additionalProperties": false,
      "required": ["name", "kind"],
      "properties": {
        "name": {"type": "string", "description": "Of the \"part\"."},
        "kind": {"type": "string", "enum": ["whole", "cut"], "description": "Whether it is cut."}
      }
    }
  }
}
)");
}

}  // namespace
}  // namespace ashlar::report
