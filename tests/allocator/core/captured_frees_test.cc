// Frees while a graph is captured, with graph_capture_record_stream_reuse: which blocks the graph proves done. The
// graph here is a slow one: each node knows all that comes before it.
#include "allocator/core/captured_frees.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "allocator/base/rng.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/device/cuda_device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/allocator/core/stream_order.h"
#include "tests/fake_cuda/fake_cuda.h"

namespace ashlar::core {
namespace {

using testing::ElementsAre;

constexpr PoolId kCaptured{1, 0};
constexpr std::uint64_t kCapture = 40;
constexpr Stream kOwn{1};
constexpr Stream kOther{2};

// Streams that are captured into one graph.
class GraphDevice final : public OrderedDevice {
 public:
  explicit GraphDevice(int streams) : OrderedDevice({}) {
    for (int stream = 1; stream <= streams; ++stream) Begin(Stream(static_cast<std::uint64_t>(stream)));
  }

  void Begin(Stream stream, std::uint64_t capture = kCapture) { points_[stream].capture = capture; }
  void EndCaptures() { points_.clear(); }
  void Launch(Stream stream) {
    const std::uint64_t node = 100 + before_.size();
    before_[node] = points_.at(stream).nodes;
    past_[node] = PastOf(stream);
    past_[node].insert(node);
    points_.at(stream).nodes = {node};
  }
  // As an event that is recorded on `awaited` and waited for.
  void Join(Stream stream, Stream awaited) {
    std::vector<std::uint64_t>& nodes = points_.at(stream).nodes;
    for (const std::uint64_t node : points_.at(awaited).nodes) {
      if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
    }
  }
  void PutAt(Stream stream, const std::vector<std::uint64_t>& nodes) { points_.at(stream).nodes = nodes; }
  void TellNothing() { tells_nodes_ = false; }

  const std::vector<std::uint64_t>& NodesOf(Stream stream) const { return points_.at(stream).nodes; }
  std::set<std::uint64_t> PastOf(Stream stream) const {
    std::set<std::uint64_t> out;
    for (const std::uint64_t node : NodesOf(stream)) out.insert(past_.at(node).begin(), past_.at(node).end());
    return out;
  }
  int asked() const { return asked_; }

  std::optional<device::CapturePoint> FindCapture(Stream stream) override {
    const auto it = points_.find(stream);
    return it == points_.end() ? std::nullopt : std::optional(it->second);
  }
  std::optional<std::vector<std::uint64_t>> NodesBefore(std::uint64_t node) override {
    ++asked_;
    return tells_nodes_ ? std::optional(before_.at(node)) : std::nullopt;
  }

 private:
  std::map<Stream, device::CapturePoint> points_;
  std::map<std::uint64_t, std::vector<std::uint64_t>> before_;
  std::map<std::uint64_t, std::set<std::uint64_t>> past_;
  bool tells_nodes_ = true;
  int asked_ = 0;
};

class CapturedFreesTest : public testing::Test {
 protected:
  explicit CapturedFreesTest(bool reuses = true) {
    policy::Options options;
    options.graph_capture_record_stream_reuse = reuses;
    allocator_ = std::make_unique<CachingAllocator>(&device_, options);
    const auto all = [](Stream) { return true; };
    EXPECT_TRUE(allocator_->BeginPool(kCaptured, all, RouteKind::kCapture).ok());
  }
  ~CapturedFreesTest() override {
    device_.EndCaptures();
    EXPECT_TRUE(allocator_->EndPool(kCaptured).ok());
    EXPECT_EQ(allocator_->Validate(), absl::OkStatus());
  }

  // A block that both streams used, and that is freed. Its address.
  std::uint64_t UseAndFree() {
    Block* block = *allocator_->Allocate(3 * kMiB, kOwn);
    const std::uint64_t address = block->address;
    device_.Launch(kOwn);
    device_.Join(kOther, kOwn);
    device_.Launch(kOther);
    allocator_->RecordStream(block, kOther);
    allocator_->Free(block);
    return address;
  }
  std::uint64_t Next(Stream stream = kOwn) {
    held_.push_back(*allocator_->Allocate(3 * kMiB, stream));
    return held_.back()->address;
  }

