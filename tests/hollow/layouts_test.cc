// Our declarations of NVIDIA's layouts and numbers against NVIDIA's own headers. Each part is built where its header is
// found; what is wrong does not compile.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "hollow/api/cublas/cublas.h"
#include "hollow/api/cublas/cublaslt.h"
#include "hollow/api/cudnn/backend.h"
#include "hollow/api/cudnn/cudnn.h"
#include "hollow/api/cudnn/rnn.h"
#include "hollow/api/nvml/nvml.h"
#include "hollow/api/sizes.h"

#define ASHLAR_SAME_FIELD(ours, field, theirs, their_field)              \
  static_assert(offsetof(ours, field) == offsetof(theirs, their_field)); \
  static_assert(sizeof(ours::field) == sizeof(theirs::their_field))

namespace ashlar::hollow {
namespace {

int checked = 0;  // headers that were there

}  // namespace
}  // namespace ashlar::hollow

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
namespace ashlar::hollow {
namespace {

static_assert(kCublasNotInitialized == CUBLAS_STATUS_NOT_INITIALIZED);
static_assert(kCublasAllocFailed == CUBLAS_STATUS_ALLOC_FAILED);
static_assert(kCublasInvalidValue == CUBLAS_STATUS_INVALID_VALUE);
static_assert(kCublasMappingError == CUBLAS_STATUS_MAPPING_ERROR);
static_assert(kCublasNotSupported == CUBLAS_STATUS_NOT_SUPPORTED);

static_assert(sizeof(LtHeuristicResult) == sizeof(cublasLtMatmulHeuristicResult_t));
ASHLAR_SAME_FIELD(LtHeuristicResult, algo, cublasLtMatmulHeuristicResult_t, algo);
ASHLAR_SAME_FIELD(LtHeuristicResult, workspace_bytes, cublasLtMatmulHeuristicResult_t, workspaceSize);
ASHLAR_SAME_FIELD(LtHeuristicResult, state, cublasLtMatmulHeuristicResult_t, state);
ASHLAR_SAME_FIELD(LtHeuristicResult, waves_count, cublasLtMatmulHeuristicResult_t, wavesCount);

static_assert(CudaTypeBits(CUDA_R_32F) == 32 && CudaTypeBits(CUDA_C_64F) == 128 && CudaTypeBits(CUDA_R_16BF) == 16);
static_assert(CudaTypeBits(CUDA_R_64I) == 64 && CudaTypeBits(CUDA_R_8F_E4M3) == 8 && CudaTypeBits(CUDA_C_16F) == 32);

// What a descriptor of the caller's has room for, and what the library's own must not be smaller than.
int RoomFor(const LtTable& table) {
  int bytes = 8;
  for (int i = 0; i < table.count; ++i) bytes += table.attributes[i].bytes;
  return bytes;
}
TEST(LayoutsTest, CublasLtsDescriptorsFitTheWordsOfTheCaller) {
  EXPECT_LE(RoomFor(kLtLayout), static_cast<int>(sizeof(cublasLtMatrixLayoutOpaque_t)));
  EXPECT_LE(RoomFor(kLtTransform), static_cast<int>(sizeof(cublasLtMatrixTransformDescOpaque_t)));
  EXPECT_LE(RoomFor(kLtAlgo), static_cast<int>(sizeof(cublasLtMatmulAlgo_t)));
#if CUBLAS_VER_MAJOR >= 12
  EXPECT_LE(RoomFor(kLtMatmul), static_cast<int>(sizeof(cublasLtMatmulDescOpaque_t)));
#endif
  EXPECT_GE(kLtMatmul.words_bytes, sizeof(cublasLtMatmulDescOpaque_t));
  EXPECT_GE(kLtPreference.words_bytes, sizeof(cublasLtMatmulPreferenceOpaque_t));
  ++checked;
}

}  // namespace
}  // namespace ashlar::hollow
#endif

