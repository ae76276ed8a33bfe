// Chunks with parts of thread caches, and what is refused.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "allocator/trace/codec.h"
#include "allocator/trace/codec_format.h"
#include "allocator/trace/decoder.h"
#include "allocator/trace/encoder.h"

namespace ashlar::trace {
namespace {

using codec::ChunkKind;
using codec::Encoder;

// One thread cache's records, as a journal writes them.
class PartWriter : private codec::RecordWriter {
 public:
  PartWriter() { at_ = bytes_; }
  void Turn(std::uint64_t turn) {
    Put(codec::RecordKind::kSetting);
    PutVarint(static_cast<std::uint64_t>(codec::SettingOf::kTurn));
    PutVarint(turn);
  }
  void Event(unsigned code, std::uint64_t address, std::int64_t time_us) {
    PutTime(time_us);
    PutEvent(code, address, 100, 512);
  }
  absl::string_view records() const { return {bytes_, static_cast<std::size_t>(at_ - bytes_)}; }

 private:
  char bytes_[4096] = {};
};

// What an encoder's chunks make, with a head for the device's trace.
class PartsFile {
 public:
  PartsFile() : encoder_(1024, [this](ChunkKind, absl::string_view payload) { Take(payload); }) {}
  Encoder& encoder() { return encoder_; }
  const std::string& bytes() const { return bytes_; }

 private:
  void Take(absl::string_view payload) {
    bytes_ += chunks_.HeaderOf(payload);
    bytes_.append(payload.data(), payload.size());
  }
  codec::ChunkBytes chunks_;
  std::string bytes_ = codec::ChunkBytes::FileHeader();
  Encoder encoder_;
};

std::string Addresses(const Snapshot& snapshot) {
  std::string out;
  if (snapshot.device_traces.empty()) return out;
  for (const Event& event : snapshot.device_traces[0]) out += static_cast<char>(event.address);
  return out;
}

Event SectionEvent(char name) {
  Event event;
  event.action = Action::kSnapshot;  // changes no state
  event.address = static_cast<std::uint64_t>(name);
  return event;
}

constexpr auto kCode = static_cast<unsigned>(Action::kSnapshot);

// The picture in codec_format.h.
TEST(ThreadCachePartsTest, TurnsOrderWhatThreadCachesDidAtOnce) {
  codec::ThreadCacheParts parts;
  const auto add = [&](char name, std::uint64_t turn, std::int64_t time_us) {
    Event event;
    event.address = static_cast<std::uint64_t>(name);
    event.time_us = time_us;
    return parts.Add(event, turn);
  };
  parts.Begin();
  EXPECT_TRUE(add('a', 4, 10) && add('b', 4, 10) && add('c', 4, 30) && add('d', 5, 31));
  EXPECT_FALSE(add('x', 4, 40)) << "turns do not go back";
  parts.Begin();
  EXPECT_TRUE(add('p', 4, 20) && add('q', 4, 29));
  Snapshot out;
  out.device_traces.resize(1);
  parts.MoveBefore(4, out.device_traces[0].Mutable());
  EXPECT_EQ(Addresses(out), "");
  parts.MoveBefore(5, out.device_traces[0].Mutable());
  EXPECT_EQ(Addresses(out), "abpqc");
  EXPECT_EQ(parts.LaterTime(25), 30) << "a time that is older than what came before";
  parts.MoveRest(out.device_traces[0].Mutable());
  EXPECT_EQ(Addresses(out), "abpqcd");
  EXPECT_TRUE(parts.IsEmpty());
}

TEST(ThreadCachePartsTest, AChunkWithPartsIsReadInOrder) {
  PartsFile file;
  PartWriter one;
  one.Turn(4);
  one.Event(kCode, 'a', 10);
  one.Event(kCode, 'b', 30);
  one.Turn(5);
  one.Event(kCode, 'd', 31);
  PartWriter two;
  two.Turn(4);
  two.Event(kCode, 'p', 20);
  file.encoder().Add(SectionEvent('s'), 0, 5, kNoStack);
  file.encoder().PutTurn(5);
  file.encoder().AddMark("START", "scope", 12);
  file.encoder().Add(SectionEvent('t'), 0, 12, kNoStack);
  file.encoder().AddPart(1, one.records(), 3);
  file.encoder().AddPart(7, two.records(), 1);
  file.encoder().Seal();
  file.encoder().Add(SectionEvent('u'), 0, 32, kNoStack);
  EXPECT_EQ(file.encoder().event_count(), 7u);
  file.encoder().End(7);
  const absl::StatusOr<Snapshot> read = Decode(file.bytes());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->notes.empty()) << read->notes.front().message;
  EXPECT_EQ(Addresses(*read), "sapbtdu");
  EXPECT_EQ(read->annotations.at(0).time_us, 30) << "not before what it came after";
  std::vector<std::int64_t> times;
  for (const Event& event : read->device_traces[0]) times.push_back(event.time_us);
  EXPECT_EQ(times, std::vector<std::int64_t>({5, 10, 20, 30, 30, 31, 32}));
}

TEST(ThreadCachePartsTest, AFreeAtOnceIsTwoEvents) {
  PartsFile file;
  PartWriter one;
  one.Event(kCode, 'a', 10);
  file.encoder().AddPart(1, one.records(), 1);
  file.encoder().Seal();
  absl::StatusOr<Snapshot> read = Decode(file.bytes());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(Addresses(*read), "a");
  one.Event(codec::kFreed, 'a', 10);
  file.encoder().AddPart(1, one.records(), 3);
  file.encoder().Seal();
  // There is no such block, and the first of the two says so.
  read = Decode(file.bytes());
  EXPECT_TRUE(absl::StrContains(read.status().message(), "free_requested")) << read.status();
}

// Each is one whole chunk, and no part of it is shown.
TEST(ThreadCachePartsTest, PartsThatCannotBeAreRefused) {
  const auto bytes_of = [](absl::string_view payload) {
    codec::ChunkBytes chunks;
    std::string out = codec::ChunkBytes::FileHeader();
    out += chunks.HeaderOf("");
    out += chunks.HeaderOf(payload);
    return out.append(payload.data(), payload.size());
  };
  const auto setting = [](codec::SettingOf what, char value) {
    return std::string{static_cast<char>(codec::kOther | static_cast<unsigned>(codec::RecordKind::kSetting) << 4),
                       static_cast<char>(what), value};
  };
  const auto cache = [&](char number) { return setting(codec::SettingOf::kThreadCache, number); };
  const auto turn = [&](char number) { return setting(codec::SettingOf::kTurn, number); };
  const auto is_whole = [&](const std::string& payload) {
    const absl::StatusOr<Snapshot> read = Decode(bytes_of(payload));
    EXPECT_TRUE(read.ok()) << read.status();
    return read.ok() && absl::StrContains(read->notes.at(0).message, "without its end");
  };
  EXPECT_TRUE(is_whole(cache(1) + turn(3) + turn(4) + cache(2) + turn(1) + cache(0) + turn(2)));
  EXPECT_FALSE(is_whole(cache(1) + turn(3)));              // no last part
  EXPECT_FALSE(is_whole(cache(2) + cache(1) + cache(0)));  // not ascending
  EXPECT_FALSE(is_whole(cache(1) + cache(0) + cache(2) + cache(0)));
  EXPECT_FALSE(is_whole(cache(0)));
  EXPECT_FALSE(is_whole(cache(1) + turn(3) + turn(2) + cache(0)));
}

}  // namespace
}  // namespace ashlar::trace
