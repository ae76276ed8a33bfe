// Green contexts: parts of the multiprocessors by cuda.h's own rules, their streams, and what the runtime and the
// driver both know of them.
#include <vector>

#include "tests/hollow/client/in_hollow.h"

extern "C" {
using ashlar::hollow::abi::DevResource;
int cuDevSmResourceSplitByCount(DevResource* parts, unsigned* count, const DevResource* input, DevResource* remaining,
                                unsigned flags, unsigned least);
int cuDevResourceGenerateDesc(void** description, DevResource* resources, unsigned count);
int cuGreenCtxCreate(void** green, void* description, int device, unsigned flags);
int cuGreenCtxDestroy(void* green);
int cuGreenCtxGetDevResource(void* green, DevResource* resource, int kind);
int cuGreenCtxStreamCreate(void** stream, void* green, unsigned flags, int priority);
int cuGreenCtxGetId(void* green, unsigned long long* id);
int cuGreenCtxRecordEvent(void* green, void* event);
int cuGreenCtxWaitEvent(void* green, void* event);
int cuCtxFromGreenCtx(void** context, void* green);
int cuStreamCreate(void** stream, unsigned flags);
int cuStreamGetCtx_v2(void* stream, void** context, void** green);
int cudaDeviceGetDevResource(int device, DevResource* resource, int kind);
int cudaDevSmResourceSplitByCount(DevResource* parts, unsigned* count, const DevResource* input, DevResource* remaining,
                                  unsigned flags, unsigned least);
int cudaDevResourceGenerateDesc(void** description, DevResource* resources, unsigned count);
int cudaGreenCtxCreate(void** context, void* description, int device, unsigned flags);
int cudaExecutionCtxDestroy(void* context);
int cudaExecutionCtxGetDevResource(void* context, DevResource* resource, int kind);
int cudaExecutionCtxGetDevice(int* device, void* context);
int cudaExecutionCtxStreamCreate(void** stream, void* context, unsigned flags, int priority);
int cudaExecutionCtxSynchronize(void* context);
int cudaDeviceGetExecutionCtx(void** context, int device);
}