#if __has_include(<cudnn.h>)
#include <cudnn.h>
namespace ashlar::hollow {
namespace {

template <class Theirs>
constexpr bool kSamePerformance = sizeof(ConvolutionPerformance) == sizeof(Theirs) &&
                                  offsetof(ConvolutionPerformance, algorithm) == offsetof(Theirs, algo) &&
                                  offsetof(ConvolutionPerformance, status) == offsetof(Theirs, status) &&
                                  offsetof(ConvolutionPerformance, time_ms) == offsetof(Theirs, time) &&
                                  offsetof(ConvolutionPerformance, workspace_bytes) == offsetof(Theirs, memory) &&
                                  offsetof(ConvolutionPerformance, determinism) == offsetof(Theirs, determinism) &&
                                  offsetof(ConvolutionPerformance, math_type) == offsetof(Theirs, mathType);
static_assert(kSamePerformance<cudnnConvolutionFwdAlgoPerf_t>);
static_assert(kSamePerformance<cudnnConvolutionBwdDataAlgoPerf_t>);
static_assert(kSamePerformance<cudnnConvolutionBwdFilterAlgoPerf_t>);
static_assert(CUDNN_DETERMINISTIC == 1 && CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM == 1);
static_assert(CUDNN_CONVOLUTION_BWD_DATA_ALGO_1 == 1 && CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 == 1);
static_assert(kLstm == CUDNN_LSTM && kGru == CUDNN_GRU && CUDNN_FWD_MODE_TRAINING == 1);
static_assert(CUDNN_RNN_DOUBLE_BIAS == 2 && CUDNN_RNN_SINGLE_REC_BIAS == 3 && CUDNN_BIDIRECTIONAL == 1);
static_assert(CudnnTypeBytes(CUDNN_DATA_BFLOAT16) == 2 && CudnnTypeBytes(CUDNN_DATA_INT64) == 8);
static_assert(CudnnTypeBytes(CUDNN_DATA_FP8_E5M2) == 1 && CudnnTypeBytes(CUDNN_DATA_BOOLEAN) == 1);

#if CUDNN_MAJOR >= 9
static_assert(CUDNN_STATUS_BAD_PARAM == 2000 && CUDNN_STATUS_NOT_SUPPORTED == 3000);
static_assert(CUDNN_STATUS_NOT_INITIALIZED == 1001);
#else
static_assert(CUDNN_STATUS_BAD_PARAM == 3 && CUDNN_STATUS_NOT_SUPPORTED == 9 && CUDNN_STATUS_NOT_INITIALIZED == 1);
#endif
static_assert(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR == 5 && CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR == 16);
static_assert(CUDNN_ATTR_ENGINEHEUR_RESULTS == 202 && CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE == 402);
static_assert(CUDNN_TYPE_BACKEND_DESCRIPTOR == 15 && CUDNN_TYPE_FRACTION == 26 && CUDNN_TYPE_CHAR == 24);

TEST(LayoutsTest, BackendAttributesTakeTheBytesOfTheirTypes) {
  EXPECT_EQ(BackendTypeBytes(CUDNN_TYPE_BOOLEAN), sizeof(bool));
  EXPECT_EQ(BackendTypeBytes(CUDNN_TYPE_INT64), sizeof(std::int64_t));
  EXPECT_EQ(BackendTypeBytes(CUDNN_TYPE_INT32), sizeof(std::int32_t));
  EXPECT_EQ(BackendTypeBytes(CUDNN_TYPE_FLOAT), sizeof(float));
  EXPECT_EQ(BackendTypeBytes(CUDNN_TYPE_DOUBLE), sizeof(double));
  EXPECT_EQ(BackendTypeBytes(CUDNN_TYPE_VOID_PTR), sizeof(void*));
  EXPECT_EQ(BackendTypeBytes(CUDNN_TYPE_HANDLE), sizeof(cudnnHandle_t));
  EXPECT_EQ(BackendTypeBytes(CUDNN_TYPE_FRACTION), sizeof(cudnnFraction_t));
  EXPECT_EQ(BackendTypeBytes(CUDNN_TYPE_DATA_TYPE), sizeof(cudnnDataType_t));
  EXPECT_EQ(BackendTypeBytes(CUDNN_TYPE_RNG_DISTRIBUTION), sizeof(cudnnRngDistribution_t));
  ++checked;
}

}  // namespace
}  // namespace ashlar::hollow
#endif

