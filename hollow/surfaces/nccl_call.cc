#include "hollow/surfaces/nccl_call.h"

#include <algorithm>
#include <cstring>

#include "hollow/launch/process.h"
#include "hollow/surfaces/nccl_reduce.h"

namespace ashlar::hollow {
namespace {

using Kind = NcclCall::Kind;

// What the numbers of a note are. Those below kType are compared.
enum NoteAt : std::size_t { kKindAt, kSizeAt, kReducedTypeAt, kOpAt, kRootAt, kComparedEnd, kTypeAt = kComparedEnd };

std::uint64_t AddressOf(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

bool HasRoot(Kind kind) {
  return kind == Kind::kReduce || kind == Kind::kBroadcast || kind == Kind::kGather || kind == Kind::kScatter;
}

// Writes bytes that all ranks agree on, or says that they are not known.
void Put(void* to, const std::byte* bytes, std::uint64_t size) {
  if (size == 0) return;
  if (bytes == nullptr) return Forget(AddressOf(to), size);
  std::memcpy(to, bytes, size);
  Know(AddressOf(to), size);
}

}  // namespace

std::uint64_t NcclCall::PartBytes() const { return count * NcclSizeOf(type); }

std::uint64_t NcclCall::GivesBytes(const Seat& seat) const {
  switch (kind) {
    case Kind::kReduceScatter:
    case Kind::kAllToAll:
      return PartBytes() * seat.ranks;
    case Kind::kBroadcast:
      return seat.rank == peer ? PartBytes() : 0;
    case Kind::kScatter:
      return seat.rank == peer ? PartBytes() * seat.ranks : 0;
    case Kind::kReceive:
    case Kind::kSplit:
      return 0;
    default:
      return PartBytes();
  }
}

std::vector<ByteRange> NcclCall::Writes(const Seat& seat) const {
  const std::uint64_t to = AddressOf(receive);
  const bool is_root = seat.rank == peer;
  switch (kind) {
    case Kind::kReduce:
      return is_root ? std::vector<ByteRange>{{to, PartBytes()}} : std::vector<ByteRange>{};
    case Kind::kBroadcast:
      if (is_root && send == receive) return {};
      return {{to, PartBytes()}};
    case Kind::kAllGather:
    case Kind::kAllToAll:
      return {{to, PartBytes() * seat.ranks}};
    case Kind::kGather:
      return is_root ? std::vector<ByteRange>{{to, PartBytes() * seat.ranks}} : std::vector<ByteRange>{};
    case Kind::kSplit:
    case Kind::kSend:
      return {};
    default:
      return {{to, PartBytes()}};
  }
}

bool NcclCall::IsSmall(int ranks) const {
  const bool is_all = kind == Kind::kReduceScatter || kind == Kind::kAllGather || kind == Kind::kAllToAll ||
                      kind == Kind::kGather || kind == Kind::kScatter;
  // A message of more is moved by nobody, however large the setting: it goes through memory that all ranks share.
  constexpr std::uint64_t kMost = std::uint64_t{64} << 20;
  return PartBytes() * (is_all ? ranks : 1) <= std::min(TheSettings().real_bytes, kMost);
}

Note NcclCall::Describe() const {
  Note note{};
  note[kKindAt] = static_cast<std::uint64_t>(kind);
  // Copies are alike when they are of as many bytes; NCCL makes them bytes too.
  note[kSizeAt] = IsReduction() ? count : PartBytes();
  note[kReducedTypeAt] = IsReduction() ? static_cast<std::uint64_t>(type) : 0;
  note[kOpAt] = IsReduction() ? static_cast<std::uint64_t>(op) : 0;
  note[kRootAt] = HasRoot(kind) ? static_cast<std::uint64_t>(peer) : 0;
  note[kTypeAt] = static_cast<std::uint64_t>(type);
  return note;
}

std::vector<std::byte> NcclCall::Take(const Seat& seat) const {
  if (kind == Kind::kSplit) {
    const auto* bytes = reinterpret_cast<const std::byte*>(data.data());
    return {bytes, bytes + data.size()};
  }
  const std::uint64_t size = GivesBytes(seat);
  if (size == 0 || !IsSmall(seat.ranks)) return {};
  SettleRange(AddressOf(send), size);
  if (!IsKnown(AddressOf(send), size)) return {};
  std::vector<std::byte> bytes(size);
  std::memcpy(bytes.data(), send, size);
  const std::size_t elements = size / NcclSizeOf(type);
  if (!scalar_bytes.empty()) {
    NcclMultiply(type, bytes.data(), scalar_bytes.data(), elements);
  } else if (scalar != nullptr) {
    SettleRange(AddressOf(scalar), NcclSizeOf(type));
    if (!IsKnown(AddressOf(scalar), NcclSizeOf(type))) return {};
    NcclMultiply(type, bytes.data(), scalar, elements);
  }
  if (IsReduction() && op == NcclOp::kAvg) NcclBeforeAverage(type, bytes.data(), elements, seat.ranks);
  return bytes;
}

void NcclCall::GiveReduced(const Seat& seat, const std::vector<Heard>& parts) const {
  if (Writes(seat).empty()) return;
  const std::uint64_t size = PartBytes();
  const bool known = std::all_of(parts.begin(), parts.end(), [](const Heard& part) { return part.data != nullptr; });
  if (!known) return Put(receive, nullptr, size);
  const std::uint64_t offset = kind == Kind::kReduceScatter ? size * seat.rank : 0;
  const auto at = [&parts, offset](int rank) { return static_cast<const std::byte*>(parts[rank].data) + offset; };
  std::vector<std::byte> total(at(0), at(0) + size);
  for (int rank = 1; rank < seat.ranks; ++rank) NcclCombine(op, type, total.data(), at(rank), count);
  if (op == NcclOp::kAvg) NcclAfterAverage(type, total.data(), count, seat.ranks);
  Put(receive, total.data(), size);
}

void NcclCall::Give(const Seat& seat, const std::vector<Heard>& parts) const {
  if (IsReduction()) return GiveReduced(seat, parts);
  if (kind == Kind::kSplit || Writes(seat).empty()) return;
  const std::uint64_t size = PartBytes();
  const auto of = [&parts](int rank, std::uint64_t offset) {
    const auto* bytes = static_cast<const std::byte*>(parts[rank].data);
    return bytes == nullptr ? nullptr : bytes + offset;
  };
  if (kind == Kind::kBroadcast) return Put(receive, of(peer, 0), size);
  if (kind == Kind::kScatter) return Put(receive, of(peer, size * seat.rank), size);
  if (kind == Kind::kReceive) return Put(receive, of(0, 0), size);
  for (int rank = 0; rank < seat.ranks; ++rank) {
    Put(static_cast<std::byte*>(receive) + size * rank, of(rank, kind == Kind::kAllToAll ? size * seat.rank : 0), size);
  }
}

bool SameCall(const Note& a, const Note& b) { return std::equal(a.begin(), a.begin() + kComparedEnd, b.begin()); }

std::string TextOf(const Note& note) {
  constexpr const char* kKinds[] = {"all-reduce", "reduce",  "reduce-scatter", "broadcast", "all-gather", "all-to-all",
                                    "gather",     "scatter", "split",          "send",      "receive"};
  constexpr const char* kOps[] = {"sum", "product", "max", "min", "average"};
  const auto kind = static_cast<Kind>(note[kKindAt]);
  std::string text = kKinds[note[kKindAt]];
  if (kind == Kind::kSplit) return text;
  const auto type = static_cast<NcclType>(note[kTypeAt]);
  const bool is_reduction = kind <= Kind::kReduceScatter;
  const std::uint64_t elements = note[kSizeAt] / (is_reduction ? 1 : NcclSizeOf(type));
  text += " of " + std::to_string(elements) + " " + NcclNameOf(type);
  if (is_reduction) text += std::string(" (") + kOps[note[kOpAt]] + ")";
  if (HasRoot(kind)) text += " with root " + std::to_string(note[kRootAt]);
  return text;
}

}  // namespace ashlar::hollow
