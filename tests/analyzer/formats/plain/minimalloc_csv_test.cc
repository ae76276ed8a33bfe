// The CSV of packing problems: what is read, what is written comes back, and every error says where and how to mend it.
#include "analyzer/formats/plain/minimalloc_csv.h"

#include <string>

#include "analyzer/formats/formats.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ashlar::formats {
namespace {

using testing::HasSubstr;

TEST(MinimallocCsvTest, ReadsColumnsInAnyOrder) {
  const absl::StatusOr<PackingProblem> problem =
      ParseMinimallocCsv("\r\nlower, size ,id,upper\r\n 5,7,b1,9\r\n\r\n0,1,b2,1");
  ASSERT_TRUE(problem.ok()) << problem.status();
  EXPECT_THAT(problem->ids, testing::ElementsAre("b1", "b2"));
  EXPECT_THAT(problem->buffers, testing::ElementsAre(trace::Lifetime{5, 9, 7}, trace::Lifetime{0, 1, 1}));
  EXPECT_TRUE(problem->offsets.empty());
}

TEST(MinimallocCsvTest, WhatIsWrittenComesBack) {
  PackingProblem problem{{"a", "b"}, {{0, 3, 4}, {2, 9, 5}}, {}};
  for (const std::vector<std::uint64_t>& offsets : {std::vector<std::uint64_t>{}, {0, 4}}) {
    problem.offsets = offsets;
    const absl::StatusOr<PackingProblem> read = ParseMinimallocCsv(WriteMinimallocCsv(problem));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->ids, problem.ids);
    EXPECT_EQ(read->buffers, problem.buffers);
    EXPECT_EQ(read->offsets, offsets);
  }
  EXPECT_EQ(WriteMinimallocCsv(problem), "id,lower,upper,size,offset\na,0,3,4,0\nb,2,9,5,4\n");
}

TEST(MinimallocCsvTest, ErrorsSayWhereAndTheMend) {
  const auto error = [](const std::string& text) { return std::string(ParseMinimallocCsv(text).status().message()); };
  const std::string header = "id,lower,upper,size\n";
  EXPECT_THAT(error(""), HasSubstr("CSV 1:1: no header line; the first line is id,lower,upper,size"));
  EXPECT_THAT(error("id,lower,upper,sise\n"), HasSubstr("CSV 1:16: column 'sise' is none of id, lower"));
  EXPECT_THAT(error("id,lower,upper\n"), HasSubstr("CSV 1:1: no column size"));
  EXPECT_THAT(error("id,lower,upper,size,size\n"), HasSubstr("CSV 1:21: column size stands here twice"));
  EXPECT_THAT(error(header + "a,0,1\n"), HasSubstr("CSV 2:5: 3 fields, the header has 4"));
  EXPECT_THAT(error(header + "a,0,1,2,3\n"), HasSubstr("5 fields, the header has 4"));
  EXPECT_THAT(error(header + "a,0,x1,2\n"), HasSubstr("CSV 2:5: 'x1' is not a whole number"));
  EXPECT_THAT(error(header + "a,0,,2\n"), HasSubstr("CSV 2:5: '' is not a whole number"));
  EXPECT_THAT(error(header + "a,-1,1,2\n"), HasSubstr("CSV 2:3: '-1' is not a whole number"));
  EXPECT_THAT(error(header + "a,0,99999999999999999999,2\n"), HasSubstr("is not a whole number"));
  EXPECT_THAT(error(header + "a,3,3,2\n"), HasSubstr("CSV 2:5: upper 3 is not above lower 3"));
  EXPECT_THAT(error(header + "a,0,1,0\n"), HasSubstr("CSV 2:7: size 0 is 0"));
  EXPECT_THAT(error(header + "a,0,1,4611686018427387904\nb,0,1,1\n"), HasSubstr("CSV 3:7: size 1"));
  EXPECT_THAT(error(header + "a,0,1,2\na,0,1,2\n"), HasSubstr("CSV 3:1: id 'a' stands here twice"));
}

TEST(MinimallocCsvTest, IsToldFromItsHeader) {
  EXPECT_EQ(Sniff("id,lower,upper,size\n"), InputKind::kPackingCsv);
  EXPECT_EQ(Sniff("\n size,upper,lower,id,offset\r\n1,2,3"), InputKind::kPackingCsv);
  EXPECT_EQ(Sniff("id,lower,upper,sise\n"), InputKind::kPackingCsv);  // whose reader says what is wrong
  EXPECT_EQ(Sniff("id,name\n"), InputKind::kUnknown);
  EXPECT_EQ(Sniff("a 1 512 0\n"), InputKind::kPlainTrace);
}

}  // namespace
}  // namespace ashlar::formats
