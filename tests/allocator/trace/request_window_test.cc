// The last requests of a program against all of them: what lives after each is the same.
#include "allocator/trace/request_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/rng.h"
#include "allocator/base/units.h"
#include "analyzer/formats/plain/plain_trace.h"
#include "analyzer/formats/rmm/rmm_log.h"
#include "tests/analyzer/replay/random_requests.h"

namespace ashlar::trace {
namespace {

// What is alive, whatever it is called: bytes, stream, pool, and the streams that use it.
using Alive = std::multiset<std::string>;

// After each request, and before the first.
std::vector<Alive> AliveAfterEach(const std::vector<Op>& requests) {
  std::map<std::uint32_t, std::pair<Op, std::set<std::uint64_t>>> live;
  std::vector<Alive> out = {{}};
  for (const Op& op : requests) {
    if (op.kind == OpKind::kAlloc) live[op.id] = {op, {}};
    if (op.kind == OpKind::kFree) live.erase(op.id);
    if (op.kind == OpKind::kRecordStream) live.at(op.id).second.insert(Handle(op.stream));
    Alive& now = out.emplace_back();
    for (const auto& [id, of] : live) {
      std::string text = absl::StrCat(of.first.bytes, " on ", Handle(of.first.stream), " in ", of.first.pool);
      for (const std::uint64_t stream : of.second) absl::StrAppend(&text, " ", stream);
      now.insert(std::move(text));
    }
  }
  return out;
}

std::uint64_t EventsOf(const std::vector<Op>& requests) {
  std::uint64_t out = 0;
  for (const Op& op : requests) out += op.kind == OpKind::kFree ? 2 : 1;
  return out;
}

std::uint64_t PeakOf(const std::vector<Op>& requests) {
  std::map<std::uint32_t, std::uint64_t> live;
  std::uint64_t now = 0, most = 0;
  for (const Op& op : requests) {
    if (op.kind == OpKind::kAlloc) now += live[op.id] = op.bytes;
    if (op.kind == OpKind::kFree) now -= live[op.id];
    most = std::max(most, now);
  }
  return most;
}

// `part` is the end of `all`, at most `most` events of it, behind what was alive there.
void ExpectTheEnd(const RequestTrace& all, const RequestTrace& part, std::uint64_t most) {
  ASSERT_EQ(part.notes.size(), 1u);
  const std::uint64_t dropped = part.notes[0].count;
  const std::vector<Op>& requests = all.requests;
  const std::vector<Op> tail(requests.begin() + static_cast<std::ptrdiff_t>(dropped), requests.end());
  EXPECT_LE(EventsOf(tail), most);
  EXPECT_GT(EventsOf(tail) + 2, most);
  const std::vector<Alive> whole = AliveAfterEach(requests);
  const std::vector<Alive> held = AliveAfterEach(part.requests);
  ASSERT_GE(held.size(), tail.size());
  const std::size_t first = part.requests.size() - tail.size();
  for (std::size_t i = 0; i <= tail.size(); ++i) ASSERT_EQ(held[first + i], whole[dropped + i]) << i;
  for (std::size_t i = 0; i < tail.size(); ++i) {
    EXPECT_EQ(part.requests[first + i].kind, tail[i].kind);
    EXPECT_EQ(part.requests[first + i].bytes, tail[i].bytes);
  }
  std::set<std::uint32_t> ids;
  for (const Op& op : part.requests) ids.insert(op.id);
  EXPECT_EQ(ids.empty() ? 0 : *ids.rbegin() + 1, part.id_count);  // dense
  EXPECT_TRUE(absl::StrContains(part.notes[0].message, absl::StrCat("highest, ", FormatBytes(PeakOf(requests)), ",")))
      << part.notes[0].message;
  EXPECT_TRUE(absl::StrContains(part.source, absl::StrCat(FormatCount(dropped), " older request"))) << part.source;
}

TEST(RequestWindowTest, HoldsTheLastRequestsBehindWhatIsAlive) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    const RequestTrace all = replay::RandomRequests(rng);
    const std::uint64_t most = 2 + rng.Below(150);
    RequestWindow window(most);
    for (const Op& op : all.requests) window.Add(op);
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", ", most, " events"));
    ExpectTheEnd(all, window.Finish({.requests = {}, .id_count = all.id_count, .pools = all.pools}), most);
  }
}

TEST(RequestWindowTest, EnoughIsTheWhole) {
  Rng rng(1);
  const RequestTrace all = replay::RandomRequests(rng);
  for (const std::uint64_t most : {std::uint64_t{0}, EventsOf(all.requests)}) {
    RequestWindow window(most);
    for (const Op& op : all.requests) window.Add(op);
    const RequestTrace out = window.Finish({.requests = {}, .id_count = all.id_count});
    EXPECT_EQ(out.requests.size(), all.requests.size());
    EXPECT_EQ(out.id_count, all.id_count);
    EXPECT_EQ(out.source, "");
    EXPECT_TRUE(out.notes.empty());
  }
}

// Ids of a text are used again after they were freed.
TEST(RequestWindowTest, OfATextIsItsEnd) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Rng rng(seed);
    std::string text;
    std::set<std::uint64_t> live;
    for (int i = 0; i < 300; ++i) {
      const std::uint64_t id = rng.Below(30);
      if (live.count(id) == 0) {
        absl::StrAppend(&text, "a ", id, " ", 1 + rng.Below(5000), " ", rng.Below(3), "\n");
        live.insert(id);
      } else if (rng.Below(4) == 0) {
        absl::StrAppend(&text, "r ", id, " ", 5 + rng.Below(2), "\n");
      } else {
        absl::StrAppend(&text, "f ", id, "\n");
        live.erase(id);
      }
    }
    const std::uint64_t most = 2 + rng.Below(200);
    const absl::StatusOr<RequestTrace> all = formats::ParsePlainTrace(text);
    const absl::StatusOr<RequestTrace> part = formats::ParsePlainTrace(text, {.max_events = most});
    ASSERT_TRUE(all.ok() && part.ok()) << all.status() << part.status();
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", ", most, " events"));
    ExpectTheEnd(*all, *part, most);
  }
}

TEST(RequestWindowTest, OfAnRmmLogIsItsEnd) {
  std::string text = "Thread,Time,Action,Pointer,Size,Stream\n";
  for (int i = 0; i < 200; ++i) {
    absl::StrAppend(&text, "1,00:00:00:000000,allocate,0x", absl::Hex(4096 * (1 + i)), ",", 100 + i, ",0x0\n");
    if (i >= 10) {
      absl::StrAppend(&text, "1,00:00:00:000000,free,0x", absl::Hex(4096 * (i - 9)), ",", 90 + i, ",0x0\n");
    }
  }
  absl::StrAppend(&text, "1,00:00:00:000000,allocate failure,(nil),5,0x0\n");
  const absl::StatusOr<RequestTrace> all = formats::ReadRmmLog(text);
  const absl::StatusOr<RequestTrace> part = formats::ReadRmmLog(text, {.max_events = 50});
  ASSERT_TRUE(all.ok() && part.ok()) << all.status() << part.status();
  ExpectTheEnd(*all, *part, 50);
  EXPECT_EQ(formats::FailedInRmmLog(*part), formats::FailedInRmmLog(*all));
  EXPECT_FALSE(formats::FailedInRmmLog(*part).empty());
}

}  // namespace
}  // namespace ashlar::trace
