// Streams, events, host functions and launches.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "tests/hollow/client/in_hollow.h"

namespace ashlar::hollow::client {
namespace {

using StreamsClientTest = InHollowTest;

TEST_F(StreamsClientTest, HandlesPrioritiesAndRefusals) {
  Run({}, [] {
    int least = 9, greatest = 9, priority = 9;
    EXPECT_EQ(cudaDeviceGetStreamPriorityRange(&least, &greatest), kSuccess);
    EXPECT_LT(greatest, least);
    void* stream = nullptr;
    EXPECT_EQ(cudaStreamCreateWithPriority(&stream, 1, greatest - 100), kSuccess);
    EXPECT_EQ(cudaStreamGetPriority(stream, &priority), kSuccess);
    EXPECT_EQ(priority, greatest) << "the nearest in the range";
    EXPECT_EQ(cudaStreamQuery(stream), kSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), kSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), kInvalidHandle);
    EXPECT_EQ(cudaStreamQuery(stream), kInvalidHandle);
    EXPECT_EQ(Launch(stream), kInvalidHandle);
    void* event = NewEvent();
    EXPECT_EQ(cudaEventRecord(event, stream), kInvalidHandle);
    EXPECT_EQ(cudaEventDestroy(event), kSuccess);
    EXPECT_EQ(cudaEventQuery(event), kInvalidHandle);
  });
}

TEST_F(StreamsClientTest, AnEventIsDoneAfterItsQueries) {
  Run({"lag_queries=2"}, [] {
    void *stream = NewStream(), *event = NewEvent();
    EXPECT_EQ(cudaEventQuery(event), kSuccess);
    EXPECT_EQ(cudaEventRecord(event, stream), kSuccess);
    EXPECT_EQ(cudaEventQuery(event), kNotReady);
    EXPECT_EQ(cudaPeekAtLastError(), kSuccess) << "not ready is no error";
    EXPECT_EQ(cudaEventQuery(event), kSuccess);
    EXPECT_EQ(cudaEventRecord(event, stream), kSuccess);
    EXPECT_EQ(cudaEventSynchronize(event), kSuccess);
    EXPECT_EQ(cudaEventQuery(event), kSuccess);
  });
}

TEST_F(StreamsClientTest, SimulatedTimePassesWithTheWork) {
  Run({"lag_ns=50000"}, [] {
    void *stream = NewStream(), *begin = NewEvent(), *end = NewEvent();
    EXPECT_EQ(cudaEventRecord(begin, stream), kSuccess);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(Launch(stream), kSuccess);
    EXPECT_EQ(cudaEventRecord(end, stream), kSuccess);
    EXPECT_EQ(cudaStreamQuery(stream), kNotReady);
    EXPECT_EQ(cudaStreamSynchronize(stream), kSuccess);
    float ms = 0;
    EXPECT_EQ(cudaEventElapsedTime(&ms, begin, end), kSuccess);
    EXPECT_NEAR(ms, 5.0F, 0.2F);
  });
  EXPECT_EQ(Report()["launches"], 100);
}

TEST_F(StreamsClientTest, TimeIsBetweenEventsOfOneDevice) {
  Run({"devices=2"}, [] {
    void *first = NewEvent(), *second = nullptr, *later = nullptr;
    EXPECT_EQ(cudaEventRecord(first, nullptr), kSuccess);
    EXPECT_EQ(cudaSetDevice(1), kSuccess);
    second = NewEvent();
    later = NewEvent();
    EXPECT_EQ(cudaEventRecord(second, nullptr), kSuccess);
    EXPECT_EQ(cudaEventRecord(later, nullptr), kSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), kSuccess);
    float ms = -1;
    EXPECT_EQ(cudaEventElapsedTime(&ms, first, second), kInvalidHandle);
    EXPECT_EQ(cudaEventElapsedTime(&ms, second, first), kInvalidHandle);
    EXPECT_EQ(cudaGetLastError(), kInvalidHandle);
    EXPECT_EQ(ms, -1.0F);
    EXPECT_EQ(cudaEventElapsedTime(&ms, second, later), kSuccess);
    EXPECT_GT(ms, 0.0F);
  });
}

