#include "tests/kernels/ops_suite.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>

#include "kernels/ops/half.h"

namespace ashlar::ops {
namespace {

constexpr std::uint64_t kGuard = 256;
constexpr unsigned char kGuardByte = 0xc3;
constexpr unsigned char kPoison = 0xa5;

void Encode(DType dtype, double value, unsigned char* to) {
  const auto put = [&](auto encoded) { std::memcpy(to, &encoded, sizeof encoded); };
  switch (dtype) {
    case DType::kFloat32:
      return put(static_cast<float>(value));
    case DType::kFloat16:
      return put(ToFloat16(static_cast<float>(value)));
    case DType::kBFloat16:
      return put(ToBFloat16(static_cast<float>(value)));
    case DType::kInt64:
      return put(static_cast<std::int64_t>(value));
    case DType::kInt32:
      return put(static_cast<std::int32_t>(value));
    case DType::kUint8:
    case DType::kBool:
      return put(static_cast<std::uint8_t>(value));
  }
}

template <typename T>
T Bits(const unsigned char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

double Decode(DType dtype, const unsigned char* from) {
  switch (dtype) {
    case DType::kFloat32:
      return static_cast<double>(Bits<float>(from));
    case DType::kFloat16:
      return static_cast<double>(FromFloat16(Bits<std::uint16_t>(from)));
    case DType::kBFloat16:
      return static_cast<double>(FromBFloat16(Bits<std::uint16_t>(from)));
    case DType::kInt64:
      return static_cast<double>(Bits<std::int64_t>(from));
    case DType::kInt32:
      return Bits<std::int32_t>(from);
    case DType::kUint8:
    case DType::kBool:
      return *from;
  }
  return 0;
}

// The byte offset of each element, in row order.
std::vector<std::uint64_t> Places(const View& view) {
  std::vector<std::uint64_t> places = {0};
  for (std::size_t i = 0; i < view.sizes.size(); ++i) {
    std::vector<std::uint64_t> longer;
    for (const std::uint64_t place : places) {
      for (std::int64_t k = 0; k < view.sizes[i]; ++k) {
        longer.push_back(place + static_cast<std::uint64_t>(k * view.strides[i] * SizeOf(view.dtype)));
      }
    }
    places = std::move(longer);
  }
  return places;
}

std::uint64_t AddressOf(const View& view) { return reinterpret_cast<std::uint64_t>(view.data); }

// By the test's name, so that each has numbers of its own; ASHLAR_OPS_SEED gives all of them fresh ones.
std::uint64_t Seed() {
  const ::testing::TestInfo* info = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string name = std::string(info->test_suite_name()) + info->name();
  const char* given = std::getenv("ASHLAR_OPS_SEED");
  std::uint64_t seed = given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
  for (const char c : name) seed = seed * 1099511628211u + static_cast<unsigned char>(c);
  return seed;
}

}  // namespace

OpsSuite::OpsSuite() : rng_(Seed()) {}

void OpsSuite::SetUp() {
  std::string why_not;
  backend_ = MakeBackend(&why_not);
  if (backend_ == nullptr) GTEST_SKIP() << why_not;
}

void OpsSuite::TearDown() {
  if (backend_ == nullptr) return;
  for (const Guarded& guarded : guarded_) {
    std::vector<unsigned char> bytes(guarded.bytes + 2 * kGuard);
    backend_->Read(bytes.data(), guarded.address - kGuard, bytes.size());
    const auto is_whole = [](unsigned char byte) { return byte == kGuardByte; };
    EXPECT_TRUE(std::all_of(bytes.begin(), bytes.begin() + kGuard, is_whole)) << "written in front of a tensor";
    EXPECT_TRUE(std::all_of(bytes.end() - kGuard, bytes.end(), is_whole)) << "written behind a tensor";
  }
  EXPECT_EQ(backend_->scratch_in_use(), 0u);
}

View OpsSuite::Storage(const Dims& sizes, DType dtype, const Dims& order) {
  View view = Contiguous(nullptr, dtype, sizes);
  std::int64_t stride = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    view.strides[static_cast<std::size_t>(order[i])] = stride;
    stride *= std::max<std::int64_t>(sizes[static_cast<std::size_t>(order[i])], 1);
  }
  const std::uint64_t bytes = ElementBytes(view);
  const std::vector<unsigned char> guards(bytes + 2 * kGuard, kGuardByte);
  const std::uint64_t address = backend_->Allocate(guards.size());
  backend_->Write(address, guards.data(), guards.size());
  guarded_.push_back({address + kGuard, bytes});
  view.data = reinterpret_cast<void*>(address + kGuard);
  return view;
}

View OpsSuite::Make(const Dims& sizes, DType dtype, const Numbers& values, const Dims& order) {
  const View view = Storage(sizes, dtype, order);
  EXPECT_EQ(ElementCount(sizes), static_cast<std::int64_t>(values.size()));
  std::vector<unsigned char> bytes(ElementBytes(view));
  const std::vector<std::uint64_t> places = Places(view);
  for (std::size_t i = 0; i < values.size(); ++i) Encode(dtype, values[i], bytes.data() + places[i]);
  backend_->Write(AddressOf(view), bytes.data(), bytes.size());
  return view;
}

View OpsSuite::Random(const Dims& sizes, DType dtype, double low, double high, const Dims& order) {
  return Make(sizes, dtype, RandomNumbers(ElementCount(sizes), low, high), order);
}

View OpsSuite::Whole(const Dims& sizes, std::int64_t low, std::int64_t high, DType dtype) {
  Numbers values(static_cast<std::size_t>(ElementCount(sizes)));
  for (double& value : values) {
    value = static_cast<double>(low + static_cast<std::int64_t>(rng_.Below(static_cast<std::uint64_t>(high - low))));
  }
  return Make(sizes, dtype, values);
}

View OpsSuite::Poisoned(const Dims& sizes, DType dtype, const Dims& order) {
  if (IsFloat(dtype)) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    return Make(sizes, dtype, Numbers(static_cast<std::size_t>(ElementCount(sizes)), nan), order);
  }
  const View view = Storage(sizes, dtype, order);
  const std::vector<unsigned char> bytes(ElementBytes(view), kPoison);
  backend_->Write(AddressOf(view), bytes.data(), bytes.size());
  return view;
}

