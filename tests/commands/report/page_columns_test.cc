// Columns of a page come back as they went in, whatever their values, and so do their levels of detail.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "commands/explain/page/column_blob.h"
#include "commands/explain/picture/picture.h"
#include "gtest/gtest.h"
#include "tests/commands/report/drawn_page.h"

namespace ashlar::tests {
namespace {

void ExpectLevel(const RunColumns& run, std::size_t width) {
  const std::vector<std::int64_t>& sums = run["allocated"];
  const auto& least = run["allocated.min." + std::to_string(width)];
  const auto& most = run["allocated.max." + std::to_string(width)];
  ASSERT_EQ(least.size(), (sums.size() + width - 1) / width);
  for (std::size_t i = 0; i < least.size(); ++i) {
    const auto begin = sums.begin() + static_cast<std::ptrdiff_t>(i * width);
    const auto end = sums.begin() + static_cast<std::ptrdiff_t>(std::min(sums.size(), (i + 1) * width));
    EXPECT_EQ(least[i], *std::min_element(begin, end));
    EXPECT_EQ(most[i], *std::max_element(begin, end));
  }
}

TEST(PageColumnsTest, LevelsOfDetailAreTheLeastAndMostOfTheirMoments) {
  auto picture = std::make_shared<answers::Picture>();
  answers::MomentColumns& moments = picture->runs.emplace_back().moments;
  std::mt19937 random(3);
  for (int i = 0; i < 20'011; ++i) {
    moments.events.push_back(i - 1);
    moments.places.push_back(i - 1);
    for (auto* sum : {&moments.requested_bytes, &moments.allocated_bytes, &moments.active_bytes,
                      &moments.reserved_bytes, &moments.stranded_bytes, &moments.private_free_bytes}) {
      sum->push_back(static_cast<std::int64_t>(random() % 1'000'000));
    }
  }
  answers::Explanation explanation;
  explanation.picture = picture;
  const PageReader page(PageOf(explanation));
  const RunColumns run(page, 0);
  ExpectLevel(run, 16);
  ExpectLevel(run, 256);
  EXPECT_FALSE(run.Has("allocated.min.4096"));
}

TEST(PageColumnsTest, AColumnOfAnyWholeNumbersComesBack) {
  const std::int64_t most = (std::int64_t{1} << 53) - 1;
  const std::vector<std::vector<std::int64_t>> columns = {{},
                                                          {0},
                                                          {-1},
                                                          {most, 0},
                                                          {-most, 0},
                                                          {0, most, -1, most},
                                                          {512, 1024, 512},
                                                          {5, 5, 5},
                                                          {-1, 70000, -1},
                                                          {0, 255},
                                                          {0, 65536, 1},
                                                          {-128, 127}};
  for (const std::vector<std::int64_t>& values : columns) {
    report::BlobWriter blob;
    blob.Add("first", {1, 2, 3});
    blob.Add("c", values);
    report::Json described = report::Json::Object();
    std::vector<std::string> blobs;
    blob.MoveTo(blobs, described);
    const PageReader page("<script id=\"ashlar-document\">" + report::Json({{"columns", described}}).ToCompactText() +
                          "</script><script id=\"ashlar-blob-0\">" + blobs.front() + "</script>");
    EXPECT_EQ(page.Column(page.index(), "first"), (std::vector<std::int64_t>{1, 2, 3}));
    EXPECT_EQ(page.Column(page.index(), "c"), values);
  }
}

}  // namespace
}  // namespace ashlar::tests
