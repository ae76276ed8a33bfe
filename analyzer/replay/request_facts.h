// What the facts of one recorded request say of how it was asked and served (trace/fact.h).
#ifndef ASHLAR_ANALYZER_REPLAY_REQUEST_FACTS_H_
#define ASHLAR_ANALYZER_REPLAY_REQUEST_FACTS_H_

#include <optional>
#include <variant>

#include "allocator/core/inspect.h"
#include "allocator/trace/fact.h"

namespace ashlar::replay {

struct RequestFacts {
  std::optional<trace::fact::AskedFor> asked = {};
  bool is_missed = false;          // it was not searched for
  core::Direction direction = {};  // the arena that a plan asked for, and where it placed the block
  bool is_placed = false;          // by a plan

  void Take(const trace::AnyFact& fact) {
    if (const auto* asked_for = std::get_if<trace::fact::AskedFor>(&fact)) asked = *asked_for;
    if (const auto* arena = std::get_if<trace::fact::ArenaAsked>(&fact)) direction.arena_bytes = arena->bytes;
    is_missed |= trace::IsAny<trace::fact::SearchMissed>(fact);
    is_placed |= trace::IsAny<trace::fact::PlacedByPlan>(fact);
  }
};

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_REQUEST_FACTS_H_
