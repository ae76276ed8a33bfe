// Facts as recordings have them: the number of the kind, one number more, and a pool where the kind names one.
#ifndef ASHLAR_ALLOCATOR_TRACE_CODEC_FACTS_H_
#define ASHLAR_ALLOCATOR_TRACE_CODEC_FACTS_H_

#include <cstdint>
#include <optional>
#include <variant>

#include "allocator/trace/fact.h"

namespace ashlar::trace::codec {

inline constexpr std::uint64_t kFactKinds = std::variant_size_v<AnyFact>;
inline constexpr std::uint64_t kFactKindsOfVersion1 = 3;  // up to LimitSet

struct FactNumbers {
  std::uint64_t kind = 0;
  std::uint64_t number = 0;
  std::optional<PoolId> pool;
  std::optional<absl::string_view> text = {};  // of the fact or the decoder, which own it
};

FactNumbers NumbersOf(const AnyFact& fact);

// Whether facts of the kind name a pool; `kind` is below kFactKinds, here and in FactOf.
bool NamesPool(std::uint64_t kind);

// Whether facts of the kind have a text in place of their number.
bool NamesText(std::uint64_t kind);

// Any numbers make a fact: bits that no kind knows are left out.
AnyFact FactOf(const FactNumbers& numbers);

}  // namespace ashlar::trace::codec

#endif  // ASHLAR_ALLOCATOR_TRACE_CODEC_FACTS_H_