namespace ashlar::hollow::client {
namespace {

using GreenContextsTest = InHollowTest;

constexpr int kMultiprocessors = 1;
constexpr unsigned kDefaultStream = 1, kNonBlocking = 1;
constexpr int kInvalidResourceType = 914, kInvalidResourceConfiguration = 915;

DevResource All() {
  DevResource out = {};
  EXPECT_EQ(cuInit(0), kSuccess);
  EXPECT_EQ(cuDeviceGetDevResource(0, &out, kMultiprocessors), kSuccess);
  return out;
}

// Of so many multiprocessors, a part of the device.
void* NewGreen(unsigned least) {
  DevResource all = All(), part = {};
  unsigned count = 1;
  void *description = nullptr, *green = nullptr;
  EXPECT_EQ(cuDevSmResourceSplitByCount(&part, &count, &all, nullptr, 0, least), kSuccess);
  EXPECT_EQ(cuDevResourceGenerateDesc(&description, &part, 1), kSuccess);
  EXPECT_EQ(cuGreenCtxCreate(&green, description, 0, kDefaultStream), kSuccess);
  return green;
}

TEST_F(GreenContextsTest, MultiprocessorsAreSplitByTheRulesOfTheArchitecture) {
  Run({"sm_count=132", "compute_major=9", "compute_minor=0"}, [] {
    const DevResource all = All();
    EXPECT_EQ(all.sm_count, 132U);
    EXPECT_EQ(all.least_of_part, 8U);
    EXPECT_EQ(all.multiple_of_part, 8U);
    unsigned count = 0;
    EXPECT_EQ(cuDevSmResourceSplitByCount(nullptr, &count, &all, nullptr, 0, 9), kSuccess);
    EXPECT_EQ(count, 8U) << "parts of 16";
    DevResource parts[3], left = {};
    count = 3;
    EXPECT_EQ(cuDevSmResourceSplitByCount(parts, &count, &all, &left, 0, 16), kSuccess);
    EXPECT_EQ(count, 3U);
    EXPECT_EQ(parts[2].sm_count, 16U);
    EXPECT_EQ(left.sm_count, 84U);
    EXPECT_EQ(cuDevSmResourceSplitByCount(nullptr, &count, &all, nullptr, 0, 133), kInvalidValue);
    EXPECT_EQ(cuDevSmResourceSplitByCount(nullptr, &count, parts, nullptr, 0, 8), kInvalidResourceConfiguration);
    const DevResource none = {};
    EXPECT_EQ(cuDevSmResourceSplitByCount(nullptr, &count, &none, nullptr, 0, 8), kInvalidResourceType);
    void *description = nullptr, *green = nullptr;
    EXPECT_EQ(cuDevResourceGenerateDesc(&description, parts, 2), kSuccess);
    EXPECT_EQ(cuGreenCtxCreate(&green, description, 0, kDefaultStream), kSuccess);
    DevResource own = {};
    EXPECT_EQ(cuGreenCtxGetDevResource(green, &own, kMultiprocessors), kSuccess);
    EXPECT_EQ(own.sm_count, 32U);
    EXPECT_EQ(cuDevSmResourceSplitByCount(nullptr, &count, &own, nullptr, 0, 8), kSuccess) << "split again by then";
    EXPECT_EQ(count, 4U);
    DevResource of_two[] = {parts[0], all};
    EXPECT_EQ(cuDevResourceGenerateDesc(&description, of_two, 2), kInvalidResourceConfiguration);
  });
  Run({"sm_count=72", "compute_major=8", "compute_minor=6"}, [] {
    const DevResource all = All();
    unsigned count = 0;
    EXPECT_EQ(cuDevSmResourceSplitByCount(nullptr, &count, &all, nullptr, 0, 1), kSuccess);
    EXPECT_EQ(count, 18U) << "parts of 4";
  });
}

TEST_F(GreenContextsTest, StreamsAndContextsAreOfTheGreenContext) {
  Run({"sm_count=132", "compute_major=9", "compute_minor=0"}, [] {
    void *green = NewGreen(32), *stream = nullptr, *found = nullptr, *context = nullptr, *primary = nullptr;
    EXPECT_EQ(cuGreenCtxStreamCreate(&stream, green, 0, 0), kInvalidValue) << "it must say that it does not block";
    EXPECT_EQ(cuGreenCtxStreamCreate(&stream, green, kNonBlocking, 0), kSuccess);
    EXPECT_EQ(cuStreamGetGreenCtx(stream, &found), kSuccess);
    EXPECT_EQ(found, green);
    DevResource own = {};
    EXPECT_EQ(cuStreamGetDevResource(stream, &own, kMultiprocessors), kSuccess);
    EXPECT_EQ(own.sm_count, 32U);
    EXPECT_EQ(cuCtxFromGreenCtx(&context, green), kSuccess);
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&primary, 0), kSuccess);
    EXPECT_NE(context, primary);
    EXPECT_EQ(cuCtxSetCurrent(context), kSuccess);
    EXPECT_EQ(cuCtxGetDevResource(nullptr, &own, kMultiprocessors), kSuccess);
    EXPECT_EQ(own.sm_count, 32U);
    void* under = nullptr;
    EXPECT_EQ(cuStreamCreate(&under, 0), kSuccess);
    EXPECT_EQ(cuStreamGetCtx_v2(under, &context, &found), kSuccess);
    EXPECT_EQ(context, primary);
    EXPECT_EQ(found, green);
    EXPECT_EQ(cuCtxSetCurrent(primary), kSuccess);
    unsigned long long id = 0, other_id = 0;
    EXPECT_EQ(cuGreenCtxGetId(green, &id), kSuccess);
    EXPECT_EQ(cuGreenCtxGetId(NewGreen(8), &other_id), kSuccess);
    EXPECT_NE(id, other_id);
    EXPECT_EQ(cuGreenCtxDestroy(green), kSuccess);
    EXPECT_EQ(cuGreenCtxDestroy(green), kInvalidContext);
    EXPECT_EQ(cuCtxFromGreenCtx(&context, green), kInvalidContext);
    EXPECT_EQ(cuStreamGetGreenCtx(stream, &found), kSuccess);
    EXPECT_EQ(found, nullptr);
  });
}

TEST_F(GreenContextsTest, MemoryIsThePrimaryContexts) {
  Run({"context_bytes=104857600", "sm_count=132", "compute_major=9", "compute_minor=0"}, [] {
    void* green = NewGreen(8);
    const std::uint64_t used = UsedBytes();
    NewGreen(8);
    EXPECT_EQ(UsedBytes(), used);
    void *stream = nullptr, *memory = nullptr;
    EXPECT_EQ(cuGreenCtxStreamCreate(&stream, green, kNonBlocking, 0), kSuccess);
    EXPECT_EQ(cudaMallocAsync(&memory, kMiB, stream), kSuccess);
    EXPECT_EQ(cudaFreeAsync(memory, stream), kSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), kSuccess);
  });
}

