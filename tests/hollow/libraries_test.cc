// cuBLAS and cuBLASLt without a machine below them: handles that are checked, work that is counted on the stream of its
// handle, values that nothing computed, and descriptors; and the list of objects that all libraries share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "hollow/api/cublas/cublas.h"
#include "hollow/api/cublas/cublaslt.h"
#include "hollow/api/objects.h"
#include "tests/hollow/library_machine.h"

extern "C" {  // as a program declares them

int cublasCreate_v2(void** handle);
int cublasDestroy_v2(void* handle);
int cublasSetStream_v2(void* handle, void* stream);
int cublasGetStream_v2(void* handle, void** stream);
int cublasSetWorkspace_v2(void* handle, void* workspace, std::size_t bytes);
int cublasSetPointerMode_v2(void* handle, int mode);
int cublasSetMathMode(void* handle, int mode);
int cublasGetMathMode(void* handle, int* mode);
int cublasSgemm_v2(void* handle, int, int, int, int, int, const float*, const float*, int, const float*, int,
                   const float*, float*, int);
int cublasSdot_v2(void* handle, int n, const float*, int, const float*, int, float*);
int cublasZdotc_v2(void* handle, int n, const void*, int, const void*, int, void*);
int cublasIsamax_v2_64(void* handle, std::int64_t n, const float*, std::int64_t, std::int64_t*);
int cublasDrotg_v2(void* handle, double*, double*, double*, double*);
int cublasDgetrsBatched(void* handle, int, int, int, const double* const*, int, const int*, double* const*, int, int*,
                        int);
int cublasSetMatrix(int rows, int columns, int size, const void* a, int a_step, void* b, int b_step);
int cublasXtSgemm(void*);
int cublasLtCreate(void** handle);
int cublasLtDestroy(void* handle);
int cublasLtMatrixLayoutCreate(void** layout, int type, std::uint64_t rows, std::uint64_t columns, std::int64_t step);
int cublasLtMatrixLayoutInit_internal(void* layout, std::size_t size, int type, std::uint64_t rows,
                                      std::uint64_t columns, std::int64_t step);
int cublasLtMatrixLayoutSetAttribute(void* layout, int attribute, const void* value, std::size_t bytes);
int cublasLtMatrixLayoutGetAttribute(const void* layout, int attribute, void* value, std::size_t bytes,
                                     std::size_t* written);
int cublasLtMatrixLayoutDestroy(void* layout);
int cublasLtMatmulDescCreate(void** matmul, int compute_type, int scale_type);
int cublasLtMatmulDescInit_internal(void* matmul, std::size_t size, int compute_type, int scale_type);
int cublasLtMatmulDescSetAttribute(void* matmul, int attribute, const void* value, std::size_t bytes);
int cublasLtMatmulDescGetAttribute(const void* matmul, int attribute, void* value, std::size_t bytes,
                                   std::size_t* written);
int cublasLtMatmulDescDestroy(void* matmul);
int cublasLtMatmulPreferenceCreate(void** preference);
int cublasLtMatmulPreferenceDestroy(void* preference);
int cublasLtMatmulAlgoGetHeuristic(void* handle, void*, void*, void*, void*, void*, void*, int,
                                   ashlar::hollow::LtHeuristicResult*, int*);
int cublasLtMatmul(void* handle, void*, const void*, const void*, void*, const void*, void*, const void*, const void*,
                   void*, void*, void*, const void*, void*, std::size_t, void* stream);
int curandCreateGeneratorHost(void** generator, int type);

}  // extern "C"