Numbers OpsSuite::RandomNumbers(std::int64_t count, double low, double high) {
  Numbers values(static_cast<std::size_t>(count));
  for (double& value : values) value = low + (high - low) * rng_.Unit();
  return values;
}

Numbers OpsSuite::Values(const View& view) {
  std::vector<unsigned char> bytes(SpanBytes(view));
  backend_->Read(bytes.data(), AddressOf(view), bytes.size());
  Numbers values;
  for (const std::uint64_t place : Places(view)) values.push_back(Decode(view.dtype, bytes.data() + place));
  return values;
}

std::vector<unsigned char> OpsSuite::Bytes(const View& view) {
  std::vector<unsigned char> bytes(ElementBytes(view));
  backend_->Read(bytes.data(), AddressOf(view), bytes.size());
  return bytes;
}

void OpsSuite::Expect(const View& view, const Numbers& want, double scale) {
  const Numbers got = Values(view);
  ASSERT_EQ(got.size(), want.size());
  int wrong = 0;
  for (std::size_t i = 0; i < got.size() && wrong < 4; ++i) {
    const double allowed = IsFloat(view.dtype) ? scale * Rounding(view.dtype) * std::max(1.0, std::abs(want[i])) : 0;
    const bool is_right = std::isnan(want[i])   ? std::isnan(got[i])
                          : std::isinf(want[i]) ? got[i] == want[i]
                                                : std::abs(got[i] - want[i]) <= allowed;
    if (is_right) continue;
    ++wrong;
    ADD_FAILURE() << ToString(view) << " element " << i << " is " << got[i] << ", not " << want[i] << ": allowed "
                  << allowed;
  }
}

double Rounding(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 0x1p-11;
    case DType::kBFloat16:
      return 0x1p-8;
    default:
      return 0x1p-21;
  }
}

Numbers Slopes(const std::function<double(const Numbers&)>& f, const Numbers& x, double step) {
  Numbers slopes(x.size());
  Numbers moved = x;
  for (std::size_t i = 0; i < x.size(); ++i) {
    moved[i] = x[i] + step;
    const double above = f(moved);
    moved[i] = x[i] - step;
    slopes[i] = (above - f(moved)) / (2 * step);
    moved[i] = x[i];
  }
  return slopes;
}

double Dot(const Numbers& a, const Numbers& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

}  // namespace ashlar::ops
