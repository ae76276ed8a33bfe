// A test of the preloaded library: what it does runs in processes of its own, over a hollow machine of its own.
//
//   TEST_F(InHollowTest, Memory) {
//     Run({"total_bytes=1048576000"}, [] { EXPECT_EQ(cudaMalloc(...), kSuccess); });
//     EXPECT_EQ(Report()["launches"], 0);
//   }
//
// The program must be preloaded with the library, which preloaded_main.cc makes sure of. The parent uses no device:
// each child is then as a program that starts.
#ifndef ASHLAR_TESTS_HOLLOW_CLIENT_IN_HOLLOW_H_
#define ASHLAR_TESTS_HOLLOW_CLIENT_IN_HOLLOW_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/hollow/client/cuda_calls.h"
#include "tests/hollow/ranks.h"

namespace ashlar::hollow::client {

class InHollowTest : public testing::Test {
 protected:
  using Lines = std::vector<std::string>;

  // Context bytes are none unless `lines` say so, so that figures are the program's own.
  void WriteMachine(const Lines& lines) {
    std::ofstream out(folder_.path() + "/machine");
    out << "context_bytes=0\n";
    for (const std::string& line : lines) out << line << "\n";
  }
  void Run(const Lines& lines, const std::function<void()>& program) {
    RunRanks(1, lines, [&](int) { program(); });
  }
  void RunRanks(int ranks, const Lines& lines, const std::function<void(int)>& program) {
    WriteMachine(lines);
    const std::vector<int> codes = test::RunRanks(ranks, [&](int rank) {
      setenv("ASHLAR_HOLLOW_RUN", folder_.path().c_str(), 1);
      program(rank);
    });
    EXPECT_EQ(codes, std::vector<int>(static_cast<std::size_t>(ranks), 0));
  }
  // What the processes left, in no order.
  std::vector<nlohmann::json> Reports() const {
    std::vector<nlohmann::json> out;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      if (entry.path().extension() != ".json") continue;
      std::ifstream in(entry.path());
      out.push_back(nlohmann::json::parse(in));
    }
    return out;
  }
  nlohmann::json Report() const {
    const std::vector<nlohmann::json> all = Reports();
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? nlohmann::json() : all[0];
  }

  const test::RunFolder folder_;
};

// Calls that must succeed.
inline void* Malloc(std::size_t bytes) {
  void* out = nullptr;
  EXPECT_EQ(cudaMalloc(&out, bytes), kSuccess);
  return out;
}
inline std::uint64_t UsedBytes() {
  std::size_t free_bytes = 0, total_bytes = 0;
  EXPECT_EQ(cudaMemGetInfo(&free_bytes, &total_bytes), kSuccess);
  return total_bytes - free_bytes;
}
inline void* NewStream(unsigned flags = 0) {
  void* out = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&out, flags), kSuccess);
  return out;
}
inline void* NewEvent() {
  void* out = nullptr;
  EXPECT_EQ(cudaEventCreate(&out), kSuccess);
  return out;
}
inline int Launch(void* stream = nullptr) {
  static const int kernel = 0;
  return cudaLaunchKernel(&kernel, {1, 1, 1}, {32, 1, 1}, nullptr, 0, stream);
}
// The bytes that the device holds there, as a program reads them.
inline std::string ReadText(const void* device, std::size_t bytes) {
  std::string out(bytes, '?');
  EXPECT_EQ(cudaMemcpy(out.data(), device, bytes, kDefaultCopy), kSuccess);
  return out;
}
inline void WriteText(void* device, const std::string& text) {
  EXPECT_EQ(cudaMemcpy(device, text.data(), text.size(), kDefaultCopy), kSuccess);
}

}  // namespace ashlar::hollow::client

#endif  // ASHLAR_TESTS_HOLLOW_CLIENT_IN_HOLLOW_H_
