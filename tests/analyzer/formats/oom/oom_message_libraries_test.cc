// Messages around PyTorch's own: allocator warnings, libraries, vLLM, TensorFlow's statistics. The texts are as the
// programs print them; negatives are code and prose that name the same words.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analyzer/formats/oom/oom_message.h"
#include "analyzer/formats/utf8.h"

namespace ashlar::formats {
namespace {

constexpr char kWarning[] =
    "[W1124 22:24:00.717584183 CUDACachingAllocator.cpp:3934] memory allocation failed with OOM on device 0 while "
    "trying "
    "to allocate 134217728 bytes (free: 51380224, total: 4294967296).\n";
constexpr char kMapping[] =
    "[W1124 22:24:08.092411954 CUDACachingAllocator.cpp:528] expandable_segments: memory mapping failed with OOM on "
    "device 1 while trying to map 20971520 bytes (free: 5242880, total: 4294967296).\n";
constexpr char kFailure[] =
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 128.00 MiB. GPU 0 has a total capacity of 4.00 GiB "
    "of "
    "which 81.00 MiB is free. Including non-PyTorch memory, this process has 3.92 GiB memory in use. Of the allocated "
    "memory 3.51 GiB is allocated by PyTorch, and 13.64 MiB is reserved by PyTorch but unallocated.\n";

OomMessage OneOf(const std::string& text) {
  const std::vector<OomMessage> found = FindOomMessages(text);
  EXPECT_EQ(found.size(), 1u) << text;
  return found.empty() ? OomMessage{} : found.front();
}

std::uint64_t CountOf(const OomMessage& message, const std::string& name) {
  for (const trace::Note& note : message.notes) {
    if (note.name == name) return note.count;
  }
  return 0;
}

TEST(OomMessageLibrariesTest, AWarningAloneHasItsFigures) {
  const OomMessage message = OneOf(kWarning);
  EXPECT_EQ(message.family, "pt-warning");
  EXPECT_EQ(message.device, 0);
  EXPECT_EQ(message.tried->low_bytes, 134217728u);
  EXPECT_EQ(message.tried->InWords(), "128.00 MiB");
  EXPECT_EQ(message.free->high_bytes, 51380224u);
  EXPECT_EQ(message.total->low_bytes, 4294967296u);
  EXPECT_FALSE(message.truncated);
}

TEST(OomMessageLibrariesTest, AMappingIsOfOnePage) {
  const OomMessage message = OneOf(kMapping);
  EXPECT_EQ(message.device, 1);
  EXPECT_EQ(message.tried->low_bytes, 20971520u);
  EXPECT_EQ(CountOf(message, "maps_pages"), 1u);
}

TEST(OomMessageLibrariesTest, WarningsJoinTheFailureTheyAnnounce) {
  const OomMessage message =
      OneOf(std::string(kWarning) + kWarning + "Traceback (most recent call last):\n" + kFailure);
  EXPECT_EQ(message.family, "pt-capacity");
  EXPECT_EQ(CountOf(message, "announced"), 2u);
  EXPECT_EQ(message.tried->low_bytes, 134217728u);  // to the byte
  EXPECT_EQ(message.tried->printed, "128.00 MiB");
  EXPECT_EQ(message.total->low_bytes, 4294967296u);
}

TEST(OomMessageLibrariesTest, AWarningOfAnotherDeviceOrSizeStaysAlone) {
  std::string other_device = kWarning;
  other_device.replace(other_device.find("device 0"), 8, "device 3");
  EXPECT_EQ(FindOomMessages(other_device + kFailure).size(), 2u);
  std::string other_size = kWarning;
  other_size.replace(other_size.find("134217728"), 9, "234217728");
  EXPECT_EQ(FindOomMessages(other_size + kFailure).size(), 2u);
  EXPECT_EQ(FindOomMessages(std::string(kWarning) + std::string(40000, 'x') + "\n" + kFailure).size(), 2u);
}

TEST(OomMessageLibrariesTest, LibrariesAreNamed) {
  const OomMessage cublas =
      OneOf("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`");
  EXPECT_EQ(cublas.family, "cuda-library");
  ASSERT_EQ(CountOf(cublas, "library_call"), 1u);
  EXPECT_EQ(cublas.notes.front().message, "the call that failed: cublasCreate(handle)");
  EXPECT_EQ(OneOf("RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED").family, "cudnn");
  EXPECT_EQ(OneOf("[rank1]: ncclUnhandledCudaError: Call to CUDA function failed.\n[rank1]: Last error:\n"
                  "[rank1]: Cuda failure 2 'out of memory'\n")
                .family,
            "nccl");
  const OomMessage calloc = OneOf("include/alloc.h:205 NCCL WARN Failed to CUDA calloc 536870912 bytes\n");
  EXPECT_EQ(calloc.family, "nccl");
  EXPECT_EQ(calloc.tried->low_bytes, 536870912u);
}

TEST(OomMessageLibrariesTest, CodeAndProseAreNoFailures) {
  for (const char* text :
       {"if status == 'CUBLAS_STATUS_ALLOC_FAILED': retry()",
        "case cublas.CUBLAS_STATUS_ALLOC_FAILED:", "Cuda failure 2 'invalid argument'", "Failed to CUDA host mapping",
        "raise ValueError(\"No available memory for the cache blocks. \"",
        "memory allocation failed with OOM on device, says the manual", "Limit: 10 items\nInUse: 3\n"}) {
    EXPECT_TRUE(FindOomMessages(text).empty()) << text;
  }
}

TEST(OomMessageLibrariesTest, VllmsChecks) {
  EXPECT_EQ(OneOf("ValueError: No available memory for the cache blocks. Try increasing it.").family, "vllm");
  const OomMessage cache = OneOf(
      "ValueError: To serve at least one request with the models's max seq len (32768), (4.00 GiB KV cache is "
      "needed, which is larger than the available KV cache memory (1.20 GiB).");
  EXPECT_EQ(cache.tried->printed, "4.00 GiB");
  ASSERT_NE(cache.Detail("kv_cache"), nullptr);
  EXPECT_EQ(cache.Detail("kv_cache")->printed, "1.20 GiB");
  EXPECT_FALSE(cache.free.has_value());  // of the cache, not of the device
  const OomMessage start = OneOf(
      "ValueError: Free memory on device (10.5/23.6 GiB) on startup is less than desired GPU "
      "memory utilization (0.9, 21.2 GiB).");
  EXPECT_EQ(start.total->printed, "23.6 GiB");
  EXPECT_EQ(start.tried->printed, "21.2 GiB");
  EXPECT_NEAR(static_cast<double>(start.free->MiddleBytes()), 10.5 * 1073741824.0, 1e6);
}

TEST(OomMessageLibrariesTest, TheLongFormOfTensorFlow) {
  const OomMessage message = OneOf(
      "W bfc_allocator.cc:275] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.20GiB.  Current allocation "
      "summary follows.\nI bfc_allocator.cc:630] Bin (256): \tTotal Chunks: 49, Chunks in use: 49. 12.2KiB allocated "
      "for "
      "chunks.\nI bfc_allocator.cc:678] Sum Total of in-use chunks: 2.61GiB\nI bfc_allocator.cc:680] Stats: \n"
      "Limit:                  3341783040\nInUse:                  2802453504\nMaxInUse:               3000000000\n");
  EXPECT_EQ(message.family, "tf-bfc");
  EXPECT_EQ(message.device, 0);
  EXPECT_EQ(message.limit->low_bytes, 3341783040u);
  EXPECT_EQ(message.reserved->high_bytes, 2802453504u);
}

TEST(OomMessageLibrariesTest, ARejectionByTheFraction) {
  const OomMessage message = OneOf(
      "CUDA out of memory. Allocation was preemptively rejected because it would exceed per_process_memory_fraction "
      "limit. Requested size: 128.00 MiB");
  EXPECT_EQ(message.family, "pt-rejected");
  EXPECT_EQ(message.tried->printed, "128.00 MiB");
}

std::string Utf16(const std::string& ascii, bool is_little) {
  std::string out = is_little ? "\xff\xfe" : "\xfe\xff";
  for (const char c : ascii) {
    if (!is_little) out.push_back('\0');
    out.push_back(c);
    if (is_little) out.push_back('\0');
  }
  return out;
}

TEST(OomMessageLibrariesTest, Utf16OfBothOrdersIsTurnedIntoUtf8) {
  EXPECT_EQ(WithoutByteOrderMark(Utf16(kFailure, true)), kFailure);
  EXPECT_EQ(WithoutByteOrderMark(Utf16(kFailure, false)), kFailure);
  EXPECT_EQ(WithoutByteOrderMark("\xef\xbb\xbfhello"), "hello");
  EXPECT_EQ(WithoutByteOrderMark("hello"), std::nullopt);
  EXPECT_EQ(WithoutByteOrderMark(std::string("\xff\xfe\x3d\xd8\x00\xde\xac\x20", 8)), "\xf0\x9f\x98\x80\xe2\x82\xac");
  EXPECT_EQ(WithoutByteOrderMark(std::string("\xff\xfe\x3d\xd8", 4)), "\xef\xbf\xbd");  // half a pair
}

}  // namespace
}  // namespace ashlar::formats
