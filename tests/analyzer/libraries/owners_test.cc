#include "analyzer/libraries/owners.h"

#include <gtest/gtest.h>

namespace ashlar::libraries {
namespace {

TEST(OwnersTest, LibrariesHaveTheirNamesAndOthersTheirFiles) {
  EXPECT_EQ(OwnerOf("/site-packages/nvidia/nccl/lib/libnccl.so.2"), "NCCL");
  EXPECT_EQ(OwnerOf("libcublasLt.so.13"), "cuBLAS");
  EXPECT_EQ(OwnerOf("libcudnn_engines_precompiled.so.9"), "cuDNN");
  EXPECT_EQ(OwnerOf("libc10_cuda.so"), "PyTorch's allocator");
  EXPECT_EQ(OwnerOf("libtorch_cuda.so"), "PyTorch");
  EXPECT_EQ(OwnerOf("/x/libonnxruntime_providers_cuda.so"), "ONNX Runtime");
  EXPECT_EQ(OwnerOf("/site-packages/rmm/pylibrmm/device_buffer.cpython-311-x86_64-linux-gnu.so"), "RMM");
  EXPECT_EQ(OwnerOf("/opt/libmine.so.3"), "libmine.so.3");
  EXPECT_EQ(OwnerOf("/home/me/simulate"), "the program (simulate)");
  EXPECT_EQ(OwnerOf("code made at run time"), "code made at run time");
  EXPECT_EQ(OwnerOf(""), "unknown");
}

TEST(OwnersTest, TheFilesNameIsBesideTheOwnersOnce) {
  EXPECT_EQ(OwnerAndFile("/lib/libnccl.so.2"), "NCCL (libnccl.so.2)");
  EXPECT_EQ(OwnerAndFile("/home/me/simulate"), "the program (simulate)");
  EXPECT_EQ(OwnerAndFile("/opt/libmine.so.3"), "libmine.so.3");
  EXPECT_EQ(OwnerAndFile(""), "unknown");
}

}  // namespace
}  // namespace ashlar::libraries
