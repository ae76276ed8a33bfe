// NVTX ranges as a profiled program pushes them, seen by a recorder. No GPU is needed: NVTX is headers only.
#include <gtest/gtest.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "allocator/core/recorder.h"
#include "allocator/device/sim_device.h"
#include "allocator/trace/codec.h"
#include "ashlar/nvtx.h"

namespace ashlar::adapters {
namespace {

nvtxEventAttributes_t Named(const char* name) {
  nvtxEventAttributes_t out = {};
  out.version = NVTX_VERSION;
  out.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  out.messageType = NVTX_MESSAGE_TYPE_ASCII;
  out.message.ascii = name;
  return out;
}

TEST(NvtxScopesTest, RangesAreMarksAndStacks) {
  ASSERT_EQ(getenv("NVTX_INJECTION64_PATH"), nullptr) << "a profiler is attached";
  nvtxRangePushA("before");  // not followed, and its pop is no scope's
  FollowNvtxRanges();
  device::SimDevice device({});
  core::CachingAllocator allocator(&device, {});
  const std::string path = testing::TempDir() + "/nvtx_scopes_test.ashlar";
  std::unique_ptr<core::Recorder> recorder = *core::Recorder::ToFile(&allocator, path);
  core::Block* block = nullptr;
  std::thread([&] {
    EXPECT_EQ(nvtxRangePushA("step"), 0);
    const nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
    nvtxEventAttributes_t attributes = Named("forward");
    EXPECT_EQ(nvtxDomainRangePushEx(domain, &attributes), 1);
    attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    attributes.message.registered = nvtxDomainRegisterStringA(domain, "layer");
    EXPECT_EQ(nvtxDomainRangePushEx(domain, &attributes), 2);
    block = *allocator.Allocate(3 * kMiB, Stream{0});
    EXPECT_EQ(nvtxDomainRangePop(domain), 2);
    EXPECT_EQ(nvtxDomainRangePop(domain), 1);
    EXPECT_EQ(nvtxRangePushW(L"backward"), 1);
    allocator.Free(block);
    EXPECT_EQ(nvtxRangePop(), 1);
    EXPECT_EQ(nvtxRangePop(), 0);
    EXPECT_LT(nvtxRangePop(), 0);  // one too many
  }).join();
  EXPECT_EQ(nvtxRangePop(), 0);
  ASSERT_EQ(recorder->Finish(), absl::OkStatus());

  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::remove(path.c_str());
  const absl::StatusOr<trace::Snapshot> read = trace::Decode(bytes);
  ASSERT_TRUE(read.ok()) << read.status();
  std::vector<std::string> marks;
  for (const trace::Annotation& mark : read->annotations) marks.push_back(mark.stage + " " + mark.name);
  EXPECT_EQ(marks, std::vector<std::string>({"START step", "START forward", "START layer", "END layer", "END forward",
                                             "START backward", "END backward", "END step"}));
  std::string stack;
  for (const trace::FrameId frame : read->stacks.stack(read->device_traces.at(0).at(1).stack)) {
    stack += read->stacks.frame(frame).function + " ";
  }
  EXPECT_EQ(stack, "layer forward step ");
}

}  // namespace
}  // namespace ashlar::adapters
