// The key ashlar_names of a snapshot: read, written, and refused with a note where it cannot be read.
#include "analyzer/formats/torch/torch_holders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/analyzer/formats/torch/snapshot_parts.h"

namespace ashlar::formats {
namespace {

using namespace torch_parts;  // NOLINT: the parts of a snapshot
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string NamedHolder(const std::string& kind, const std::string& name, std::vector<Item> more = {}) {
  std::vector<Item> items = {{"kind", Text(kind)}, {"name", Text(name)}, {"bytes", Int(0)}, {"blocks", Int(0)}};
  items.insert(items.end(), more.begin(), more.end());
  return Dict(items);
}

std::string NamesWith(const std::vector<std::string>& holders, const std::vector<std::string>& blocks,
                      std::uint64_t version = 1) {
  return Dict({{"version", Int(version)},
               {"when", Text("out_of_memory")},
               {"objects", Int(7)},
               {"bound", Text("time")},
               {"new_key", Int(3)},
               {"holders", List(holders)},
               {"blocks", List(blocks)}});
}

std::string SnapshotWith(const std::string& names) {
  return Top({Segment(0x1000, 1024, {Block(0x1000, 512, "active_allocated"), Block(0x1200, 512, "active_allocated")})},
             {}, {{"ashlar_names", names}});
}

const char* NoteOf(const Snapshot& snapshot) { return snapshot.notes.empty() ? "" : snapshot.notes[0].message.c_str(); }

TEST(TorchHoldersTest, ReadsOwnersAndOtherNames) {
  const auto snapshot = TorchSnapshotLoad(SnapshotWith(
      NamesWith({NamedHolder("graph", "losses[]", {{"file", Text("t.py")}, {"line", Int(3)}, {"nodes", Int(9)}}),
                 NamedHolder("local", "x")},
                {List({Int(0x1200), Int(1), List({Int(0)})}), List({Int(0x1000), Int(0), List({})})})));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_THAT(NoteNames(*snapshot), IsEmpty());
  ASSERT_TRUE(snapshot->holders.has_value());
  const trace::Holders& names = *snapshot->holders;
  EXPECT_EQ(names.when, "out_of_memory");
  EXPECT_EQ(names.bound, "time");
  EXPECT_EQ(names.objects, 7U);
  ASSERT_EQ(names.holders.size(), 2U);
  EXPECT_EQ(names.holders[0].name, "losses[]");
  EXPECT_EQ(names.holders[0].file, "t.py");
  EXPECT_EQ(names.holders[0].line, 3);
  EXPECT_EQ(names.holders[0].nodes, 9U);
  ASSERT_EQ(names.blocks.size(), 2U);
  EXPECT_EQ(names.blocks[0].address, 0x1000U);  // by address
  EXPECT_EQ(names.blocks[1].owner, 1U);
  EXPECT_THAT(names.blocks[1].others, ElementsAre(0U));
}

TEST(TorchHoldersTest, WhatIsWrittenReadsBack) {
  auto snapshot = TorchSnapshotLoad(
      SnapshotWith(NamesWith({NamedHolder("element", "x[]",
                                          {{"function", Text("train")},
                                           {"mode", Text("eval")},
                                           {"container", Text("deque")},
                                           {"traits", List({Text("hooked"), Int(3), Text("state_dict")})},
                                           {"variables", List({Text("image")})}})},
                             {List({Int(0x1000), Int(0), List({})})})));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  const trace::Holder& holder = snapshot->holders->holders[0];
  EXPECT_EQ(holder.mode, "eval");
  EXPECT_EQ(holder.container, "deque");
  EXPECT_THAT(holder.traits, ElementsAre("hooked", "state_dict"));
  EXPECT_THAT(holder.variables, ElementsAre("image"));
  EXPECT_TRUE(holder.Is("hooked"));
  EXPECT_FALSE(holder.Is("optimized"));
  EXPECT_FALSE(snapshot->peak_holders.has_value());
  snapshot->peak_holders = snapshot->holders;
  snapshot->peak_holders->when = "peak";
  const auto again = ReadTorchSnapshot(WriteTorchSnapshot(*snapshot));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->holders, snapshot->holders);
  EXPECT_EQ(again->peak_holders, snapshot->peak_holders);
}

TEST(TorchHoldersTest, WhatCannotBeReadIsANoteAndTheRestStands) {
  const std::string holder = NamedHolder("local", "x");
  const struct {
    std::string names;
    const char* says;
  } cases[] = {
      {Int(3), "expected a dict"},
      {NamesWith({}, {}, 2), "version 2 is not known"},
      {Dict({{"version", Int(1)}}), "it has no list 'holders'"},
      {NamesWith({Int(1)}, {}), "expected a dict"},
      {NamesWith({holder}, {List({Int(0x1000), Int(1), List({})})}), "there is no such holder"},
      {NamesWith({holder}, {List({Int(0x1000), Int(0), List({Int(8)})})}), "there is no such holder"},
      {NamesWith({holder}, {List({Int(0x1000)})}), "expected an address, an owner and other names"},
      {NamesWith({holder}, {Text("x")}), "expected a list"},
  };
  for (const auto& one : cases) {
    const auto snapshot = TorchSnapshotLoad(SnapshotWith(one.names));
    ASSERT_TRUE(snapshot.ok()) << snapshot.status();
    EXPECT_FALSE(snapshot->holders.has_value());
    EXPECT_THAT(NoteNames(*snapshot), ElementsAre("names 1")) << one.says;
    EXPECT_THAT(NoteOf(*snapshot), HasSubstr(one.says));
    EXPECT_EQ(snapshot->segments.size(), 1U);
  }
}

}  // namespace
}  // namespace ashlar::formats
