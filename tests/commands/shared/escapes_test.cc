// Text that a file names may be any bytes; no report passes on what a terminal would obey.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "analyzer/formats/utf8.h"
#include "commands/explain/explain_report.h"
#include "commands/shared/json_values.h"
#include "commands/shared/layout.h"
#include "commands/shared/markdown.h"
#include "nlohmann/json.hpp"

namespace ashlar::report {
namespace {

using testing::HasSubstr;
using testing::Not;

// ESC, DEL, C1 (CSI) and two bytes that are no UTF-8, around letters of one, two and three bytes.
constexpr char kAnyBytes[] = "a\x1b[2J\x7f\xc2\x9b\xff\x9b\xc3\xa9\xe2\x82\xac\n";

TEST(EscapesTest, PrintableTextHasNoControls) {
  EXPECT_EQ(Printable(kAnyBytes), "a?[2J????\xc3\xa9\xe2\x82\xac?");
  EXPECT_EQ(Printable("\xc2\xa0\xc2"), "\xc2\xa0?") << "a blank of Latin-1 is no control, half a character is none";
}

TEST(EscapesTest, JsonHasThemAsEscapes) {
  const Json json = {{"name", std::string(kAnyBytes)}};
  for (const std::string& text : {json.ToText(), json.ToCompactText(), *CompactJson("[\"\xc2\x9b\\u001b\x7f\"]")}) {
    EXPECT_TRUE(formats::IsUtf8(text));
    for (const char* control : {"\x1b", "\x7f", "\xc2\x9b"}) EXPECT_THAT(text, Not(HasSubstr(control)));
    EXPECT_THAT(text, HasSubstr("\\u007f"));
    EXPECT_THAT(text, HasSubstr("\\u009b"));
  }
  EXPECT_EQ(nlohmann::json::parse(json.ToText())["name"],
            "a\x1b[2J\x7f\xc2\x9b\xef\xbf\xbd\xef\xbf\xbd\xc3\xa9\xe2\x82\xac\n");
}

TEST(EscapesTest, MarkdownHasNoControls) { EXPECT_EQ(MarkdownText(kAnyBytes), "a?\\[2J????\xc3\xa9\xe2\x82\xac?"); }

}  // namespace
}  // namespace ashlar::report