namespace ashlar::hollow {
namespace {

using testing::ElementsAre;

TEST(ObjectsTest, AHandleOutlivesNeitherItsObjectNorItsPlace) {
  static constinit Objects<int> objects(0x42);
  static constinit Objects<int> others(0x43);
  std::vector<void*> handles;
  for (int i = 0; i < 1000; ++i) handles.push_back(objects.Make(i));
  EXPECT_EQ(std::set<void*>(handles.begin(), handles.end()).size(), handles.size());
  for (int i = 0; i < 1000; ++i) {
    ASSERT_NE(objects.Find(handles[i]), nullptr);
    EXPECT_EQ(*objects.Find(handles[i]), i);
    EXPECT_EQ(others.Find(handles[i]), nullptr);
  }
  EXPECT_TRUE(objects.Destroy(handles[500]));
  EXPECT_EQ(objects.Find(handles[500]), nullptr);
  EXPECT_FALSE(objects.Destroy(handles[500]));
  void* again = objects.Make(7);  // in the same place
  EXPECT_NE(again, handles[500]);
  EXPECT_EQ(objects.Find(handles[500]), nullptr);
  EXPECT_EQ(*objects.Find(again), 7);
  EXPECT_EQ(objects.Find(nullptr), nullptr);
  int local = 0;
  EXPECT_EQ(objects.Find(&local), nullptr);
}

// CuPy keeps handles in signed numbers.
TEST(ObjectsTest, HandlesAreBelowTheHighestBit) {
  static constinit Objects<int> high(0xDB);
  static constinit Objects<int> low(0x5B);
  void* handle = high.Make(7);
  EXPECT_LT(reinterpret_cast<std::uintptr_t>(handle), std::uintptr_t{1} << 63);
  ASSERT_NE(high.Find(handle), nullptr);
  EXPECT_EQ(*high.Find(handle), 7);
  EXPECT_TRUE(high.Destroy(handle));
  void* blas = nullptr;
  ASSERT_EQ(cublasCreate_v2(&blas), 0);
  EXPECT_LT(reinterpret_cast<std::uintptr_t>(blas), std::uintptr_t{1} << 63);
  EXPECT_EQ(low.Find(blas), nullptr);
  EXPECT_EQ(cublasDestroy_v2(blas), 0);
}

TEST(ObjectsTest, ThreadsMakeAndDestroyAtTheSameTime) {
  static constinit Objects<int> objects(0x44);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&wrong, thread] {
      for (int i = 0; i < 5000; ++i) {
        void* handle = objects.Make(thread * 10'000 + i);
        const int* found = objects.Find(handle);
        if (found == nullptr || *found != thread * 10'000 + i) ++wrong;
        if (!objects.Destroy(handle) || objects.Find(handle) != nullptr) ++wrong;
      }
    });
  }
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(LibrariesTest, CublasCountsWorkOnTheStreamOfItsHandle) {
  void* handle = nullptr;
  ASSERT_EQ(cublasCreate_v2(&handle), 0);
  ASSERT_EQ(cublasSetStream_v2(handle, StreamOf(7)), 0);
  EXPECT_EQ(cublasSgemm_v2(handle, 0, 0, 4, 4, 4, nullptr, nullptr, 4, nullptr, 4, nullptr, nullptr, 4), 0);
  EXPECT_THAT(remembered.launches, ElementsAre(StreamOf(7)));
  void* stream = nullptr;
  EXPECT_EQ(cublasGetStream_v2(handle, &stream), 0);
  EXPECT_EQ(stream, StreamOf(7));
  int mode = 0;
  EXPECT_EQ(cublasSetMathMode(handle, 3), 0);
  EXPECT_EQ(cublasGetMathMode(handle, &mode), 0);
  EXPECT_EQ(mode, 3);
  ASSERT_EQ(cublasDestroy_v2(handle), 0);
  EXPECT_EQ(cublasSgemm_v2(handle, 0, 0, 4, 4, 4, nullptr, nullptr, 4, nullptr, 4, nullptr, nullptr, 4), 1);
  EXPECT_EQ(cublasSgemm_v2(nullptr, 0, 0, 4, 4, 4, nullptr, nullptr, 4, nullptr, 4, nullptr, nullptr, 4), 1);
  EXPECT_EQ(cublasDestroy_v2(handle), 1);
  EXPECT_EQ(remembered.launches.size(), 1u);
}

TEST_F(LibrariesTest, AReductionToTheHostIsAMadeUpValue) {
  void* handle = nullptr;
  ASSERT_EQ(cublasCreate_v2(&handle), 0);
  float dot = -1;
  EXPECT_EQ(cublasSdot_v2(handle, 8, nullptr, 1, nullptr, 1, &dot), 0);
  std::int64_t largest[2] = {-1, -1};
  EXPECT_EQ(cublasIsamax_v2_64(handle, 8, nullptr, 1, largest), 0);
  EXPECT_EQ(largest[1], -1);  // no byte more than the result
  double z[2];
  EXPECT_EQ(cublasZdotc_v2(handle, 8, nullptr, 1, nullptr, 1, z), 0);
  double a = 1, b = 2, c = 3, s = 4;
  EXPECT_EQ(cublasDrotg_v2(handle, &a, &b, &c, &s), 0);
  EXPECT_THAT(remembered.made_up, ElementsAre(4, 8, 16, 8, 8, 8, 8));
  EXPECT_EQ(cublasSdot_v2(handle, 0, nullptr, 1, nullptr, 1, &dot), 0);
  EXPECT_EQ(dot, 0);  // of nothing: that much is known
  ASSERT_EQ(cublasSetPointerMode_v2(handle, 1), 0);
  EXPECT_EQ(cublasSdot_v2(handle, 8, nullptr, 1, nullptr, 1, &dot), 0);
  EXPECT_EQ(dot, 0);  // on the device: not touched by the host
  EXPECT_EQ(remembered.made_up.size(), 7u);
  EXPECT_EQ(remembered.launches.size(), 6u);
  int info = -1;
  EXPECT_EQ(cublasDgetrsBatched(handle, 0, 4, 1, nullptr, 4, nullptr, nullptr, 4, &info, 2), 0);
  EXPECT_EQ(info, 0);
  cublasDestroy_v2(handle);
}

TEST_F(LibrariesTest, CublasCopiesAMatrixColumnByColumn) {
  const int from[6] = {1, 2, 3, 4, 5, 6};  // two columns of three, two rows of which are taken
  int to[8] = {};
  EXPECT_EQ(cublasSetMatrix(2, 2, sizeof(int), from, 3, to, 4), 0);
  EXPECT_THAT(to, ElementsAre(1, 2, 0, 0, 4, 5, 0, 0));
  EXPECT_EQ(cublasSetMatrix(2, 2, 0, from, 3, to, 4), 7);
}

TEST_F(LibrariesTest, WhatIsNotModelledIsRefusedByName) {
  EXPECT_EQ(cublasXtSgemm(nullptr), 15);
  void* generator = nullptr;
  EXPECT_EQ(curandCreateGeneratorHost(&generator, 100), 999);
  EXPECT_EQ(generator, nullptr);
  EXPECT_THAT(remembered.refused, ElementsAre("cublasXtSgemm", "curandCreateGeneratorHost"));
}

struct LtParts {
  LtParts() {
    cublasLtCreate(&handle);
    cublasLtMatmulDescCreate(&matmul, 68, 0);
    cublasLtMatrixLayoutCreate(&layout, 0, 8, 8, 8);
    cublasLtMatmulPreferenceCreate(&preference);
  }
  ~LtParts() {
    cublasLtMatmulPreferenceDestroy(preference);
    cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(matmul);
    cublasLtDestroy(handle);
  }
  int Heuristic(int wanted, LtHeuristicResult* results, int* count) const {
    return cublasLtMatmulAlgoGetHeuristic(handle, matmul, layout, layout, layout, layout, preference, wanted, results,
                                          count);
  }
  void* handle = nullptr;
  void* matmul = nullptr;
  void* layout = nullptr;
  void* preference = nullptr;
};

TEST_F(LibrariesTest, CublasLtFindsOneAlgorithmAndRunsIt) {
  const LtParts lt;
  LtHeuristicResult results[3];
  std::memset(results, 0x55, sizeof(results));
  int count = 0;
  ASSERT_EQ(lt.Heuristic(3, results, &count), 0);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(results[0].state, 0);
  EXPECT_EQ(results[0].workspace_bytes, 0u);
  EXPECT_EQ(results[1].state, 0x55555555);  // beyond what was found, nothing is written
  EXPECT_EQ(lt.Heuristic(0, results, &count), 7);
  EXPECT_EQ(cublasLtMatmul(lt.handle, lt.matmul, nullptr, nullptr, lt.layout, nullptr, lt.layout, nullptr, nullptr,
                           lt.layout, nullptr, lt.layout, &results[0].algo, StreamOf(0x5000), 512, StreamOf(9)),
            0);
  EXPECT_TRUE(IsWorkspace(0x5000, 512));
  EXPECT_THAT(remembered.launches, ElementsAre(StreamOf(9)));
  EXPECT_EQ(cublasLtMatmul(lt.handle, lt.layout, nullptr, nullptr, lt.layout, nullptr, lt.layout, nullptr, nullptr,
                           lt.layout, nullptr, lt.layout, nullptr, nullptr, 0, nullptr),
            7);  // a layout is no product
  EXPECT_EQ(lt.Heuristic(1, results, &count), 0);
  void* cublas = nullptr;
  ASSERT_EQ(cublasCreate_v2(&cublas), 0);  // which is a handle of cuBLASLt too
  EXPECT_EQ(cublasLtMatmulAlgoGetHeuristic(cublas, lt.matmul, lt.layout, lt.layout, lt.layout, lt.layout, lt.preference,
                                           1, results, &count),
            0);
  cublasDestroy_v2(cublas);
  EXPECT_EQ(cublasLtMatmulAlgoGetHeuristic(cublas, lt.matmul, lt.layout, lt.layout, lt.layout, lt.layout, lt.preference,
                                           1, results, &count),
            1);
}

TEST_F(LibrariesTest, AWorkspaceIsWhatTheProgramGave) {
  void* handle = nullptr;
  ASSERT_EQ(cublasCreate_v2(&handle), 0);
  EXPECT_EQ(cublasSetWorkspace_v2(handle, StreamOf(0x7000), 4096), 0);
  EXPECT_TRUE(IsWorkspace(0x7000, 4096));
  EXPECT_FALSE(IsWorkspace(0x7000, 8192));
  EXPECT_FALSE(IsWorkspace(0x8000, 4096));
  EXPECT_TRUE(IsWorkspace(0x7000, std::uint64_t{32} << 20));  // of which a part was given
  EXPECT_EQ(cublasSetStream_v2(handle, StreamOf(9)), 0);      // the other stream's stays one
  EXPECT_TRUE(IsWorkspace(0x7000, 4096));
  cublasDestroy_v2(handle);
  EXPECT_EQ(cublasSetWorkspace_v2(handle, StreamOf(0x9000), 4096), 1);
  EXPECT_FALSE(IsWorkspace(0x9000, 4096));
}

TEST_F(LibrariesTest, CublasLtDescriptorsKeepTheirAttributes) {
  std::uint64_t words[8];
  ASSERT_EQ(cublasLtMatrixLayoutInit_internal(words, sizeof(words), 14, 3, 5, 7), 0);
  const std::int32_t batch = 11;
  EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(words, 5, &batch, sizeof(batch)), 0);
  std::uint64_t rows = 0;
  std::size_t written = 0;
  EXPECT_EQ(cublasLtMatrixLayoutGetAttribute(words, 2, &rows, sizeof(rows), &written), 0);
  EXPECT_EQ(rows, 3u);
  EXPECT_EQ(written, 8u);
  std::int32_t got = 0;
  EXPECT_EQ(cublasLtMatrixLayoutGetAttribute(words, 5, &got, sizeof(got), nullptr), 0);
  EXPECT_EQ(got, 11);
  EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(words, 5, &batch, 8), 7);   // of another size
  EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(words, 99, &batch, 4), 7);  // of no number
  EXPECT_EQ(cublasLtMatrixLayoutDestroy(words), 7);                      // it is the caller's
  void* made = nullptr;
  ASSERT_EQ(cublasLtMatrixLayoutCreate(&made, 0, 1, 1, 1), 0);
  ASSERT_EQ(cublasLtMatrixLayoutDestroy(made), 0);
  EXPECT_EQ(cublasLtMatrixLayoutDestroy(made), 7);
  EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(made, 5, &batch, sizeof(batch)), 7);
}

