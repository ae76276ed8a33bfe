// cuSPARSE, cuSOLVER, cuFFT and cuRAND without a machine below them: sizes that are written, counts that a kernel would
// make, and work areas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "hollow/api/cufft/cufft.h"
#include "tests/hollow/library_machine.h"

extern "C" {  // as a program declares them

int cudnnGetBatchNormalizationBackwardExWorkspaceSize(void* handle, int mode, int operation, void*, void*, void*, void*,
                                                      void*, void*, void*, std::size_t* bytes);
int cusparseCreate(void** handle);
int cusparseDestroy(void* handle);
int cusparseSetStream(void* handle, void* stream);
int cusparseCreateCsr(void**, std::int64_t, std::int64_t, std::int64_t, void*, void*, void*, int, int, int, int);
int cusparseDestroySpMat(void* matrix);
int cusparseCreateDnVec(void**, std::int64_t, void*, int);
int cusparseSpMV_bufferSize(void* handle, int, const void*, void*, void*, const void*, void*, int, int, std::size_t*);
int cusparseSpMV(void* handle, int, const void*, void*, void*, const void*, void*, int, int, void*);
int cusparseSpGEMM_compute(void*, int, int, const void*, void*, void*, const void*, void*, int, int, void*,
                           std::size_t*, void*);
int cusparseSpMatGetSize(void*, std::int64_t*, std::int64_t*, std::int64_t*);
int cusparseLtInit(void* handle);
int cusparseLtDestroy(const void* handle);
int cusparseLtStructuredDescriptorInit(const void*, void*, std::int64_t, std::int64_t, std::int64_t, std::uint32_t, int,
                                       int, int);
int cusparseLtSpMMACompressedSize2(const void*, const void*, std::size_t*, std::size_t*);
int cusparseLtSpMMACompress2(const void*, const void*, int, int, const void*, void*, void*, void* stream);
int cusolverDnCreate(void** handle);
int cusolverDnDestroy(void* handle);
int cusolverDnSetStream(void* handle, void* stream);
int cusolverDnSgeqrf_bufferSize(void* handle, int, int, float*, int, int* size);
int cusolverDnXgeqrf_bufferSize(void*, void*, std::int64_t, std::int64_t, int, const void*, std::int64_t, int,
                                const void*, int, std::size_t*, std::size_t*);
int cusolverDnSsyevdx_bufferSize(void*, int, int, int, int, const float*, int, float, float, int, int, int*,
                                 const float*, int* size);
int cusolverDnSgeqrf(void* handle, int, int, float*, int, float*, float*, int, int*);
int cufftPlan1d(int* plan, int length, int type, int batch);
int cufftCreate(int* plan);
int cufftSetAutoAllocation(int plan, int allocates);
int cufftSetStream(int plan, void* stream);
int cufftMakePlan2d(int plan, int, int, int type, std::size_t* bytes);
int cufftExecC2C(int plan, void*, void*, int);
int cufftDestroy(int plan);
int curandCreateGenerator(void** generator, int type);
int curandSetStream(void* generator, void* stream);
int curandGenerateUniform(void* generator, float*, std::size_t);
int curandGenerateNormal(void* generator, float*, std::size_t, float, float);
int curandDestroyGenerator(void* generator);
int curandCreateGeneratorHost(void** generator, int type);

}  // extern "C"

