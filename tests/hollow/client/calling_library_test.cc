// Which library took the memory of a device: the one whose call it was, whoever called that library.
#include <string>

#include "tests/hollow/client/in_hollow.h"

extern "C" {
void* ashlar_test_take_one(std::size_t bytes);
void* ashlar_test_take_of_pool_one(std::size_t bytes);
void* ashlar_test_take_two(std::size_t bytes);
}

namespace ashlar::hollow::client {
namespace {

using CallingLibraryTest = InHollowTest;

nlohmann::json OfLibrary(const std::string& name, std::uint64_t bytes) { return {{"name", name}, {"bytes", bytes}}; }

TEST_F(CallingLibraryTest, BytesAreToldByLibraryAsTheyWereAtTheirPeak) {
  Run({}, [] {
    void* const one = ashlar_test_take_one(5 * kMiB);
    ashlar_test_take_of_pool_one(3 * kMiB);
    void* const two = ashlar_test_take_two(30 * kMiB);
    EXPECT_EQ(cudaFree(Malloc(4 * kMiB)), kSuccess);
    EXPECT_EQ(cudaFree(two), kSuccess);
    EXPECT_EQ(cudaFree(one), kSuccess);
    EXPECT_NE(ashlar_test_take_two(20 * kMiB), nullptr);  // less than there was
  });
  EXPECT_EQ(Report()["devices"][0]["libraries"],
            nlohmann::json({OfLibrary("hollow_client_test", 4 * kMiB), OfLibrary("libashlar_test_one.so", 8 * kMiB),
                            OfLibrary("libashlar_test_two.so", 30 * kMiB)}));
}

TEST_F(CallingLibraryTest, AResetGivesEverythingBack) {
  Run({}, [] {
    ashlar_test_take_one(5 * kMiB);
    EXPECT_EQ(cudaDeviceReset(), kSuccess);
    ashlar_test_take_two(6 * kMiB);
  });
  EXPECT_EQ(Report()["devices"][0]["libraries"], nlohmann::json({OfLibrary("libashlar_test_two.so", 6 * kMiB)}));
}

}  // namespace
}  // namespace ashlar::hollow::client
