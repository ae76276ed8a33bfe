#include "kernels/ops/host/host_ops.h"

#include <limits>

#include "kernels/ops/half.h"

namespace ashlar::ops::host {
namespace {

template <typename T, typename Convert>
void Gather(const Row& row, std::int64_t begin, std::int64_t count, float* buffer, const Convert& convert) {
  const T* from = static_cast<const T*>(row.data) + begin * row.stride;
  if (row.stride == 1) {
    for (std::int64_t i = 0; i < count; ++i) buffer[i] = convert(from[i]);
  } else if (row.stride == 0) {
    std::fill(buffer, buffer + count, convert(*from));
  } else {
    for (std::int64_t i = 0; i < count; ++i) buffer[i] = convert(from[i * row.stride]);
  }
}

template <typename T, typename Convert>
void Scatter(const Row& row, std::int64_t begin, std::int64_t count, const float* values, const Convert& convert) {
  T* to = static_cast<T*>(row.data) + begin * row.stride;
  if (row.stride == 1) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = convert(values[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i * row.stride] = convert(values[i]);
  }
}

template <typename T>
T Whole(double value) {
  if (value != value) return 0;
  if (value <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

template <typename T>
T* Element(const Row& row, std::int64_t at) {
  return static_cast<T*>(row.data) + at * row.stride;
}

}  // namespace

const float* Load(const Row& row, std::int64_t begin, std::int64_t count, float* buffer) {
  const auto widen = [](auto value) { return static_cast<float>(value); };
  switch (row.dtype) {
    case DType::kFloat32:
      if (row.stride == 1) return static_cast<const float*>(row.data) + begin;
      Gather<float>(row, begin, count, buffer, widen);
      break;
    case DType::kFloat16:
      Gather<std::uint16_t>(row, begin, count, buffer, FromFloat16);
      break;
    case DType::kBFloat16:
      Gather<std::uint16_t>(row, begin, count, buffer, FromBFloat16);
      break;
    case DType::kInt64:
      Gather<std::int64_t>(row, begin, count, buffer, widen);
      break;
    case DType::kInt32:
      Gather<std::int32_t>(row, begin, count, buffer, widen);
      break;
    case DType::kUint8:
    case DType::kBool:
      Gather<std::uint8_t>(row, begin, count, buffer, widen);
      break;
  }
  return buffer;
}

void Store(const Row& row, std::int64_t begin, std::int64_t count, const float* values) {
  switch (row.dtype) {
    case DType::kFloat32:
      if (values == static_cast<const float*>(row.data) + begin) return;  // Place gave the row itself
      return Scatter<float>(row, begin, count, values, [](float value) { return value; });
    case DType::kFloat16:
      return Scatter<std::uint16_t>(row, begin, count, values, ToFloat16);
    case DType::kBFloat16:
      return Scatter<std::uint16_t>(row, begin, count, values, ToBFloat16);
    case DType::kInt64:
      return Scatter<std::int64_t>(row, begin, count, values, Whole<std::int64_t>);
    case DType::kInt32:
      return Scatter<std::int32_t>(row, begin, count, values, Whole<std::int32_t>);
    case DType::kUint8:
      return Scatter<std::uint8_t>(row, begin, count, values, Whole<std::uint8_t>);
    case DType::kBool:
      return Scatter<std::uint8_t>(row, begin, count, values, [](float v) { return std::uint8_t{v != 0}; });
  }
}

float* Place(const Row& row, std::int64_t begin, float* buffer) {
  return row.dtype == DType::kFloat32 && row.stride == 1 ? static_cast<float*>(row.data) + begin : buffer;
}

std::int64_t LoadInteger(const Row& row, std::int64_t at) {
  switch (row.dtype) {
    case DType::kInt64:
      return *Element<std::int64_t>(row, at);
    case DType::kInt32:
      return *Element<std::int32_t>(row, at);
    case DType::kUint8:
    case DType::kBool:
      return *Element<std::uint8_t>(row, at);
    default:
      return Whole<std::int64_t>(LoadNumber(row, at));
  }
}

double LoadNumber(const Row& row, std::int64_t at) {
  switch (row.dtype) {
    case DType::kFloat32:
      return static_cast<double>(*Element<float>(row, at));
    case DType::kFloat16:
      return static_cast<double>(FromFloat16(*Element<std::uint16_t>(row, at)));
    case DType::kBFloat16:
      return static_cast<double>(FromBFloat16(*Element<std::uint16_t>(row, at)));
    default:
      return static_cast<double>(LoadInteger(row, at));
  }
}

void StoreNumber(const Row& row, std::int64_t at, double value) {
  switch (row.dtype) {
    case DType::kFloat32:
      *Element<float>(row, at) = static_cast<float>(value);
      return;
    case DType::kFloat16:
      *Element<std::uint16_t>(row, at) = ToFloat16(static_cast<float>(value));
      return;
    case DType::kBFloat16:
      *Element<std::uint16_t>(row, at) = ToBFloat16(static_cast<float>(value));
      return;
    case DType::kInt64:
      *Element<std::int64_t>(row, at) = Whole<std::int64_t>(value);
      return;
    case DType::kInt32:
      *Element<std::int32_t>(row, at) = Whole<std::int32_t>(value);
      return;
    case DType::kUint8:
      *Element<std::uint8_t>(row, at) = Whole<std::uint8_t>(value);
      return;
    case DType::kBool:
      *Element<std::uint8_t>(row, at) = value != 0;
      return;
  }
}

void StoreInteger(const Row& row, std::int64_t at, std::int64_t value) {
  switch (row.dtype) {
    case DType::kInt64:
      *Element<std::int64_t>(row, at) = value;
      return;
    case DType::kInt32:
      *Element<std::int32_t>(row, at) = static_cast<std::int32_t>(std::clamp<std::int64_t>(
          value, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()));
      return;
    default:
      StoreNumber(row, at, static_cast<double>(value));
  }
}

}  // namespace ashlar::ops::host
