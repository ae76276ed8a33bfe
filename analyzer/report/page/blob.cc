#include "analyzer/report/page/blob.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/escaping.h"
#include "analyzer/report/page/column.h"
#include "analyzer/report/page/deflate.h"

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

}  // namespace ashlar::report
