#include <string>
#include <utility>
#include <vector>

#include "analyzer/analyses/state/live_stacks.h"
#include "gtest/gtest.h"

namespace ashlar::analyses {
namespace {

TEST(NativeLineTest, AFunctionWithoutWhatMakesItLong) {
  EXPECT_EQ(ShortFunction("main"), "main");
  EXPECT_EQ(ShortFunction("pool::grow(unsigned long)"), "pool::grow");
  EXPECT_EQ(ShortFunction("void ns::Buffer<float, std::less<int> >::grow<int>(int, char const*)"), "ns::Buffer::grow");
  EXPECT_EQ(ShortFunction("(anonymous namespace)::Leak(int)"), "(anonymous namespace)::Leak");
  EXPECT_EQ(ShortFunction("int* (anonymous namespace)::Make<int>()"), "(anonymous namespace)::Make");
  EXPECT_EQ(ShortFunction("+0x1234"), "+0x1234");
  EXPECT_EQ(ShortFunction("cuda::operator<<(int)"), "cuda::operator<<(int)");
}

class NativeStackTest : public testing::Test {
 protected:
  std::string LabelOf(const std::vector<std::pair<const char*, const char*>>& frames) {
    std::vector<trace::FrameId> ids;
    for (const auto& [file, function] : frames) ids.push_back(stacks_.InternFrame(file, 0, function));
    return StackLabel(stacks_, stacks_.InternStack(ids));
  }
  trace::StackTable stacks_;
};

TEST_F(NativeStackTest, LibrariesBetweenAreLeftOut) {
  EXPECT_EQ(LabelOf({{"/cuda/libcudart.so.13", "+0x1"},
                     {"/app", "thrust::device_malloc_allocator<int>::allocate(unsigned long)"},
                     {"/app", "void thrust::detail::f<int>(int)"},
                     {"/app", "Sort(int)"},
                     {"/app", "main"},
                     {"/lib/libc.so.6", "__libc_start_main"},
                     {"/app", "_start"}}),
            "app Sort < main");
  EXPECT_EQ(LabelOf({{"/x/libggml-cuda.so", "alloc(int)"},
                     {"/x/libllama.so", "load()"},
                     {"/x/libllama.so", "init()"},
                     {"/node", "run()"}}),
            "libggml-cuda.so alloc < load < init");
  EXPECT_EQ(LabelOf({{"/x/libcublas.so.12", "cublasCreate_v2"}, {"/lib/libc.so.6", "+0x2"}}),
            "libcublas.so.12 cublasCreate_v2");
}

// PyTorch's own C++ frames have no file, or one of source code.
TEST_F(NativeStackTest, OtherStacksAreLabelledAsBefore) {
  EXPECT_EQ(LabelOf({{"??", "alloc"}, {"??", "start"}}), "?? start");
  EXPECT_EQ(LabelOf({{"/pytorch/c10/alloc.cpp", "alloc"}, {"/pytorch/main.cpp", "start"}}), "main.cpp start");
}

}  // namespace
}  // namespace ashlar::analyses
