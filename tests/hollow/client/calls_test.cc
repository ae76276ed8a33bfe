// The log of the calls on device memory (hollow/process/process.h), as a program leaves it.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/hollow/client/in_hollow.h"

namespace ashlar::hollow::client {
namespace {

constexpr std::size_t kPage = std::size_t{2} << 20;

class CallsTest : public InHollowTest {
 protected:
  std::string file() const { return folder_.path() + "/calls"; }
  std::string Calls() const {
    std::ifstream in(file());
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
};

TEST_F(CallsTest, RuntimeAndDriverAreToldAlike) {
  Run({"total_bytes=104857600"}, [&] {
    setenv("ASHLAR_HOLLOW_CALLS", file().c_str(), 1);
    void* first = Malloc(20 * kPage);
    std::uint64_t second = 0;
    EXPECT_EQ(cuMemAlloc_v2(&second, 5), kSuccess);
    EXPECT_EQ(cuMemAlloc_v2(&second, 100 * kPage), kOutOfMemory);
    EXPECT_EQ(cudaFree(first), kSuccess);
    EXPECT_EQ(cudaFree(nullptr), kSuccess) << "told of nothing";
  });
  EXPECT_EQ(Calls(),
            "allocate 0 41943040 0x0 0\nallocate 0 5 0x2800000 0\nallocate 0 209715200 0x0 2\nfree 0 41943040 0x0 0\n");
}

TEST_F(CallsTest, AFullDiskEndsNoProgram) {
  Run({}, [&] {
    setenv("ASHLAR_HOLLOW_CALLS", "/dev/full", 1);
    EXPECT_EQ(cudaFree(Malloc(kPage)), kSuccess);
  });
  EXPECT_EQ(Report()["calls_lost"], 2);
}

TEST_F(CallsTest, AFileThatCannotBeWrittenEndsNoProgram) {
  Run({}, [&] {
    setenv("ASHLAR_HOLLOW_CALLS", (folder_.path() + "/no/such/folder").c_str(), 1);
    EXPECT_EQ(cudaFree(Malloc(kPage)), kSuccess);
  });
  EXPECT_EQ(Report()["calls_lost"], 2);
}

TEST_F(CallsTest, VirtualMemory) {
  Run({"total_bytes=104857600"}, [&] {
    setenv("ASHLAR_HOLLOW_CALLS", file().c_str(), 1);
    EXPECT_EQ(cudaFree(nullptr), kSuccess);
    abi::AllocationProp prop = {};
    prop.type = 1;
    prop.location = {1, 0};
    std::uint64_t handle = 0, address = 0;
    EXPECT_EQ(cuMemAddressReserve(&address, 64 * kPage, 0, 0, 0), kSuccess);
    EXPECT_EQ(cuMemCreate(&handle, kPage, &prop, 0), kSuccess);
    EXPECT_EQ(cuMemMap(address + kPage, kPage, 0, handle, 0), kSuccess);
    const abi::AccessDesc access = {{1, 0}, 3};
    EXPECT_EQ(cuMemSetAccess(address + kPage, kPage, &access, 1), kSuccess);
    EXPECT_EQ(cuMemUnmap(address + kPage, kPage), kSuccess);
    EXPECT_EQ(cuMemRelease(handle), kSuccess);
    EXPECT_EQ(cuMemAddressFree(address, 64 * kPage), kSuccess);
  });
  EXPECT_EQ(Calls(),
            "reserve 0 134217728 0x40000000000 0\ncreate 0 2097152 0x1 0\nmap 0 2097152 0x40000200000 0\n"
            "set_access 0 2097152 0x40000200000 0\nunmap 0 2097152 0x40000200000 0\nrelease 0 2097152 0x1 0\n"
            "unreserve 0 134217728 0x40000000000 0\n");
}

TEST_F(CallsTest, StreamOrderedMemoryAndAFileForEachProcess) {
  Run({"devices=2"}, [&] {
    setenv("ASHLAR_HOLLOW_CALLS", (file() + ".%p").c_str(), 1);
    EXPECT_EQ(cudaSetDevice(1), kSuccess);
    void* memory = nullptr;
    EXPECT_EQ(cudaMallocAsync(&memory, kPage, nullptr), kSuccess);
    EXPECT_EQ(cudaFreeAsync(memory, nullptr), kSuccess);
    std::ifstream in(file() + "." + std::to_string(getpid()));
    std::string allocated, freed;
    std::getline(in, allocated);
    std::getline(in, freed);
    const std::string call = "allocate_async";
    EXPECT_TRUE(allocated.starts_with(call + " 1 2097152 0x") && allocated.ends_with(" 0")) << allocated;
    EXPECT_EQ(freed, "free_async" + allocated.substr(call.size())) << "the same address";
  });
}

}  // namespace
}  // namespace ashlar::hollow::client
