#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/report/diff_report.h"
#include "analyzer/report/json_values.h"

namespace ashlar::report {
namespace {

using analyses::DiffParts;
using analyses::DiffRow;

using Value = std::optional<std::uint64_t> (*)(const DiffParts&);
struct Figure {
  const char* key;
  Value value;
};

constexpr Figure kBlockFigures[] = {
    {"in_use_bytes", [](const DiffParts& p) { return std::optional(p.bytes.allocated_bytes + p.bytes.pending_bytes); }},
    {"allocated_bytes", [](const DiffParts& p) { return std::optional(p.bytes.allocated_bytes); }},
    {"live_bytes", [](const DiffParts& p) { return p.bytes.live_bytes; }},
    {"rounding_bytes", [](const DiffParts& p) { return p.bytes.rounding_bytes; }},
    {"pending_bytes", [](const DiffParts& p) { return std::optional(p.bytes.pending_bytes); }},
    {"blocks", [](const DiffParts& p) { return std::optional(p.blocks); }},
};

constexpr Figure kSegmentFigures[] = {
    {"reserved_bytes", [](const DiffParts& p) { return std::optional(p.bytes.reserved_bytes); }},
    {"stranded_bytes", [](const DiffParts& p) { return std::optional(p.bytes.stranded_bytes); }},
    {"whole_free_bytes", [](const DiffParts& p) { return std::optional(p.bytes.whole_free_bytes); }},
    {"private_pool_bytes", [](const DiffParts& p) { return std::optional(p.bytes.private_pool_bytes); }},
    {"segments", [](const DiffParts& p) { return std::optional(p.segments); }},
};

// `a` absent: the figures of b; else b - a, null where a side does not know.
Json FigureJson(const Figure& figure, const DiffParts* a, const DiffParts& b) {
  const std::optional<std::uint64_t> to = figure.value(b);
  if (!to.has_value()) return nullptr;
  if (a == nullptr) return *to;
  const std::optional<std::uint64_t> from = figure.value(*a);
  return from.has_value() ? Json(static_cast<std::int64_t>(*to - *from)) : Json(nullptr);
}

Json DiffPartsJson(const DiffParts* a, const DiffParts& b, bool has_segments) {
  Json out = Json::Object();
  if (has_segments) {
    for (const Figure& figure : kSegmentFigures) out[figure.key] = FigureJson(figure, a, b);
  }
  for (const Figure& figure : kBlockFigures) out[figure.key] = FigureJson(figure, a, b);
  return out;
}

Json RowsJson(const std::vector<DiffRow>& rows, bool has_segments) {
  Json out = Json::Array();
  for (const DiffRow& row : rows) {
    out.Append({{"label", row.label},
                {"found_in", row.a.IsEmpty()   ? "b"
                             : row.b.IsEmpty() ? "a"
                                               : "both"},
                {"a", DiffPartsJson(nullptr, row.a, has_segments)},
                {"b", DiffPartsJson(nullptr, row.b, has_segments)},
                {"difference", DiffPartsJson(&row.a, row.b, has_segments)}});
  }
  return out;
}

Json SideJson(const answers::DiffInput& input, const DiffParts& parts) {
  return {{"input", input.name},
          {"source", input.source},
          {"moment", input.moment},
          {"parts", DiffPartsJson(nullptr, parts, /*has_segments=*/true)}};
}

}  // namespace

std::string ToJson(const answers::DiffAnswer& report) {
  Json out = {{"a", SideJson(report.a, report.diff.a)},
              {"b", SideJson(report.b, report.diff.b)},
              {"difference", DiffPartsJson(&report.diff.a, report.diff.b, /*has_segments=*/true)},
              {"by_stack", report.has_stacks ? RowsJson(report.diff.by_stack, false) : Json(nullptr)},
              {"by_phase", report.has_phases ? RowsJson(report.diff.by_phase, false) : Json(nullptr)},
              {"by_size", RowsJson(report.diff.by_size, false)},
              {"by_segment", RowsJson(report.diff.by_segment, true)}};
  out["notes"] = Json::Array();
  for (const trace::Note& note : report.notes) {
    out["notes"].Append({{"name", note.name}, {"message", note.message}, {"count", note.count}});
  }
  return out.ToText();
}

}  // namespace ashlar::report
