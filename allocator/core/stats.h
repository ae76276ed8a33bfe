// The statistics (ashlar/statistics.h), by the names that the allocator uses.
#ifndef ASHLAR_ALLOCATOR_CORE_STATS_H_
#define ASHLAR_ALLOCATOR_CORE_STATS_H_

#include "ashlar/statistics.h"  // IWYU pragma: export

namespace ashlar::core {

using ashlar::PoolKind;
using ashlar::PoolStat;
using ashlar::Stat;
using ashlar::Stats;

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_STATS_H_
