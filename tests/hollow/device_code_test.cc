#include "hollow/api/cuda/device_code.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace ashlar::hollow {
namespace {

// A container as nvcc writes it, with entries of 64 bytes of header and `payload` bytes each.
class Container {
 public:
  Container() : bytes_(16) {}
  void Add(std::uint16_t kind, std::uint32_t architecture, std::uint64_t payload = 24) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + 64 + payload);
    Put(at, kind);
    Put(at + 4, std::uint32_t{64});
    Put(at + 8, payload);
    Put(at + 28, architecture);
  }
  const void* Wrapper() {
    Put(0, std::uint32_t{0xBA55ED50});
    Put(4, std::uint16_t{1});
    Put(6, std::uint16_t{16});
    Put(8, std::uint64_t{bytes_.size() - 16});
    wrapper_ = {0x466243B1, 1, bytes_.data(), nullptr};
    return &wrapper_;
  }
  void Cut(std::size_t bytes) { bytes_.resize(bytes_.size() - bytes); }

 private:
  template <typename T>
  void Put(std::size_t at, T value) {
    std::memcpy(bytes_.data() + at, &value, sizeof(value));
  }
  std::vector<char> bytes_;
  struct {
    std::uint32_t magic, version;
    const char* data;
    const void* name;
  } wrapper_ = {};
};

constexpr std::uint16_t kPtx = 1, kBinary = 2;

TEST(DeviceCodeTest, ReadsEveryEntry) {
  Container container;
  container.Add(kBinary, 75);
  container.Add(kBinary, 120, 4096);
  container.Add(kPtx, 120);
  const std::vector<CompiledCode> code = CodeIn(container.Wrapper());
  ASSERT_EQ(code.size(), 3U);
  EXPECT_EQ(code[0].architecture, 75);
  EXPECT_EQ(code[1].architecture, 120);
  EXPECT_TRUE(code[2].is_ptx);
}

TEST(DeviceCodeTest, ReadsNothingPastACutEnd) {
  Container container;
  container.Add(kBinary, 75);
  container.Add(kBinary, 80);
  const void* wrapper = container.Wrapper();
  EXPECT_EQ(CodeIn(wrapper).size(), 2U);
  container.Cut(8);
  EXPECT_EQ(CodeIn(container.Wrapper()).size(), 1U);
}

TEST(DeviceCodeTest, KnowsWhatIsNoContainer) {
  const std::uint64_t other[4] = {};
  EXPECT_TRUE(CodeIn(other).empty());
}

TEST(DeviceCodeTest, TakesTheNewestBinaryThatTheDeviceRuns) {
  const std::vector<CompiledCode> code = {{75, false}, {80, false}, {86, false}, {90, false}, {120, false}};
  EXPECT_EQ(ChooseArchitecture(code, 75), 75);
  EXPECT_EQ(ChooseArchitecture(code, 80), 80);
  EXPECT_EQ(ChooseArchitecture(code, 89), 86);
  EXPECT_EQ(ChooseArchitecture(code, 90), 90);
  EXPECT_EQ(ChooseArchitecture(code, 121), 120);
}

TEST(DeviceCodeTest, TakesPtxWhereNoBinaryRuns) {
  EXPECT_EQ(ChooseArchitecture({{80, false}, {70, true}, {80, true}}, 90), 80);
  EXPECT_EQ(ChooseArchitecture({{90, true}, {75, false}}, 89), 90);  // neither runs: what is nearest
  EXPECT_EQ(ChooseArchitecture({}, 89), 89);
}

TEST(DeviceCodeTest, AKernelHasTheCodeOfItsLibrary) {
  Container container;
  container.Add(kBinary, 86);
  int handle = 0, kernel = 0, other = 0;
  EXPECT_EQ(CompiledArchitecture(&kernel, 89), 89);
  RegisterDeviceCode(&handle, container.Wrapper());
  RegisterKernel(&handle, &kernel);
  EXPECT_EQ(CompiledArchitecture(&kernel, 89), 86);
  EXPECT_EQ(CompiledArchitecture(&other, 89), 89);
  ForgetDeviceCode(&handle);
  EXPECT_EQ(CompiledArchitecture(&kernel, 89), 89);
}

}  // namespace
}  // namespace ashlar::hollow
