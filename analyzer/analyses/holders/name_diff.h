// What grew between two recordings, by the names of its holders: the rows of two walks, matched by kind, name, file and
// function. An edit that moves a function changes nothing.
//
//   for (const NameDiffRow& row : DiffNames(before, after)) Print(row.holder.name, row.GrownBytes());
//
// Pure function; sizes are bytes.
#ifndef ASHLAR_ANALYZER_ANALYSES_HOLDERS_NAME_DIFF_H_
#define ASHLAR_ANALYZER_ANALYSES_HOLDERS_NAME_DIFF_H_

#include <cstdint>
#include <vector>

#include "allocator/trace/holders.h"
#include "analyzer/analyses/holders/held_by_name.h"

namespace ashlar::analyses {

struct NamedParts {
  std::uint64_t bytes = 0;  // requested
  std::uint64_t blocks = 0;
};

struct NameDiffRow {
  trace::Holder holder = {};  // of b where it has one; without a line where that side has several
  NamedParts a = {}, b = {};  // without blocks: not on that side

  std::int64_t GrownBytes() const { return static_cast<std::int64_t>(b.bytes - a.bytes); }
};

// All rows of both sides, those that differ most first: what nobody holds among them, so that they sum to the
// difference of what is live.
std::vector<NameDiffRow> DiffNames(const HeldByName& a, const HeldByName& b);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_HOLDERS_NAME_DIFF_H_
