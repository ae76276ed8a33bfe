#include "analyzer/analyses/holders/name_diff.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace ashlar::analyses {
namespace {

// Where the file lies may differ between the two: on another machine, in another copy of the program.
using HolderKey = std::tuple<std::string, std::string, std::string, std::string>;

HolderKey KeyOf(const trace::Holder& holder) {
  return {holder.kind, holder.name, holder.file.substr(holder.file.rfind('/') + 1), holder.function};
}

void AddSide(const HeldByName& held, NamedParts NameDiffRow::*side, std::map<HolderKey, NameDiffRow>& rows) {
  for (const HeldRow& row : held.rows) {
    NameDiffRow& gathered = rows[KeyOf(row.holder)];
    NamedParts& parts = gathered.*side;
    if (parts.blocks == 0) {
      gathered.holder = row.holder;
    } else if (gathered.holder.line != row.holder.line) {
      gathered.holder.line = 0;
    }
    parts.bytes += row.bytes;
    parts.blocks += row.blocks;
  }
}

}  // namespace

std::vector<NameDiffRow> DiffNames(const HeldByName& a, const HeldByName& b) {
  std::map<HolderKey, NameDiffRow> gathered;
  AddSide(a, &NameDiffRow::a, gathered);
  AddSide(b, &NameDiffRow::b, gathered);
  std::vector<NameDiffRow> out;
  out.reserve(gathered.size());
  for (auto& [key, row] : gathered) out.push_back(std::move(row));
  std::stable_sort(out.begin(), out.end(), [](const NameDiffRow& left, const NameDiffRow& right) {
    return std::abs(left.GrownBytes()) > std::abs(right.GrownBytes());
  });
  return out;
}

}  // namespace ashlar::analyses