TEST_F(StreamsClientTest, LaunchesAreCountedAndMustBeLaunchable) {
  Run({}, [] {
    EXPECT_EQ(Launch(), kSuccess);
    EXPECT_EQ(cudaLaunchKernel(nullptr, {1, 1, 1}, {1025, 1, 1}, nullptr, 0, nullptr), kInvalidConfiguration);
    EXPECT_EQ(cudaLaunchKernel(nullptr, {0, 1, 1}, {32, 1, 1}, nullptr, 0, nullptr), kInvalidConfiguration);
    EXPECT_EQ(cudaGetLastError(), kInvalidConfiguration);
  });
  EXPECT_EQ(Report()["launches"], 1);
}

void AddLetter(void* text) { static_cast<std::string*>(text)->push_back('h'); }
void AddStar(void*, int status, void* text) { static_cast<std::string*>(text)->push_back(status == 0 ? '*' : '!'); }

TEST_F(StreamsClientTest, HostFunctionsRunInTheirOrder) {
  Run({}, [] {
    std::string text;
    void* stream = NewStream();
    for (int i = 0; i < 50; ++i) {
      EXPECT_EQ(cudaLaunchHostFunc(stream, AddLetter, &text), kSuccess);
      EXPECT_EQ(cudaStreamAddCallback(stream, AddStar, &text, 0), kSuccess);
    }
    EXPECT_EQ(cudaStreamSynchronize(stream), kSuccess);
    std::string wanted;
    for (int i = 0; i < 50; ++i) wanted += "h*";
    EXPECT_EQ(text, wanted);
    EXPECT_EQ(cudaLaunchHostFunc(stream, nullptr, &text), kInvalidValue);
  });
}

TEST_F(StreamsClientTest, AnEventWaitsForTheHostFunctionsBeforeIt) {
  Run({}, [] {
    std::atomic<bool> may_end = false;
    const auto wait = [](void* flag) {
      while (!static_cast<std::atomic<bool>*>(flag)->load()) std::this_thread::yield();
    };
    void *first = NewStream(1), *second = NewStream(1), *event = NewEvent();
    EXPECT_EQ(cudaLaunchHostFunc(first, wait, &may_end), kSuccess);
    EXPECT_EQ(cudaEventRecord(event, first), kSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(second, event, 0), kSuccess);
    EXPECT_EQ(cudaEventQuery(event), kNotReady);
    EXPECT_EQ(cudaStreamQuery(second), kNotReady);
    may_end = true;
    EXPECT_EQ(cudaStreamSynchronize(second), kSuccess);
    EXPECT_EQ(cudaEventQuery(event), kSuccess);
  });
}

// A stream of the runtime that is each thread's own.
TEST_F(StreamsClientTest, ThreadsHaveAStreamOfTheirOwn) {
  Run({"lag_ns=1000000"}, [] {
    void* const own = reinterpret_cast<void*>(2);  // cudaStreamPerThread
    EXPECT_EQ(Launch(own), kSuccess);
    EXPECT_EQ(cudaStreamQuery(own), kNotReady);
    std::thread([&] { EXPECT_EQ(cudaStreamQuery(own), kSuccess) << "another's"; }).join();
    EXPECT_EQ(cudaStreamSynchronize(own), kSuccess);
    EXPECT_EQ(cudaStreamQuery(own), kSuccess);
  });
}

TEST_F(StreamsClientTest, ACaptureForbidsWhatWouldWait) {
  Run({}, [] {
    void *stream = NewStream(1), *graph = nullptr, *pointer = nullptr;
    int status = 9;
    EXPECT_EQ(cudaStreamBeginCapture(stream, 0), kSuccess);
    EXPECT_EQ(cudaStreamIsCapturing(stream, &status), kSuccess);
    EXPECT_EQ(status, 1);
    EXPECT_EQ(Launch(stream), kSuccess);
    EXPECT_EQ(cudaMalloc(&pointer, 100), kCaptureUnsupported);
    EXPECT_EQ(cudaStreamIsCapturing(stream, &status), kSuccess);
    EXPECT_EQ(status, 2);
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), kCaptureInvalidated);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(cudaStreamBeginCapture(stream, 0), kSuccess);
    int mode = 2;  // relaxed: what PyTorch's allocator asks for
    EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), kSuccess);
    EXPECT_EQ(mode, 0);
    EXPECT_EQ(cudaMalloc(&pointer, 100), kSuccess);
    EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), kSuccess);
    EXPECT_EQ(mode, 2);
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), kSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), kSuccess);
  });
}

}  // namespace
}  // namespace ashlar::hollow::client