#if __has_include(<nvml.h>)
#include <nvml.h>
namespace ashlar::hollow {
namespace {

static_assert(kNvmlUninitialized == NVML_ERROR_UNINITIALIZED && kNvmlInvalidArgument == NVML_ERROR_INVALID_ARGUMENT);
static_assert(kNvmlNotSupported == NVML_ERROR_NOT_SUPPORTED && kNvmlNotFound == NVML_ERROR_NOT_FOUND);
static_assert(kNvmlInsufficientSize == NVML_ERROR_INSUFFICIENT_SIZE);
static_assert(kNvmlVersionMismatch == NVML_ERROR_ARGUMENT_VERSION_MISMATCH);

static_assert(sizeof(NvmlMemory) == sizeof(nvmlMemory_t) && sizeof(NvmlMemory2) == sizeof(nvmlMemory_v2_t));
ASHLAR_SAME_FIELD(NvmlMemory, total, nvmlMemory_t, total);
ASHLAR_SAME_FIELD(NvmlMemory, free, nvmlMemory_t, free);
ASHLAR_SAME_FIELD(NvmlMemory, used, nvmlMemory_t, used);
ASHLAR_SAME_FIELD(NvmlMemory2, reserved, nvmlMemory_v2_t, reserved);
ASHLAR_SAME_FIELD(NvmlMemory2, free, nvmlMemory_v2_t, free);
ASHLAR_SAME_FIELD(NvmlMemory2, used, nvmlMemory_v2_t, used);
static_assert(NvmlVersion<NvmlMemory2>(2) == nvmlMemory_v2);
static_assert(sizeof(NvmlProcess1) == sizeof(nvmlProcessInfo_v1_t));
static_assert(sizeof(NvmlProcess2) == sizeof(nvmlProcessInfo_v2_t));
ASHLAR_SAME_FIELD(NvmlProcess2, used_bytes, nvmlProcessInfo_v2_t, usedGpuMemory);
ASHLAR_SAME_FIELD(NvmlProcess2, compute_instance, nvmlProcessInfo_v2_t, computeInstanceId);
static_assert(sizeof(NvmlUtilization) == sizeof(nvmlUtilization_t));
static_assert(sizeof(NvmlPci) == sizeof(nvmlPciInfo_t));
ASHLAR_SAME_FIELD(NvmlPci, bus, nvmlPciInfo_t, bus);
ASHLAR_SAME_FIELD(NvmlPci, subsystem_id, nvmlPciInfo_t, pciSubSystemId);
ASHLAR_SAME_FIELD(NvmlPci, bus_id, nvmlPciInfo_t, busId);
static_assert(sizeof(NvmlPciExt) == sizeof(nvmlPciInfoExt_v1_t));
static_assert(NVML_P2P_CAPS_INDEX_READ == 0 && NVML_P2P_CAPS_INDEX_WRITE == 1 && NVML_P2P_STATUS_NOT_SUPPORTED == 5);
static_assert(NVML_TOPOLOGY_NODE == 40 && NVML_DEVICE_ARCH_HOPPER == 9 && NVML_CLOCK_MEM == 2);

TEST(LayoutsTest, NvmlIsChecked) { ++checked; }

}  // namespace
}  // namespace ashlar::hollow
#endif

namespace ashlar::hollow {
namespace {

// Runs last, as tests of one program run in the order in which they are written.
TEST(LayoutsTest, SomeHeaderWasThere) {
  if (checked == 0) GTEST_SKIP() << "none of <cublasLt.h>, <cudnn.h> and <nvml.h> is here: nothing was compared";
}

}  // namespace
}  // namespace ashlar::hollow
