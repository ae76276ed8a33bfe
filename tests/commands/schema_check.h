// A small validator of JSON Schema for docs/schemas/explain.schema.json: the keywords that file uses, and an error for
// any other, so that no rule is passed over.
//
//   SchemaCheck check(schema);
//   check.Check(document);                       // gathers errors, as "path: what is wrong"
//   EXPECT_THAT(check.errors(), IsEmpty());
//   EXPECT_THAT(check.UnseenObjects(), IsEmpty());  // objects of the schema that no document so far had
#ifndef ASHLAR_TESTS_COMMANDS_SCHEMA_CHECK_H_
#define ASHLAR_TESTS_COMMANDS_SCHEMA_CHECK_H_

#include <set>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace ashlar::tests {

class SchemaCheck {
 public:
  using Json = nlohmann::json;

  explicit SchemaCheck(Json schema);

  void Check(const Json& document);
  const std::vector<std::string>& errors() const { return errors_; }
  std::vector<std::string> UnseenObjects() const;
  // What the schema itself does badly: an object that lets other keys pass or leaves one optional, a key without a
  // description.
  std::vector<std::string> SchemaFaults() const;

 private:
  std::vector<std::string> Validate(const Json& schema, const Json& value, const std::string& path);
  std::vector<std::string> ValidateObject(const Json& schema, const Json& value, const std::string& path);
  const Json& Resolve(const Json& schema) const;

  Json schema_;
  std::vector<std::string> errors_;
  std::set<std::string> seen_;  // names of definitions with an object that was there
};

}  // namespace ashlar::tests

#endif  // ASHLAR_TESTS_COMMANDS_SCHEMA_CHECK_H_
