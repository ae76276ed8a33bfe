// `ashlar schema`: what it prints of each answer is docs/schemas, so that the file is what the answer's fields make.
#include <filesystem>
#include <set>
#include <sstream>
#include <string>

#include "tests/console/program_run.h"

namespace ashlar {
namespace {

using SchemaCommandTest = CliTest;

TEST_F(SchemaCommandTest, TheSchemasOfAnswersAreTheirFields) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(ASHLAR_SOURCE_DIR "/docs/schemas")) {
    const std::string file = entry.path().filename().string();
    const std::string name = file.substr(0, file.find('.'));
    files.insert(name);
    EXPECT_THAT(FileBytes(entry.path().string()),
                testing::HasSubstr("\"$id\": \"https://ashlar.invalid/schemas/" + file + "\""));
    EXPECT_EQ(Run("schema " + name).out, FileBytes(entry.path().string()))
        << "ashlar schema " << name << " > docs/schemas/" << file << ", then python3 python/make_results.py";
  }
  std::istringstream listed(Run("schema").out);
  std::set<std::string> names;
  for (std::string name; std::getline(listed, name);) names.insert(name);
  EXPECT_EQ(names, files);
}

TEST_F(SchemaCommandTest, ANameThatIsNoneIsOneLine) {
  ExpectError(Run("schema chek"), 2, {"no schema is called 'chek': ", "check", "`ashlar schema` lists them"});
}

}  // namespace
}  // namespace ashlar
