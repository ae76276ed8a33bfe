#include "commands/explain/page/column_blob.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "allocator/base/check.h"

namespace ashlar::report {
namespace {

constexpr std::size_t kAlignment = 8;  // of the largest element

}  // namespace

void BlobWriter::Add(absl::string_view name, absl::Span<const std::int64_t> values) {
  const PackedColumn packed = PackColumn(values);
  bytes_.resize((bytes_.size() + kAlignment - 1) / kAlignment * kAlignment, '\0');
  Json column = {{"blob", nullptr},         {"type", ColumnTypeName(packed.type)},
                 {"offset", bytes_.size()}, {"count", packed.count},
                 {"base", packed.base},     {"scale", packed.scale},
                 {"delta", packed.is_delta}};
  columns_.emplace_back(std::string(name), std::move(column));
  bytes_ += packed.bytes;
}

void BlobWriter::MoveTo(std::vector<std::string>& blobs, Json& columns) {
  std::string blob = absl::Base64Escape(Deflate(bytes_));
  std::string().swap(bytes_);
  const auto found = std::find(blobs.begin(), blobs.end(), blob);
  const auto number = static_cast<std::size_t>(found - blobs.begin());
  if (found == blobs.end()) blobs.push_back(std::move(blob));
  for (auto& [name, column] : columns_) {
    column["blob"] = number;
    columns[name] = std::move(column);
  }
  columns_.clear();
}

namespace {

using Numbers = absl::Span<const std::int64_t>;

static_assert(std::endian::native == std::endian::little);

template <typename T>
bool HoldsRange(std::int64_t low, std::int64_t high) {
  return std::numeric_limits<T>::min() <= low && high <= std::int64_t{std::numeric_limits<T>::max()};
}

ColumnType TypeFor(std::int64_t low, std::int64_t high) {
  if (HoldsRange<std::uint8_t>(low, high)) return ColumnType::kU8;
  if (HoldsRange<std::int8_t>(low, high)) return ColumnType::kI8;
  if (HoldsRange<std::uint16_t>(low, high)) return ColumnType::kU16;
  if (HoldsRange<std::int16_t>(low, high)) return ColumnType::kI16;
  if (HoldsRange<std::uint32_t>(low, high)) return ColumnType::kU32;
  if (HoldsRange<std::int32_t>(low, high)) return ColumnType::kI32;
  return ColumnType::kF64;
}

template <typename T>
std::string BytesAs(Numbers raw) {
  std::string out(raw.size() * sizeof(T), '\0');
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const T value = static_cast<T>(raw[i]);
    std::memcpy(out.data() + i * sizeof(T), &value, sizeof(T));
  }
  return out;
}

std::string BytesOf(ColumnType type, Numbers raw) {
  switch (type) {
    case ColumnType::kU8:
      return BytesAs<std::uint8_t>(raw);
    case ColumnType::kU16:
      return BytesAs<std::uint16_t>(raw);
    case ColumnType::kU32:
      return BytesAs<std::uint32_t>(raw);
    case ColumnType::kI8:
      return BytesAs<std::int8_t>(raw);
    case ColumnType::kI16:
      return BytesAs<std::int16_t>(raw);
    case ColumnType::kI32:
      return BytesAs<std::int32_t>(raw);
    case ColumnType::kF64:
      return BytesAs<double>(raw);
  }
  return "";
}

// `raw` less what is common to all of it; `base` is added to, where the raw values may begin elsewhere than at 0.
PackedColumn PackRaw(std::vector<std::int64_t> raw, std::int64_t base, bool is_delta) {
  PackedColumn out;
  out.is_delta = is_delta;
  out.count = raw.size();
  out.base = base;
  std::int64_t common = 0;
  for (const std::int64_t value : raw) common = std::gcd(common, value);
  out.scale = std::max<std::int64_t>(common, 1);
  for (std::int64_t& value : raw) value /= out.scale;
  const auto [low, high] = std::minmax_element(raw.begin(), raw.end());
  out.type = raw.empty() ? ColumnType::kU8 : TypeFor(*low, *high);
  out.bytes = BytesOf(out.type, raw);
  return out;
}

PackedColumn AsPlain(Numbers values) {
  const std::int64_t base = values.empty() ? 0 : *std::min_element(values.begin(), values.end());
  std::vector<std::int64_t> raw(values.begin(), values.end());
  for (std::int64_t& value : raw) value -= base;
  return PackRaw(std::move(raw), base, /*is_delta=*/false);
}

PackedColumn AsDeltas(Numbers values) {
  std::vector<std::int64_t> raw(values.size());
  for (std::size_t i = 1; i < values.size(); ++i) raw[i] = values[i] - values[i - 1];
  return PackRaw(std::move(raw), values.empty() ? 0 : values.front(), /*is_delta=*/true);
}

// Enough to tell how well a column compresses.
constexpr std::size_t kSampled = 4096;

}  // namespace

const char* ColumnTypeName(ColumnType type) {
  switch (type) {
    case ColumnType::kU8:
      return "u8";
    case ColumnType::kU16:
      return "u16";
    case ColumnType::kU32:
      return "u32";
    case ColumnType::kI8:
      return "i8";
    case ColumnType::kI16:
      return "i16";
    case ColumnType::kI32:
      return "i32";
    case ColumnType::kF64:
      return "f64";
  }
  return "";
}

PackedColumn PackColumn(Numbers values) {
  const Numbers sample =
      values.subspan(values.size() / 2 - std::min(values.size() / 2, kSampled / 2), std::min(values.size(), kSampled));
  const bool is_delta = Deflate(AsDeltas(sample).bytes).size() < Deflate(AsPlain(sample).bytes).size();
  return is_delta ? AsDeltas(values) : AsPlain(values);
}

namespace {

constexpr int kGzipWindow = 15 + 16;  // the largest window, with gzip's header
constexpr int kMemoryLevel = 8;       // zlib's usual
constexpr std::size_t kChunk = 256 * 1024;

}  // namespace

std::string Deflate(absl::string_view bytes) {
  z_stream stream{};
  ASHLAR_CHECK(
      deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemoryLevel, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out;
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    if (stream.avail_in == 0) {
      const std::size_t taken = std::min<std::size_t>(bytes.size(), std::numeric_limits<uInt>::max());
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      stream.avail_in = static_cast<uInt>(taken);
      bytes.remove_prefix(taken);
    }
    const std::size_t written = out.size();
    out.resize(written + kChunk);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + written);
    stream.avail_out = static_cast<uInt>(kChunk);
    state = deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
    ASHLAR_CHECK(state != Z_STREAM_ERROR);
    out.resize(written + kChunk - stream.avail_out);
  }
  deflateEnd(&stream);
  return out;
}

}  // namespace ashlar::report