  GraphDevice device_{3};
  std::unique_ptr<CachingAllocator> allocator_;
  std::vector<Block*> held_;
};

TEST_F(CapturedFreesTest, ABlockIsFreeOnceItsStreamHasJoinedAllUses) {
  const std::uint64_t used = UseAndFree();
  EXPECT_NE(Next(), used);
  device_.Join(kOwn, kOther);
  EXPECT_NE(Next(kOther), used) << "another stream's block";
  EXPECT_EQ(Next(), used);
}

TEST_F(CapturedFreesTest, WorkAfterTheFreeIsNoUse) {
  const std::uint64_t used = UseAndFree();
  device_.Join(kOwn, kOther);
  device_.Launch(kOther);
  EXPECT_EQ(Next(), used);
}

TEST_F(CapturedFreesTest, WhereAStreamIsNotCapturedTheBlockWaits) {
  Block* block = *allocator_->Allocate(3 * kMiB, kOwn);
  const std::uint64_t address = block->address;
  allocator_->RecordStream(block, Stream{9});
  device_.Launch(kOwn);
  allocator_->Free(block);
  EXPECT_NE(Next(), address);
}

TEST_F(CapturedFreesTest, WhereTheUsesAreOfTwoCapturesTheBlockWaits) {
  Block* block = *allocator_->Allocate(3 * kMiB, kOwn);
  const std::uint64_t address = block->address;
  allocator_->RecordStream(block, Stream{9});
  device_.Begin(Stream{9}, kCapture + 1);
  device_.Launch(kOwn);
  device_.Join(kOwn, Stream{9});
  allocator_->Free(block);
  EXPECT_NE(Next(), address);
}

TEST_F(CapturedFreesTest, ANodeOfAnotherCaptureIsAnotherNode) {
  const std::uint64_t used = UseAndFree();
  device_.Join(kOwn, kOther);
  device_.Begin(kOwn, kCapture + 1);
  EXPECT_NE(Next(), used);
}

TEST_F(CapturedFreesTest, AStreamThatIsSetBackIsLookedAtAnew) {
  device_.Launch(kOwn);
  const std::vector<std::uint64_t> early = device_.NodesOf(kOwn);
  const std::uint64_t first = UseAndFree();
  device_.Join(kOwn, kOther);
  EXPECT_EQ(Next(), first);
  const std::vector<std::uint64_t> late = device_.NodesOf(kOwn);
  Block* block = held_.back();
  held_.clear();
  allocator_->RecordStream(block, kOther);
  allocator_->Free(block);  // its uses end at `late`
  device_.PutAt(kOwn, early);
  EXPECT_NE(Next(), first) << "what is given to the stream now may run before";
  device_.PutAt(kOwn, late);
  EXPECT_EQ(Next(), first);
}

TEST_F(CapturedFreesTest, WhatTheDeviceDoesNotTellIsNotDone) {
  const std::uint64_t used = UseAndFree();
  device_.Join(kOwn, kOther);
  device_.TellNothing();
  EXPECT_NE(Next(), used);
}

TEST_F(CapturedFreesTest, ANodeIsAskedForOnce) {
  for (int i = 0; i < 100; ++i) device_.Launch(kOwn);
  const std::uint64_t used = UseAndFree();
  EXPECT_NE(Next(), used);
  const int asked = device_.asked();
  EXPECT_EQ(asked, 101);
  EXPECT_NE(Next(), used);
  EXPECT_EQ(device_.asked(), asked);
  device_.Join(kOwn, kOther);
  EXPECT_EQ(Next(), used);
  EXPECT_EQ(device_.asked(), asked + 1);
  Next();
  EXPECT_EQ(device_.asked(), asked + 1) << "nothing waits";
}

class CapturedFreesOffTest : public CapturedFreesTest {
 protected:
  CapturedFreesOffTest() : CapturedFreesTest(false) {}
};

TEST_F(CapturedFreesOffTest, WithoutTheSettingABlockWaitsForTheEnd) {
  const std::uint64_t used = UseAndFree();
  device_.Join(kOwn, kOther);
  EXPECT_NE(Next(), used);
  EXPECT_EQ(device_.asked(), 0);
}

// What waits after each request is what the slow graph says.
TEST_F(CapturedFreesTest, RandomGraphs) {
  struct Freed {
    std::uint64_t address = 0;
    Stream stream{};
    std::set<std::uint64_t> uses = {};
  };
  int reused = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng(seed);
    std::vector<Freed> waiting;
    for (int step = 0; step < 300; ++step) {
      const Stream stream{1 + rng.Below(3)};
      const Stream other{1 + rng.Below(3)};
      switch (rng.Below(4)) {
        case 0:
          device_.Launch(stream);
          break;
        case 1:
          device_.Join(stream, other);
          break;
        case 2: {
          Next(stream);
          const std::set<std::uint64_t> past = device_.PastOf(stream);
          const auto is_done = [&](const Freed& freed) {
            return freed.stream == stream && !freed.uses.empty() &&
                   std::includes(past.begin(), past.end(), freed.uses.begin(), freed.uses.end());
          };
          reused += static_cast<int>(std::erase_if(waiting, is_done));
          break;
        }
        default: {
          if (held_.empty()) break;
          Block* block = held_.back();
          held_.pop_back();
          Freed freed{block->address, block->segment->lane->stream};
          for (const Stream user : {freed.stream, other}) {
            freed.uses.insert(device_.NodesOf(user).begin(), device_.NodesOf(user).end());
          }
          allocator_->RecordStream(block, other);
          allocator_->Free(block);
          if (other != freed.stream) waiting.push_back(freed);
        }
      }
      std::set<std::uint64_t> wanted, got;
      for (const Freed& freed : waiting) wanted.insert(freed.address);
      for (const trace::SnapshotSegment& segment : allocator_->Segments()) {
        for (const trace::SnapshotBlock& block : segment.blocks) {
          if (block.state == trace::BlockState::kPending) got.insert(block.address);
        }
      }
      ASSERT_EQ(got, wanted) << "seed " << seed << ", step " << step;
    }
    for (Block* block : std::exchange(held_, {})) allocator_->Free(block);
    device_.EndCaptures();
    ASSERT_TRUE(allocator_->EndPool(kCaptured).ok());
    device_.CompleteAllWork();
    allocator_->PollEvents();
    for (std::uint64_t each = 1; each <= 3; ++each) device_.Begin(Stream{each}, kCapture + seed);
    ASSERT_TRUE(allocator_->BeginPool(kCaptured, [](Stream) { return true; }, RouteKind::kCapture).ok());
  }
  EXPECT_GT(reused, 100);
}

// The same answers by CUDA's calls.
TEST(CudaCaptureTest, TheDriverTellsTheGraph) {
  device::FakeCuda cuda({});
  const std::unique_ptr<device::CudaDevice> device = *device::CudaDevice::Open({.ordinal = 0});
  cuda.PutInCapture(kOwn, 7, {0x500, 0x600});
  cuda.PutBefore(0x500, {0x300, 0x400});
  const std::optional<device::CapturePoint> point = device->FindCapture(kOwn);
  ASSERT_TRUE(point.has_value());
  EXPECT_EQ(point->capture, 7u);
  EXPECT_THAT(point->nodes, ElementsAre(0x500, 0x600));
  EXPECT_THAT(device->NodesBefore(0x500), testing::Optional(ElementsAre(0x300, 0x400)));
  EXPECT_THAT(device->NodesBefore(0x300), testing::Optional(testing::IsEmpty()));
  EXPECT_FALSE(device->FindCapture(kOther).has_value());
  EXPECT_FALSE(device->FindCapture(Stream{0}).has_value()) << "and CUDA is not asked";
  cuda.FailWork(0, 999);
  EXPECT_FALSE(device->FindCapture(kOwn).has_value());
  cuda.FailWork(0, 999);
  EXPECT_FALSE(device->NodesBefore(0x500).has_value());
  EXPECT_EQ(device->last_error(), absl::OkStatus()) << "what cannot be told waits";
}

}  // namespace
}  // namespace ashlar::core
