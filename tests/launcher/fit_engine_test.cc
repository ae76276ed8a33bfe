// ashlar fit of an engine that takes a share of the card.
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/launcher/fit_test.h"

namespace ashlar {
namespace {

using testing::HasSubstr;

// vLLM takes a share of the card, and refuses to start where its weights and the cache of one request need more.
TEST_F(FitTest, AnEngineMustFitIntoItsShareOfTheCard) {
  const auto leaves = [&](double share, const std::string& refused) {
    json facts = Facts({Change("share", 5), Change("none", 6)}, 8 * kGiB);
    facts["trains"] = false;
    facts["engine"] = {{"share", share}, {"needed", 27 * (kGiB / 2)}, {"refused", refused}};
    return absl::StrCat(LeavingText("process-7.json", Books(8 * kGiB)),
                        LeavingText("info-7.json", Info(nullptr, 8 * kGiB)), LeavingText("fit-7.json", facts));
  };
  const json cache = {{"kv_cache_bytes", kGiB}, {"tokens", 5000}, {"longest_request", 2000}, {"most_requests", 256}};
  const std::string program =
      Script("program", absl::StrCat("if [ \"$ASHLAR_FIT\" = share ]; then\n", leaves(0.97, ""),
                                     "if [ -z \"$ASHLAR_FIT_ROOM\" ]; then\n", LeavingText("vllm-7.json", cache),
                                     "fi\nexit 0\nfi\nif [ -n \"$ASHLAR_FIT_ROOM\" ]; then\n", leaves(0.9, ""),
                                     "exit 0\nfi\n", leaves(0.9, "4 GiB KV cache is needed"), "exit 1\n"));
  const json answer = Answer("", program);
  EXPECT_EQ(answer["as_it_is"]["fits"], false);
  EXPECT_EQ(RowOf(answer["rows"], {"share"})["fits"], true);
  EXPECT_EQ(RowOf(answer["rows"], {"none"})["fits"], false) << "its peak is less than the card, and its share is not";
  EXPECT_EQ(answer["set"]["changes"], Names({"share"}));
  EXPECT_EQ(answer["set"]["cache"], json({{"tokens", 5000}, {"longest_request", 2000}, {"most_requests", 256}}));
  EXPECT_THAT(answer["remarks"].dump(),
              HasSubstr("room for 5,000 tokens: 2.5 requests of 2,000, its longest, of the 256 that it takes at once"));
}

}  // namespace
}  // namespace ashlar