namespace ashlar::hollow {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(LibrariesTest, ASizeIsWrittenWhereTheLibraryWritesIt) {
  std::size_t bytes = 77;
  EXPECT_EQ(cudnnGetBatchNormalizationBackwardExWorkspaceSize(nullptr, 0, 0, nullptr, nullptr, nullptr, nullptr,
                                                              nullptr, nullptr, nullptr, &bytes),
            0);
  EXPECT_EQ(bytes, 0u);
  void* solver = nullptr;
  ASSERT_EQ(cusolverDnCreate(&solver), 0);
  int size = 77;
  EXPECT_EQ(cusolverDnSgeqrf_bufferSize(solver, 8, 8, nullptr, 8, &size), 0);
  EXPECT_EQ(size, 0);
  std::size_t device = 77, host = 77;
  EXPECT_EQ(cusolverDnXgeqrf_bufferSize(solver, nullptr, 8, 8, 0, nullptr, 8, 0, nullptr, 0, &device, &host), 0);
  EXPECT_EQ(device, 0u);
  EXPECT_EQ(host, 0u);
  int vectors = 77;  // numbers in between that are passed as floats; `vectors` is not a size
  size = 77;
  EXPECT_EQ(cusolverDnSsyevdx_bufferSize(solver, 0, 0, 0, 8, nullptr, 8, 0.5F, 1.5F, 1, 8, &vectors, nullptr, &size),
            0);
  EXPECT_EQ(size, 0);
  EXPECT_EQ(vectors, 77);
  EXPECT_EQ(cusolverDnSgeqrf_bufferSize(solver, 8, 8, nullptr, 8, nullptr), 3);
  cusolverDnDestroy(solver);
  EXPECT_EQ(cusolverDnSgeqrf_bufferSize(solver, 8, 8, nullptr, 8, &size), 1);
}

TEST_F(LibrariesTest, CusparseKnowsWhichCountsAKernelWouldMake) {
  void *handle = nullptr, *matrix = nullptr, *vector = nullptr;
  ASSERT_EQ(cusparseCreate(&handle), 0);
  ASSERT_EQ(cusparseSetStream(handle, StreamOf(3)), 0);
  ASSERT_EQ(cusparseCreateCsr(&matrix, 4, 5, 6, nullptr, nullptr, nullptr, 2, 2, 0, 0), 0);
  ASSERT_EQ(cusparseCreateDnVec(&vector, 5, nullptr, 0), 0);
  std::size_t bytes = 77;
  EXPECT_EQ(cusparseSpMV_bufferSize(handle, 0, nullptr, matrix, vector, nullptr, vector, 0, 0, &bytes), 0);
  EXPECT_EQ(bytes, 0u);
  EXPECT_EQ(cusparseSpMV(handle, 0, nullptr, matrix, vector, nullptr, vector, 0, 0, nullptr), 0);
  EXPECT_THAT(remembered.launches, ElementsAre(StreamOf(3)));
  std::int64_t rows = 0, columns = 0, nonzeros = 0;
  EXPECT_EQ(cusparseSpMatGetSize(matrix, &rows, &columns, &nonzeros), 0);
  EXPECT_EQ(nonzeros, 6);
  EXPECT_THAT(remembered.made_up, IsEmpty());
  EXPECT_EQ(
      cusparseSpGEMM_compute(handle, 0, 0, nullptr, matrix, matrix, nullptr, matrix, 0, 0, nullptr, &bytes, nullptr),
      0);
  EXPECT_EQ(cusparseSpMatGetSize(matrix, &rows, &columns, &nonzeros), 0);
  EXPECT_EQ(remembered.made_up.size(), 1u);
  EXPECT_GE(nonzeros, 0);
  EXPECT_LE(nonzeros, 20);
  EXPECT_EQ(cusparseDestroySpMat(matrix), 0);
  EXPECT_EQ(cusparseSpMatGetSize(matrix, &rows, &columns, &nonzeros), 3);
  EXPECT_EQ(cusparseDestroy(handle), 0);
  EXPECT_EQ(cusparseSpMV(handle, 0, nullptr, matrix, vector, nullptr, vector, 0, 0, nullptr), 1);
}

TEST_F(LibrariesTest, CufftTakesItsWorkAreaFromTheDevice) {
  EXPECT_EQ(WorkAreaBytes({1024}, 2, 8), 16'384u);
  EXPECT_EQ(WorkAreaBytes({127 * 127}, 1, 8), 127u * 127 * 8);
  EXPECT_EQ(WorkAreaBytes({131}, 1, 8), 131u * 8 * 8);
  int plan = 0;
  ASSERT_EQ(cufftPlan1d(&plan, 1024, 0x29, 2), 0);
  EXPECT_THAT(remembered.allocated, ElementsAre(16'384u));
  ASSERT_EQ(cufftSetStream(plan, StreamOf(4)), 0);
  EXPECT_EQ(cufftExecC2C(plan, nullptr, nullptr, -1), 0);
  EXPECT_THAT(remembered.launches, ElementsAre(StreamOf(4)));
  EXPECT_EQ(cufftDestroy(plan), 0);
  EXPECT_EQ(remembered.freed, 1u);
  EXPECT_EQ(cufftExecC2C(plan, nullptr, nullptr, -1), 1);
  ASSERT_EQ(cufftCreate(&plan), 0);
  EXPECT_EQ(cufftExecC2C(plan, nullptr, nullptr, -1), 1);  // not made yet
  ASSERT_EQ(cufftSetAutoAllocation(plan, 0), 0);
  std::size_t bytes = 0;
  EXPECT_EQ(cufftMakePlan2d(plan, 8, 8, 0x69, &bytes), 0);
  EXPECT_EQ(bytes, 8u * 8 * 16);
  EXPECT_EQ(remembered.allocated.size(), 1u);  // it is the caller's to take
  EXPECT_EQ(cufftDestroy(plan), 0);
}

TEST_F(LibrariesTest, CurandCountsOnTheStreamOfItsGenerator) {
  void* generator = nullptr;
  EXPECT_EQ(curandCreateGenerator(&generator, 42), 103);
  ASSERT_EQ(curandCreateGenerator(&generator, 100), 0);
  ASSERT_EQ(curandSetStream(generator, StreamOf(8)), 0);
  EXPECT_EQ(curandGenerateUniform(generator, nullptr, 16), 0);
  EXPECT_EQ(curandGenerateNormal(generator, nullptr, 16, 0, 1), 0);
  EXPECT_THAT(remembered.launches, ElementsAre(StreamOf(8), StreamOf(8)));
  EXPECT_EQ(curandDestroyGenerator(generator), 0);
  EXPECT_EQ(curandGenerateUniform(generator, nullptr, 16), 101);
}

TEST_F(LibrariesTest, AStructuredMatrixIsCompressedToHalfItsValuesAndTheirPlaces) {
  alignas(16) char handle[512] = {}, matrix[512] = {};
  std::size_t bytes = 0, buffer = 77;
  EXPECT_EQ(cusparseLtStructuredDescriptorInit(handle, matrix, 64, 64, 64, 16, 2, 1, 0), 1);  // no handle yet
  ASSERT_EQ(cusparseLtInit(handle), 0);
  constexpr int kHalf = 2;
  constexpr int kInt8 = 3;
  ASSERT_EQ(cusparseLtStructuredDescriptorInit(handle, matrix, 64, 64, 64, 16, kHalf, 1, 0), 0);
  ASSERT_EQ(cusparseLtSpMMACompressedSize2(handle, matrix, &bytes, &buffer), 0);
  EXPECT_EQ(bytes, 64u * 64 * 2 * 9 / 16);  // as PyTorch counts them: cuSPARSELtOps.cpp, compression_factor
  EXPECT_EQ(buffer, 0u);
  ASSERT_EQ(cusparseLtStructuredDescriptorInit(handle, matrix, 64, 64, 64, 16, kInt8, 1, 0), 0);
  ASSERT_EQ(cusparseLtSpMMACompressedSize2(handle, matrix, &bytes, &buffer), 0);
  EXPECT_EQ(bytes, 64u * 64 * 10 / 16);
  EXPECT_EQ(cusparseLtSpMMACompress2(handle, matrix, 1, 0, nullptr, nullptr, nullptr, StreamOf(6)), 0);
  EXPECT_THAT(remembered.launches, ElementsAre(StreamOf(6)));
  EXPECT_EQ(cusparseLtDestroy(handle), 0);
  EXPECT_EQ(cusparseLtSpMMACompress2(handle, matrix, 1, 0, nullptr, nullptr, nullptr, nullptr), 1);
}

}  // namespace
}  // namespace ashlar::hollow
