#include "analyzer/formats/formats.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "analyzer/formats/input_file.h"

namespace ashlar::formats {
namespace {

using namespace std::string_literals;  // NUL bytes in literals

TEST(FormatsTest, TellsKindsByContent) {
  EXPECT_EQ(Sniff(""), InputKind::kEmpty);
  EXPECT_EQ(Sniff(" \n\t"), InputKind::kEmpty);
  EXPECT_EQ(Sniff("\x80\x04\x95"), InputKind::kPickle);
  EXPECT_EQ(Sniff("\x80\x02}"), InputKind::kPickle);
  EXPECT_EQ(Sniff("\x80\x77}"), InputKind::kUnknown);
  EXPECT_EQ(Sniff("(dp0\nS'segments'\np1\n."), InputKind::kTextPickle);
  EXPECT_EQ(Sniff("}q\x00."s), InputKind::kTextPickle);
  EXPECT_EQ(Sniff("# made by hand\n\na 1 512 0\n"), InputKind::kPlainTrace);
  EXPECT_EQ(Sniff("S 140161023213568 20971520 0\n"), InputKind::kPlainTrace);
  EXPECT_EQ(Sniff("y\n"), InputKind::kPlainTrace);
  EXPECT_EQ(Sniff("a pickle is not this\n"), InputKind::kUnknown);
  EXPECT_EQ(Sniff("Thread,Time,Action,Pointer,Size,Stream\n"), InputKind::kRmmLog);
  EXPECT_EQ(Sniff("{\"a\": 1}"), InputKind::kJson);
  EXPECT_EQ(Sniff("[1, 2]"), InputKind::kJson);
  EXPECT_EQ(Sniff("{}"), InputKind::kJson);
  EXPECT_EQ(Sniff("hello"), InputKind::kUnknown);
}

TEST(FormatsTest, FindsOutOfMemoryTextsInLogs) {
  EXPECT_EQ(Sniff("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB"), InputKind::kOomText);
  EXPECT_EQ(Sniff("step 1\nstep 2\nRuntimeError: CUDA out of memory. Tried"), InputKind::kOomText);
  EXPECT_EQ(Sniff("[rank0]: torch.OutOfMemoryError: CUDA out of memory."), InputKind::kOomText);
  EXPECT_EQ(Sniff("[2026-01-01 10:00:00] CUDA out of memory. Tried to allocate"), InputKind::kOomText);
}

TEST(FormatsTest, BinaryIsToldByItsHead) {
  const std::string head(kHeadBytes, '\0');
  const std::string elf = "\x7f"s + "ELF\x02\x01\x01" + std::string(300, '\0');
  const std::string zip = "PK\x03\x04\x14\x00\x08\x08"s + std::string(100, 'x');
  for (const std::string& binary : {head, elf, zip, "\x80\x77"s + head}) {
    EXPECT_EQ(Sniff(binary), InputKind::kBinary);
    EXPECT_EQ(Sniff(binary + std::string(kHeadBytes, ' ') + "CUDA out of memory"), InputKind::kBinary);
    EXPECT_TRUE(IsUnknownBinary(binary));
  }
  const std::string message = "CUDA out of memory. Tried to allocate 20.00 MiB";
  for (const std::string& known :
       {"}q"s + head + ".", "\x80\x04"s + head, "a 1 512 0\n"s + head, head.substr(0, 99) + message,
        "\x1b[31mstep 1 of 100\x1b[0m\r\n"s + std::string(1, '\0'), "\xff\xfe"s + head, "\xb0\xb1\xb2 \xe9"s}) {
    EXPECT_FALSE(IsUnknownBinary(known)) << known.substr(0, 20);
  }
  EXPECT_EQ(Sniff(head.substr(0, 99) + message), InputKind::kOomText);
}

TEST(FormatsTest, ASignIsFoundWhereverItLies) {
  for (const std::size_t before : {0u, 100u, (4u << 20) - 3u, (4u << 20), (9u << 20) - 1u}) {
    EXPECT_EQ(Sniff(std::string(before, 'x') + "out of memory"), InputKind::kOomText) << before;
  }
  EXPECT_EQ(Sniff(std::string(9 << 20, ' ')), InputKind::kEmpty);
  EXPECT_EQ(Sniff("#" + std::string(9 << 20, '-') + "\na 1 512 0\n"), InputKind::kPlainTrace);
}

TEST(FormatsTest, EveryKindHasAName) {
  const absl::string_view unknown = FormatOf("hello").name;
  for (const absl::string_view bytes : {"", "\x80\x02.", "(dp0\n.", "a 1 512 0\n", "CUDA out of memory", "{}"}) {
    EXPECT_NE(FormatOf(bytes).name, unknown) << bytes;
  }
}

}  // namespace
}  // namespace ashlar::formats
