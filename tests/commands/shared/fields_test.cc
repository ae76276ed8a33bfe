// An answer's fields: its JSON, its schema, and that docs/schemas has the schema that they make.
#include "commands/shared/fields.h"

#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "commands/bound/bound.h"
#include "commands/diff/diff.h"
#include "commands/fleet/fleet.h"
#include "commands/plan/plan.h"
#include "commands/sweep/sweep.h"
#include "commands/watch/watch.h"
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
                                 .Add(
                                     "name", [](const auto& part) { return part.name; }, "Of the \"part\".")
                                 .AddWord(
                                     "kind", [](const auto& part) { return part.is_whole ? "whole" : "cut"; },
                                     {"whole", "cut"}, "Whether it is cut."));
  return *fields;
}

template <>
const Fields<FieldsAnswer>& FieldsOf<FieldsAnswer>() {
  static const auto* fields =
      new Fields<FieldsAnswer>(Fields<FieldsAnswer>("answer")
                                   .Add(
                                       "bytes", [](const auto& of) { return of.bytes; }, "All.")
                                   .Add(
                                       "share", [](const auto& of) { return of.share; }, "Of them.")
                                   .AtLeast(-1)
                                   .Add("part", [](const auto& of) { return of.part; })
                                   .Add(
                                       "parts", [](const auto& of) { return of.parts; }, "Largest first.")
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
  Fields<FieldsPart> other("other");
  other.AddFrom(FieldsOf<FieldsAnswer>().Only("", {"bytes"}),
                [](const FieldsPart& part) { return FieldsAnswer{.bytes = part.name.size()}; });
  EXPECT_EQ(other.ToJson({"four", false}).ToCompactText(), R"({"bytes":4})");
}

TEST(FieldsTest, TypesOfValuesTellTheSchema) {
  EXPECT_EQ(SchemaTextOf<FieldsAnswer>("ashlar test", "An answer."), R"({
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "title": "ashlar test",
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

// Write the schema anew from the file that a failure names.
void ExpectSchema(const std::string& name, const std::string& wanted) {
  std::ifstream file(absl::StrCat(ASHLAR_SOURCE_DIR, "/docs/schemas/", name));
  const std::string schema((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (schema == wanted) return;
  const std::string path = testing::TempDir() + name;
  std::ofstream(path) << wanted;
  ADD_FAILURE() << "docs/schemas/" << name << " is not what the fields make: take " << path
                << ", and run python/make_results.py";
}

TEST(FieldsTest, TheSchemasAreTheFields) {
  ExpectSchema("bound.schema.json", BoundSchema());
  ExpectSchema("diff.schema.json", DiffSchema());
  ExpectSchema("fleet.schema.json", FleetSchema());
  ExpectSchema("plan.schema.json", PlanSchema());
  ExpectSchema("sweep.schema.json", SweepSchema());
  ExpectSchema("watch.schema.json", WatchSchema());
}

}  // namespace
}  // namespace ashlar::report
