#include "analyzer/formats/input_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstddef>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/rng.h"
#include "analyzer/formats/input_file.h"
#include "analyzer/formats/mapped_file.h"
#include "analyzer/formats/unpack.h"

namespace ashlar::formats {
namespace {

using testing::HasSubstr;

std::string Gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string Noise(std::size_t size) {
  Rng rng(size);
  std::string out;
  for (std::size_t i = 0; i < size; ++i) out += static_cast<char>(rng.Below(256));
  return out;
}

std::string WriteFile(const std::string& name, const std::string& bytes) {
  const std::string path = absl::StrCat(testing::TempDir(), "/", name);
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

TEST(InputFileTest, ReadsPlainAndPackedFilesWhateverTheirName) {
  for (const std::string& text : {std::string(), std::string("hello"), Noise(300000), std::string(1 << 20, 'x')}) {
    EXPECT_EQ(ReadInput(WriteFile("plain.gz", text)).value(), text);
    EXPECT_EQ(ReadInput(WriteFile("packed.pickle", Gzip(text))).value(), text);
  }
}

TEST(InputFileTest, ErrorsNameTheFile) {
  const auto missing = ReadInput("/no/such/file");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(missing.status().message(), HasSubstr("/no/such/file: "));
  EXPECT_THAT(ReadInput(testing::TempDir()).status().message(), HasSubstr("is a folder"));
}

TEST(InputFileTest, TheLimitHoldsPlainAndPacked) {
  const std::string text(100000, 'x');
  for (const std::string& path : {WriteFile("a", text), WriteFile("b", Gzip(text))}) {
    EXPECT_TRUE(ReadInput(path, 100000).ok());
    EXPECT_EQ(ReadInput(path, 99999).status().code(), absl::StatusCode::kResourceExhausted);
  }
}

TEST(InputFileTest, SmallAndLargeInputsAreOpenedAlike) {
  const std::string noise = Noise(5 << 20);  // packed as large as it is: it is unpacked into a file
  for (const std::string& text : {std::string(), std::string("hello"), noise, std::string(65 << 20, 'x')}) {
    for (const std::string& bytes : {text, Gzip(text)}) {
      absl::StatusOr<InputBytes> opened = OpenInput(WriteFile("opened", bytes));
      ASSERT_TRUE(opened.ok()) << opened.status();
      EXPECT_TRUE(opened->view() == text) << text.size();
      GiveBackPages(opened->view());
      EXPECT_TRUE(opened->view() == text) << "what was given back comes again";
      opened->Clear();
      EXPECT_EQ(opened->view(), "");
    }
  }
  EXPECT_EQ(OpenInput("/no/such/file").status(), ReadInput("/no/such/file").status());
  EXPECT_EQ(OpenInput(WriteFile("large", Gzip(noise)), {.max_bytes = 1 << 20}).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(OpenInput(WriteFile("cut", Gzip(noise).substr(0, 5'000'000))).status().code(), absl::StatusCode::kDataLoss);
}

TEST(InputFileTest, TheHeadIsEnoughWhereItIsSaidSo) {
  const auto is_noise = [](absl::string_view head) { return head.size() == kHeadBytes && head[0] != 'x'; };
  const std::string noise = "y" + Noise(3 << 20);
  for (const std::string& bytes : {noise, Gzip(noise)}) {
    EXPECT_TRUE(OpenInput(WriteFile("noise", bytes), {.is_enough = is_noise})->view() == noise.substr(0, kHeadBytes));
    EXPECT_TRUE(OpenInput(WriteFile("noise", bytes))->view() == noise);
  }
  for (const std::string& bytes : {std::string(3 << 20, 'x'), std::string("y"), std::string()}) {
    EXPECT_TRUE(OpenInput(WriteFile("text", bytes), {.is_enough = is_noise})->view() == bytes);
    EXPECT_TRUE(OpenInput(WriteFile("text", Gzip(bytes)), {.is_enough = is_noise})->view() == bytes);
  }
  EXPECT_EQ(OpenInput("/dev/zero", {.is_enough = is_noise})->view().size(), kHeadBytes);
}

TEST(InputFileTest, WhatComesPieceByPieceIsWholeHoweverMuchItIs) {
  const std::string noise = Noise(1 << 20);
  for (const std::size_t pieces : {0u, 1u, 3u, 40u}) {
    SpooledBytes spool;
    std::string whole;
    for (std::size_t i = 0; i < pieces; ++i) {
      spool.Append(absl::string_view(noise).substr(i));
      whole += noise.substr(i);
    }
    EXPECT_EQ(spool.size(), whole.size());
    EXPECT_TRUE(std::move(spool).Take().view() == whole) << pieces;
  }
}

TEST(GzipTest, ReadsMembersOneAfterAnother) {
  EXPECT_EQ(Unpack(Gzip("one ") + Gzip("") + Gzip("two") + std::string(512, '\0'), 1000).value(), "one two");
}

TEST(GzipTest, ABombCostsAtMostTheLimit) {
  const std::string bomb = Gzip(std::string(64 << 20, '\0'));
  EXPECT_LT(bomb.size(), 100000u);
  EXPECT_EQ(Unpack(bomb, 1 << 20).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(GzipTest, EveryTruncationIsNamedWithItsByte) {
  const std::string packed = Gzip(Noise(2000));
  for (std::size_t size = 2; size < packed.size(); ++size) {
    const auto text = Unpack(packed.substr(0, size), 1 << 20);
    ASSERT_EQ(text.status().code(), absl::StatusCode::kDataLoss) << size;
    EXPECT_THAT(text.status().message(), HasSubstr(absl::StrCat("at byte ", size)));
  }
}

TEST(GzipTest, DamageIsAnError) {
  const std::string packed = Gzip("a trace that somebody damaged");
  for (std::size_t i = 10; i < packed.size(); ++i) {
    std::string damaged = packed;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
    EXPECT_FALSE(Unpack(damaged, 1 << 20).ok()) << "byte " << i;
  }
  EXPECT_THAT(Unpack(packed + "tail", 1000).status().message(), HasSubstr("is not gzip"));
}

}  // namespace
}  // namespace ashlar::formats
