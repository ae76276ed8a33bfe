#include "commands/explain/held_report.h"

namespace ashlar::report {

Json HeldJson(const std::optional<analyses::HeldByName>& held) {
  if (!held.has_value()) return nullptr;
  Json rows = Json::Array();
  for (const analyses::HeldRow& row : held->rows) {
    const trace::Holder& holder = row.holder;
    rows.Append({{"kind", holder.kind},
                 {"name", holder.name},
                 {"file", TextOrNull(holder.file)},
                 {"line", holder.line > 0 ? Json(holder.line) : Json(nullptr)},
                 {"function", TextOrNull(holder.function)},
                 {"nodes", holder.nodes > 0 ? Json(holder.nodes) : Json(nullptr)},
                 {"bytes", row.bytes},
                 {"blocks", row.blocks},
                 {"since_step", row.growth ? Json(row.growth->since_step) : Json(nullptr)},
                 {"steps", row.growth ? Json(row.growth->steps) : Json(nullptr)},
                 {"bytes_per_step", row.growth ? Json(row.growth->bytes_per_step) : Json(nullptr)}});
  }
  return {{"when", held->when},
          {"live_bytes", held->live_bytes},
          {"named_bytes", held->named_bytes},
          {"bound", TextOrNull(held->bound)},
          {"not_live_blocks", held->not_live},
          {"holders", rows}};
}

}  // namespace ashlar::report