// With work that is done only when the host waits for it.
TEST_F(GreenContextsTest, EventsAreOfAllItsStreams) {
  Run({"lag_ns=1000000000", "sm_count=132", "compute_major=9", "compute_minor=0"}, [] {
    void *green = NewGreen(8), *other = NewGreen(8), *event = nullptr;
    std::vector<void*> streams(2);
    for (void*& stream : streams) EXPECT_EQ(cuGreenCtxStreamCreate(&stream, green, kNonBlocking, 0), kSuccess);
    int kernel = 0;
    EXPECT_EQ(cudaLaunchKernel(&kernel, {}, {}, nullptr, 0, streams[1]), kSuccess);
    EXPECT_EQ(cudaEventCreate(&event), kSuccess);
    EXPECT_EQ(cuGreenCtxRecordEvent(green, event), kSuccess);
    EXPECT_EQ(cudaEventQuery(event), kNotReady);
    EXPECT_EQ(cudaStreamSynchronize(streams[0]), kSuccess);
    EXPECT_EQ(cudaEventQuery(event), kNotReady) << "the other stream's work is not done";
    EXPECT_EQ(cuGreenCtxWaitEvent(other, event), kSuccess);
    EXPECT_EQ(cudaStreamSynchronize(streams[1]), kSuccess);
    EXPECT_EQ(cudaEventSynchronize(event), kSuccess);
    EXPECT_EQ(cudaEventQuery(event), kSuccess);
    EXPECT_EQ(cuGreenCtxRecordEvent(green, &kernel), kInvalidHandle);
    EXPECT_EQ(cudaStreamBeginCapture(streams[0], 0), kSuccess);
    EXPECT_EQ(cuGreenCtxRecordEvent(green, event), kCaptureUnsupported);
    void* graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(streams[0], &graph), kCaptureInvalidated);
  });
}

TEST_F(GreenContextsTest, TheRuntimeHasThemAsExecutionContexts) {
  Run({"sm_count=132", "compute_major=9", "compute_minor=0"}, [] {
    DevResource all = {}, part = {};
    unsigned count = 1;
    void *description = nullptr, *context = nullptr, *stream = nullptr, *found = nullptr, *whole = nullptr;
    EXPECT_EQ(cudaDeviceGetDevResource(0, &all, kMultiprocessors), kSuccess);
    EXPECT_EQ(cudaDevSmResourceSplitByCount(&part, &count, &all, nullptr, 0, 60), kSuccess);
    EXPECT_EQ(cudaDevResourceGenerateDesc(&description, &part, 1), kSuccess);
    EXPECT_EQ(cudaGreenCtxCreate(&context, description, 0, 1), kInvalidValue) << "flags are for later years";
    EXPECT_EQ(cudaGreenCtxCreate(&context, description, 0, 0), kSuccess);
    DevResource own = {};
    EXPECT_EQ(cudaExecutionCtxGetDevResource(context, &own, kMultiprocessors), kSuccess);
    EXPECT_EQ(own.sm_count, 64U);
    EXPECT_EQ(cudaExecutionCtxStreamCreate(&stream, context, 0, 0), kSuccess);
    EXPECT_EQ(cuStreamGetGreenCtx(stream, &found), kSuccess);
    EXPECT_EQ(found, context);
    EXPECT_EQ(cudaExecutionCtxSynchronize(context), kSuccess);
    EXPECT_EQ(cudaDeviceGetExecutionCtx(&whole, 0), kSuccess);
    EXPECT_EQ(cudaExecutionCtxGetDevResource(whole, &own, kMultiprocessors), kSuccess);
    EXPECT_EQ(own.sm_count, 132U);
    int device = -1;
    EXPECT_EQ(cudaExecutionCtxGetDevice(&device, whole), kSuccess);
    EXPECT_EQ(device, 0);
    EXPECT_EQ(cudaExecutionCtxSynchronize(whole), kSuccess);
    EXPECT_EQ(cudaExecutionCtxDestroy(context), kSuccess);
    EXPECT_EQ(cudaExecutionCtxGetDevResource(context, &own, kMultiprocessors), kInvalidContext);
  });
}

}  // namespace
}  // namespace ashlar::hollow::client