TEST_F(LibrariesTest, CublasLtHasRoomForEveryAttributeOfEachRelease) {
  const std::vector<int> of_11 = {0,  1,  2,  3,  4,  5,  6,  7,  8,  10, 11, 12, 13,
                                  14, 15, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26};
  std::vector<int> of_13 = of_11;
  for (int number = 27; number <= 38; ++number) of_13.push_back(number);
  const auto keeps = [](std::size_t room, const std::vector<int>& numbers) {
    std::uint64_t words[33] = {};
    words[room / 8] = 0x5A5A;
    cublasLtMatmulDescInit_internal(words, room, 68, 0);
    std::vector<std::size_t> sizes;
    for (const int number : numbers) {
      std::size_t size = 0;
      EXPECT_EQ(cublasLtMatmulDescGetAttribute(words, number, nullptr, 0, &size), 0) << number;
      const std::uint64_t value = 0x0101010101010101u * static_cast<unsigned>(number);
      EXPECT_EQ(cublasLtMatmulDescSetAttribute(words, number, &value, size), 0) << number;
    }
    for (const int number : numbers) {
      std::uint64_t value = 0;
      EXPECT_EQ(cublasLtMatmulDescGetAttribute(words, number, &value, 8, nullptr), 0) << number;
      EXPECT_EQ(value & 0xFF, static_cast<unsigned>(number));
    }
    EXPECT_EQ(words[room / 8], 0x5A5Au);  // behind the descriptor
  };
  keeps(23 * 8, of_11);  // cublasLtMatmulDescOpaque_t of CUDA 11, and of 12 and 13
  keeps(32 * 8, of_13);
}

}  // namespace
}  // namespace ashlar::hollow
