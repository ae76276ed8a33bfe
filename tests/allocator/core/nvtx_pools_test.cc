// What a tool is told of the allocator's blocks. A tool of our own takes the place of compute-sanitizer: NVTX looks for
// it at its first call, and its functions keep a model of what may be touched, strict about what a tool may be told.
#define NVTX_AS_SYSTEM_HEADER
#include "allocator/core/nvtx_pools.h"

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtMem.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/rng.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/device/sim_device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ashlar::tests {
namespace {

using core::CachingAllocator;

// Pools and the regions in them: address -> end.
struct Tool {
  std::map<std::uint64_t, std::uint64_t> pools;
  std::map<std::uint64_t, std::uint64_t> regions;
  std::vector<std::string> complaints;

  void Complain(const char* what, std::uint64_t address) { complaints.push_back(absl::StrCat(what, " at ", address)); }
};

Tool& TheTool() {
  static Tool tool;
  return tool;
}

std::uint64_t AddressOf(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

nvtxMemHeapHandle_t HeapRegister(nvtxDomainHandle_t, const nvtxMemHeapDesc_t* desc) {
  EXPECT_EQ(desc->extCompatID, NVTX_EXT_COMPATID_MEM);
  EXPECT_EQ(desc->structSize, sizeof(nvtxMemHeapDesc_t));
  EXPECT_EQ(desc->usage, static_cast<std::uint32_t>(NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR));
  EXPECT_EQ(desc->type, static_cast<std::uint32_t>(NVTX_MEM_TYPE_VIRTUAL_ADDRESS));
  EXPECT_EQ(desc->typeSpecificDescSize, sizeof(nvtxMemVirtualRangeDesc_t));
  const auto* range = static_cast<const nvtxMemVirtualRangeDesc_t*>(desc->typeSpecificDesc);
  const std::uint64_t address = AddressOf(range->ptr);
  // Freed memory is no pool any longer: what comes at its place ends it.
  std::map<std::uint64_t, std::uint64_t>& pools = TheTool().pools;
  for (auto it = pools.begin(); it != pools.end();) {
    it = it->first < address + range->size && address < it->second ? pools.erase(it) : std::next(it);
  }
  pools[address] = address + range->size;
  return reinterpret_cast<nvtxMemHeapHandle_t>(address);
}

void RegionsRegister(nvtxDomainHandle_t, const nvtxMemRegionsRegisterBatch_t* batch) {
  Tool& tool = TheTool();
  EXPECT_EQ(batch->extCompatID, NVTX_EXT_COMPATID_MEM);
  EXPECT_EQ(batch->regionType, static_cast<std::uint32_t>(NVTX_MEM_TYPE_VIRTUAL_ADDRESS));
  EXPECT_EQ(batch->regionDescElementSize, sizeof(nvtxMemVirtualRangeDesc_t));
  const auto* ranges = static_cast<const nvtxMemVirtualRangeDesc_t*>(batch->regionDescElements);
  for (std::size_t i = 0; i < batch->regionCount; ++i) {
    const std::uint64_t address = AddressOf(ranges[i].ptr);
    const std::uint64_t end = address + ranges[i].size;
    const auto pool = tool.pools.find(AddressOf(batch->heap));
    if (pool == tool.pools.end() || address < pool->first || end > pool->second) tool.Complain("outside", address);
    const auto after = tool.regions.lower_bound(address);
    if (after != tool.regions.end() && after->first < end) tool.Complain("overlaps the next", address);
    if (after != tool.regions.begin() && std::prev(after)->second > address) tool.Complain("overlaps", address);
    tool.regions[address] = end;
  }
}

void RegionsUnregister(nvtxDomainHandle_t, const nvtxMemRegionsUnregisterBatch_t* batch) {
  EXPECT_EQ(batch->extCompatID, NVTX_EXT_COMPATID_MEM);
  EXPECT_EQ(batch->refType, static_cast<std::uint32_t>(NVTX_MEM_REGION_REF_TYPE_POINTER));
  for (std::size_t i = 0; i < batch->refCount; ++i) {
    const std::uint64_t address = AddressOf(batch->refElements[i].pointer);
    if (TheTool().regions.erase(address) == 0) TheTool().Complain("no region", address);
  }
}

// What the tool knows is what the allocator holds: every segment, and every block in use as long as was asked for.
void ExpectToolKnows(const CachingAllocator& allocator) {
  std::map<std::uint64_t, std::uint64_t> regions;
  for (const trace::SnapshotSegment& segment : allocator.Segments()) {
    if (segment.is_expandable) continue;
    EXPECT_EQ(TheTool().pools[segment.address], segment.address + segment.size_bytes);
    for (const trace::SnapshotBlock& block : segment.blocks) {
      if (block.state != trace::BlockState::kFree) regions[block.address] = block.address + *block.requested_bytes;
    }
  }
  EXPECT_EQ(TheTool().regions, regions);
  EXPECT_THAT(TheTool().complaints, testing::IsEmpty());
}

class NvtxPoolsTest : public testing::Test {
 protected:
  NvtxPoolsTest() { TheTool() = {}; }
};

TEST_F(NvtxPoolsTest, ARandomProgramIsSeenBlockByBlock) {
  device::SimDevice device({.capacity_bytes = kGiB});
  CachingAllocator allocator(&device, *policy::ParseConf("max_split_size_mb:32", policy::Compat::kTorch210));
  core::NvtxPools pools;
  allocator.SetSink(&pools);
  Rng rng(1);
  std::vector<core::Block*> blocks;
  for (int i = 0; i < 3000; ++i) {
    const bool allocates = blocks.empty() || rng.Below(5) < 3;
    if (allocates) {
      const absl::StatusOr<core::Block*> block =
          allocator.Allocate(1 + rng.Below(rng.Below(2) == 0 ? 4 * kKiB : 60 * kMiB), Stream{rng.Below(2)});
      if (block.ok()) blocks.push_back(*block);
      if (block.ok() && rng.Below(4) == 0) allocator.RecordStream(*block, Stream{9});
    } else {
      std::swap(blocks[rng.Below(blocks.size())], blocks.back());
      allocator.Free(blocks.back());
      blocks.pop_back();
    }
    if (rng.Below(50) == 0) device.CompleteAllWork();
    if (rng.Below(400) == 0) allocator.EmptyCache();
    if (i % 100 == 0) ExpectToolKnows(allocator);
  }
  ExpectToolKnows(allocator);
  EXPECT_GT(TheTool().regions.size(), 10u);
}

TEST_F(NvtxPoolsTest, ExpandableSegmentsAndOlderOnesAreLeftAlone) {
  device::SimDevice device({.capacity_bytes = kGiB});
  CachingAllocator allocator(&device, *policy::ParseConf("expandable_segments:True", policy::Compat::kTorch210));
  core::NvtxPools pools;
  allocator.SetSink(&pools);
  core::Block* block = *allocator.Allocate(5 * kMiB, Stream{0});
  allocator.Free(block);
  CachingAllocator older(&device, {});
  block = *older.Allocate(5 * kMiB, Stream{0});
  older.SetSink(&pools);
  older.Free(*older.Allocate(5 * kMiB, Stream{0}));
  older.Free(block);
  EXPECT_THAT(TheTool().pools, testing::IsEmpty());
  EXPECT_THAT(TheTool().regions, testing::IsEmpty());
  EXPECT_THAT(TheTool().complaints, testing::IsEmpty());
}

// The recorder behind it sees what it would see alone.
TEST_F(NvtxPoolsTest, TheNextSinkGetsEveryEvent) {
  class Count final : public trace::EventSink {
   public:
    void OnEvent(const trace::Event& event, std::uint64_t block_size_bytes) override {
      seen.push_back(absl::StrCat(trace::ActionName(event.action), " ", event.size_bytes, " ", block_size_bytes));
    }
    std::vector<std::string> seen;
  };
  device::SimDevice device({.capacity_bytes = kGiB});
  CachingAllocator allocator(&device, {});
  Count next;
  core::NvtxPools pools(&next);
  allocator.SetSink(&pools);
  allocator.Free(*allocator.Allocate(1000, Stream{0}));
  EXPECT_THAT(next.seen, testing::ElementsAre("segment_alloc 2097152 0", "alloc 1000 1024", "free_requested 1000 1024",
                                              "free_completed 1000 1024"));
}

}  // namespace

// Called by NVTX, which finds it in nvtx_tool.cc.
int InitializeTool(nvtxExtModuleInfo_t* module) {
  if (module->moduleId != NVTX_EXT_MODULEID_MEM) return 1;
  std::intptr_t* slots = module->segments->functionSlots;
  slots[NVTX3EXT_CBID_nvtxMemHeapRegister] = reinterpret_cast<std::intptr_t>(&HeapRegister);
  slots[NVTX3EXT_CBID_nvtxMemRegionsRegister] = reinterpret_cast<std::intptr_t>(&RegionsRegister);
  slots[NVTX3EXT_CBID_nvtxMemRegionsUnregister] = reinterpret_cast<std::intptr_t>(&RegionsUnregister);
  return 1;
}

}  // namespace ashlar::tests
