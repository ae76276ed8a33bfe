#include "analyzer/readers/formats.h"

#include <gtest/gtest.h>

#include <string>

namespace ashlar::readers {
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

TEST(FormatsTest, EveryKindHasAName) {
  const absl::string_view unknown = FormatOf("hello").name;
  for (const absl::string_view bytes : {"", "\x80\x02.", "(dp0\n.", "a 1 512 0\n", "CUDA out of memory", "{}"}) {
    EXPECT_NE(FormatOf(bytes).name, unknown) << bytes;
  }
}

}  // namespace
}  // namespace ashlar::readers
