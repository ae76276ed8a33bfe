#include "analyzer/formats/pickle/pickle.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/analyzer/formats/pickle/pickle_emitter.h"

namespace ashlar::formats::pickle {
namespace {

using namespace std::string_literals;  // NUL bytes in literals

std::string PickleErrorOf(const std::string& bytes, const PickleLimits& limits = {}) {
  const auto document = Read(bytes, limits);
  return document.ok() ? "no error" : std::string(document.status().message());
}

// The document as text, three levels deep, in Python's spelling.
std::string Print(const Document& document, const Value& value, int depth = 0) {
  switch (value.kind()) {
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return value.payload() ? "True" : "False";
    case Kind::kInt:
      return absl::StrCat(static_cast<std::int64_t>(value.payload()));
    case Kind::kUint:
      return absl::StrCat(value.payload());
    case Kind::kBigInt:
      return "big";
    case Kind::kFloat:
      return absl::StrCat(value.AsDouble());
    case Kind::kString:
      return absl::StrCat("'", document.Text(value), "'");
    case Kind::kBytes:
      return absl::StrCat("b'", document.Text(value), "'");
    default:
      break;
  }
  std::string out = value.kind() == Kind::kList ? "[" : value.kind() == Kind::kTuple ? "(" : "{";
  ItemCursor items = document.Items(value);
  for (int i = 0; const Value* item = depth < 3 ? items.Next() : nullptr; ++i) {
    absl::StrAppend(&out,
                    i == 0                                      ? ""
                    : value.kind() == Kind::kDict && i % 2 == 1 ? ":"
                                                                : ",",
                    Print(document, *item, depth + 1));
  }
  return out + (value.kind() == Kind::kList ? "]" : value.kind() == Kind::kTuple ? ")" : "}");
}

std::string Load(const std::string& bytes) {
  const auto document = Read(bytes);
  return document.ok() ? Print(*document, document->root()) : document.status().ToString();
}

// The bytes are what CPython 3 printed for pickle.dumps(value, protocol), pasted here.
TEST(PickleTest, ReadsWhatPythonWrites) {
  EXPECT_EQ(Load("\x80\x04\x95\x12\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01"
                 "a\x94]\x94(K\x01K\x02K\x03"
                 "es."s),
            "{'a':[1,2,3]}");
  EXPECT_EQ(Load("\x80\x02}q\x00X\x01\x00\x00\x00"
                 "aq\x01]q\x02(K\x01K\x02K\x03"
                 "es."s),
            "{'a':[1,2,3]}");
  EXPECT_EQ(Load("\x80\x03(K\x01\x88\x89NG?\xe0\x00\x00\x00\x00\x00\x00tq\x00."s), "(1,True,False,None,0.5)");
  EXPECT_EQ(Load("\x80\x04\x95\x0d\x00\x00\x00\x00\x00\x00\x00\x8f\x94(K\x01K\x02\x90."s).substr(0, 9), "DATA_LOSS");
  EXPECT_EQ(Load("\x80\x04\x95\x09\x00\x00\x00\x00\x00\x00\x00\x8f\x94(K\x01K\x02\x90."s), "{1,2}");
}

TEST(PickleTest, ReadsNumbersOfEveryWidth) {
  EXPECT_EQ(Load("\x80\x02K\xff."s), "255");
  EXPECT_EQ(Load("\x80\x02M\x00\x01."s), "256");
  EXPECT_EQ(Load("\x80\x02J\xff\xff\xff\xff."s), "-1");
  EXPECT_EQ(Load("\x80\x02\x8a\x00."s), "0");
  EXPECT_EQ(Load("\x80\x02\x8a\x01\x80."s), "-128");
  EXPECT_EQ(Load("\x80\x02\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f."s), "9223372036854775807");
  EXPECT_EQ(Load("\x80\x02\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80."s), "-9223372036854775808");
  EXPECT_EQ(Load("\x80\x02\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00."s), "18446744073709551615");
  EXPECT_EQ(Load("\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01."s), "big");
  EXPECT_EQ(Load("\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\xff."s), "big");
  EXPECT_EQ(Load("\x80\x02\x8a\x0a\xfe\xff\xff\xff\xff\xff\xff\xff\xff\xff."s), "-2");
  EXPECT_EQ(Load("\x80\x02\x8b\x02\x00\x00\x00\x00\x02."s), "512");
  EXPECT_EQ(Load("\x80\x02I140161023213568\n."s), "140161023213568");
  EXPECT_EQ(Load("\x80\x02I01\n."s), "True");
}

TEST(PickleTest, ReadsTextsOfEveryKind) {
  EXPECT_EQ(Load("\x80\x02U\x02hi."s), "'hi'");
  EXPECT_EQ(Load("\x80\x02T\x02\x00\x00\x00hi."s), "'hi'");
  EXPECT_EQ(Load("\x80\x02X\x02\x00\x00\x00hi."s), "'hi'");
  EXPECT_EQ(Load("\x80\x04\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi."s), "'hi'");
  EXPECT_EQ(Load("\x80\x03"
                 "C\x02hi."s),
            "b'hi'");
  EXPECT_EQ(Load("\x80\x03"
                 "B\x02\x00\x00\x00hi."s),
            "b'hi'");
  EXPECT_EQ(Load("\x80\x04\x8e\x02\x00\x00\x00\x00\x00\x00\x00hi."s), "b'hi'");
}

TEST(PickleTest, ReadsContainersOfEveryMaking) {
  EXPECT_EQ(Load("\x80\x02(K\x01K\x02l."s), "[1,2]");
  EXPECT_EQ(Load("\x80\x02(K\x01K\x02"
                 "d."s),
            "{1:2}");
  EXPECT_EQ(Load("\x80\x02(K\x01K\x02t."s), "(1,2)");
  EXPECT_EQ(Load("\x80\x02)."s), "()");
  EXPECT_EQ(Load("\x80\x02K\x01\x85."s), "(1)");
  EXPECT_EQ(Load("\x80\x02K\x01K\x02K\x03\x87."s), "(1,2,3)");
  EXPECT_EQ(Load("\x80\x02]K\x01"
                 "aK\x02"
                 "a."s),
            "[1,2]");
  EXPECT_EQ(Load("\x80\x02}K\x01K\x02sK\x03K\x04s."s), "{1:2,3:4}");
  EXPECT_EQ(Load("\x80\x04(K\x01\x91."s), "{1}");
  EXPECT_EQ(Load("\x80\x02K\x01K\x02"
                 "0."s),
            "1");
  EXPECT_EQ(Load("\x80\x02K\x01(K\x02K\x03"
                 "1."s),
            "1");
  EXPECT_EQ(Load("\x80\x02K\x01(0."s), "1");
  EXPECT_EQ(Load("\x80\x02]K\x07"
                 "2\x86"
                 "a."s),
            "[(7,7)]");
}

TEST(PickleTest, AListWrittenInBatchesIsOneList) {
  // Other containers between the batches split it into chunks.
  EXPECT_EQ(Load("\x80\x02](K\x01](K\x09"
                 "ee(K\x03](K\x08"
                 "eeK\x05"
                 "a."s),
            "[1,[9],3,[8],5]");
}

TEST(PickleTest, AReferenceIsTheObjectItself) {
  EXPECT_EQ(Load("\x80\x02](]q\x01h\x01(K\x05"
                 "e0h\x01"
                 "e."s),
            "[[5],[5]]");
  EXPECT_EQ(Load("\x80\x02]q\x01]q\x02(h\x01h\x01"
                 "eh\x01K\x05"
                 "a0."s),
            "[[5],[5]]");
}

TEST(PickleTest, RefusesEveryOpcodeThatRunsCode) {
  EXPECT_EQ(PickleErrorOf("\x80\x02"
                          "cos\nsystem\n."s),
            "this pickle wants to run code (GLOBAL at byte 2): not a memory snapshot");
  const std::vector<std::pair<std::string, std::string>> kCode = {
      {"P", "PERSID"},  {"Q", "BINPERSID"}, {"R", "REDUCE"},       {"b", "BUILD"},
      {"i", "INST"},    {"o", "OBJ"},       {"\x81", "NEWOBJ"},    {"\x82", "EXT1"},
      {"\x83", "EXT2"}, {"\x84", "EXT4"},   {"\x92", "NEWOBJ_EX"}, {"\x93", "STACK_GLOBAL"}};
  for (const auto& [opcode, name] : kCode) {
    EXPECT_EQ(PickleErrorOf("\x80\x02NN"s + opcode + "."),
              "this pickle wants to run code (" + name + " at byte 4): not a memory snapshot");
  }
}

TEST(PickleTest, RefusesTextProtocolsPolitely) {
  EXPECT_EQ(PickleErrorOf("(lp0\n."), "pickle: byte 0: does not start with a protocol of 2 or later");
  EXPECT_EQ(PickleErrorOf("\x80\x02S'a'\n."s),
            "pickle: byte 2: STRING is not used by memory snapshots; write the file with protocol 2 to 5");
  EXPECT_EQ(PickleErrorOf("\x80\x06."s), "pickle: byte 0: protocol 6 is not known here (2 to 5 are)");
  EXPECT_EQ(PickleErrorOf("\x80\x02\xff."s), "pickle: byte 2: 0xff is no opcode: not a pickle, or damaged");
}

TEST(PickleTest, TruncationIsNamed) {
  EXPECT_EQ(PickleErrorOf(""), "pickle: the input ends at byte 0 before the protocol number: the file is truncated");
  EXPECT_EQ(PickleErrorOf("\x80\x02"s),
            "pickle: the input ends at byte 2 before the STOP opcode: the file is truncated");
  EXPECT_EQ(PickleErrorOf("\x80\x02X\xff\xff\xff\xffhi."s),
            "pickle: the input ends at byte 10 before 4294967295 bytes that byte 2 announces: the file is truncated");
  EXPECT_EQ(PickleErrorOf("\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f."s),
            "pickle: the input ends at byte 12 before the frame of 9223372036854775807 bytes that byte 2 announces: "
            "the file is truncated");
}

TEST(PickleTest, BrokenStructureIsAnError) {
  for (const std::string& body : {"."s,
                                  "e."s,
                                  "]e."s,
                                  "](K\x01u."s,
                                  "}(K\x01u."s,
                                  "}K\x01s."s,
                                  "(K\x01"
                                  "d."s,
                                  "0."s,
                                  "1."s,
                                  "2."s,
                                  "h\x05."s,
                                  "\x94."s,
                                  "K\x01\x86."s,
                                  "](\x86."s,
                                  "K\x01(\x85."s,
                                  "Nq\xff."s,
                                  "Nr\xff\xff\xff\xff."s,
                                  "Ix\n."s,
                                  "]K\x01s."s,
                                  "Na."s}) {
    const auto document = Read("\x80\x02"s + body);
    EXPECT_EQ(document.status().code(), absl::StatusCode::kInvalidArgument) << absl::StrCat("body ", body.size());
    EXPECT_TRUE(absl::StartsWith(document.status().message(), "pickle: byte ")) << document.status();
  }
}

TEST(PickleTest, DeepNestingNeedsNoStack) {
  const int depth = 1000000;
  const std::string body = std::string(depth, ']') + std::string(depth - 1, 'a');
  EXPECT_TRUE(Read("\x80\x02"s + body + ".").ok());
  EXPECT_TRUE(Read("\x80\x02"s + std::string(depth, '(') + std::string(depth, 't') + ".").ok());
}

TEST(PickleTest, AMemoBombCostsNoMoreThanItsBytes) {
  // Each list holds the one before ten times: 10^60 leaves when unfolded.
  std::string body = "]q\x00"s;
  for (int level = 1; level < 60; ++level) {
    body += "](";
    for (int i = 0; i < 10; ++i) body += "h"s + static_cast<char>(level - 1);
    body += "eq"s + static_cast<char>(level);
  }
  const auto document = Read("\x80\x02"s + body + ".");
  ASSERT_TRUE(document.ok()) << document.status();
  EXPECT_EQ(document->container_count(), 60u);
  EXPECT_EQ(document->item_count(), 590u);
}

TEST(PickleTest, PutsCostRoomOnceASlot) {
  const PickleLimits few{.max_values = 10};
  std::string same, others;
  for (int i = 0; i < 1000; ++i) {
    same += "q\x00"s;
    others += "\x94"s;
  }
  EXPECT_TRUE(Read("\x80\x02]"s + same + "h\x00\x86."s, few).ok());
  EXPECT_EQ(Read("\x80\x04]"s + others + ".", few).status().code(), absl::StatusCode::kResourceExhausted);
  // The value that was put last.
  const std::string first = "q\x00"s, second = "q\x01"s, pop = "0";
  const auto document = Read("\x80\x02K\x01"s + first + pop + "K\x02" + first + pop + "K\x03" + first + pop + "K\x04" +
                             second + pop + "h\x00h\x01\x86."s);
  ASSERT_TRUE(document.ok()) << document.status();
  ItemCursor items = document->Items(document->root());
  EXPECT_EQ(items.Next()->payload(), 3u);
  EXPECT_EQ(items.Next()->payload(), 4u);
}

TEST(PickleTest, ACycleIsHarmless) {
  const auto document = Read(
      "\x80\x02]q\x00h\x00"
      "a."s);
  ASSERT_TRUE(document.ok()) << document.status();
  const Value* item = document->Items(document->root()).Next();
  ASSERT_NE(item, nullptr);
  EXPECT_EQ(item->payload(), document->root().payload());
}

TEST(PickleTest, TheLimitHolds) {
  const std::string bytes = emit::File(emit::List({emit::Int(1), emit::Int(2), emit::Int(3)}));
  EXPECT_EQ(PickleErrorOf(bytes, PickleLimits{4}), "no error");
  EXPECT_EQ(PickleErrorOf(bytes, PickleLimits{3}),
            absl::StrCat("pickle: more values than the limit at byte ", bytes.size() - 2));
}

TEST(PickleTest, ValuesKnowWhereTheyWere) {
  const auto document = Read("\x80\x02](K\x01U\x01xe."s);
  ASSERT_TRUE(document.ok());
  ItemCursor items = document->Items(document->root());
  EXPECT_EQ(document->root().offset(), 2u);
  EXPECT_EQ(items.Next()->offset(), 4u);
  EXPECT_EQ(items.Next()->offset(), 6u);
  EXPECT_EQ(items.Next(), nullptr);
}

}  // namespace
}  // namespace ashlar::formats::pickle
