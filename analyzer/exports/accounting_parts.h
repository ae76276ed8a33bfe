// The parts of an accounting under their names in JSON, in the order of the report. nullopt: not in the trace.
#ifndef ASHLAR_ANALYZER_EXPORTS_ACCOUNTING_PARTS_H_
#define ASHLAR_ANALYZER_EXPORTS_ACCOUNTING_PARTS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "analyzer/analyses/message/oom_message_verdict.h"

namespace ashlar::exports {

using AccountingPart = std::pair<const char*, std::optional<std::uint64_t>>;

inline std::array<AccountingPart, 11> AccountingParts(const analyses::OomAccounting& of) {
  return {{{"total", of.total_bytes},
           {"reserved", of.reserved_bytes},
           {"outside", of.outside_bytes},
           {"free", of.free_bytes},
           {"allocated", of.allocated_bytes},
           {"live", of.live_bytes},
           {"rounding", of.rounding_bytes},
           {"pending", of.pending_bytes},
           {"stranded", of.stranded_bytes},
           {"whole_free", of.whole_free_bytes},
           {"private_pool", of.private_pool_bytes}}};
}

}  // namespace ashlar::exports

#endif  // ASHLAR_ANALYZER_EXPORTS_ACCOUNTING_PARTS_H_
