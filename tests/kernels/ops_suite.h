// One suite of the ops for every backend that computes: host_backend.cc and cuda_backend.cc each make the backend of a
// test program, the files *_suite.cc are the same objects in both. Each op is held to a float64 reference that shares
// no code with it, on random inputs, with poisoned outputs between guards.
#ifndef ASHLAR_TESTS_KERNELS_OPS_SUITE_H_
#define ASHLAR_TESTS_KERNELS_OPS_SUITE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "allocator/base/rng.h"
#include "gtest/gtest.h"
#include "kernels/ops/ops.h"

namespace ashlar::ops {

using Numbers = std::vector<double>;

// Memory that ops may use, and the ops. Memory lasts as long as the backend.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual Ops& ops() = 0;
  virtual std::uint64_t Allocate(std::uint64_t bytes) = 0;
  virtual void Write(std::uint64_t address, const void* from, std::uint64_t bytes) = 0;
  virtual void Read(void* to, std::uint64_t address, std::uint64_t bytes) = 0;  // after all ops so far
  virtual std::uint64_t scratch_in_use() = 0;                                   // bytes that the workspace has out
};
// The program's backend; nullptr where there is no device.
std::unique_ptr<Backend> MakeBackend(std::string* why_not);

class OpsSuite : public ::testing::Test {
 protected:
  OpsSuite();
  void SetUp() override;
  void TearDown() override;  // every guard is whole, no scratch is out

  Ops& ops() { return backend_->ops(); }
  Rng& rng() { return rng_; }

  // A view of `sizes`: contiguous, or with the dims laid out in `order`, outermost first. Values are rounded to the
  // dtype; Values(view) are what it holds then.
  View Make(const Dims& sizes, DType dtype, const Numbers& values, const Dims& order = {});
  View Random(const Dims& sizes, DType dtype, double low = -2, double high = 2, const Dims& order = {});
  View Whole(const Dims& sizes, std::int64_t low, std::int64_t high, DType dtype = DType::kInt64);
  // To be written: NaN, or 0xa5 in integers.
  View Poisoned(const Dims& sizes, DType dtype, const Dims& order = {});

  Numbers Values(const View& view);                    // in row order
  std::vector<unsigned char> Bytes(const View& view);  // of a contiguous view

  // Each element within `scale` roundings of the view's dtype of what is wanted; a NaN wants a NaN.
  void Expect(const View& view, const Numbers& want, double scale = 4);
  void Do(const absl::Status& status) { ASSERT_TRUE(status.ok()) << status; }
  template <typename Op>
  void Run(const Op& op) {
    Do(ops().Run(op));
  }

  Numbers RandomNumbers(std::int64_t count, double low = -2, double high = 2);

 private:
  struct Guarded {
    std::uint64_t address;  // of the storage, guards at both sides
    std::uint64_t bytes;
  };
  View Storage(const Dims& sizes, DType dtype, const Dims& order);

  std::unique_ptr<Backend> backend_;
  std::vector<Guarded> guarded_;
  Rng rng_;
};

// Relative error of one rounding to the dtype, with room for float sums.
double Rounding(DType dtype);
inline const DType kFloats[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};

// d f / d x[i] by central differences.
Numbers Slopes(const std::function<double(const Numbers&)>& f, const Numbers& x, double step = 1e-5);
double Dot(const Numbers& a, const Numbers& b);

}  // namespace ashlar::ops

#endif  // ASHLAR_TESTS_KERNELS_OPS_SUITE_H_
