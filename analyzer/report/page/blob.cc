#include "analyzer/report/page/blob.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "analyzer/report/page/column.h"
#include "analyzer/report/page/deflate.h"

namespace ashlar::report {
namespace {

constexpr std::size_t kAlignment = 8;  // of the largest element

}  // namespace

Json BlobWriter::Add(absl::Span<const std::int64_t> values) {
  const PackedColumn packed = PackColumn(values);
  bytes_.resize((bytes_.size() + kAlignment - 1) / kAlignment * kAlignment, '\0');
  Json out = {{"blob", number_},         {"type", ColumnTypeName(packed.type)},
              {"offset", bytes_.size()}, {"count", packed.count},
              {"base", packed.base},     {"scale", packed.scale},
              {"delta", packed.is_delta}};
  bytes_ += packed.bytes;
  return out;
}

std::string BlobWriter::Finish() {
  const std::string packed = Deflate(bytes_);
  std::string().swap(bytes_);
  return absl::Base64Escape(packed);
}

}  // namespace ashlar::report
