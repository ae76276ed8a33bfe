// One call of NCCL by one rank: what it says to the others, which bytes it gives them, and what it does with theirs.
//
//   NcclCall call{.kind = NcclCall::Kind::kAllReduce, .send = x, .receive = y, .count = 8, .type = NcclType::kFloat32};
//   note = call.Describe();  data = call.Take(seat);          // at the call
//   call.Give(seat, heard_of_all_ranks);                      // when all ranks have called
//
// Bytes move where the message, the larger of what a rank gives and gets, is at most `real_bytes`. What a rank gives is
// carried only if all of it is known; what a rank gets is known where all that goes into it is, else forgotten.
// Units: counts in elements of the type, sizes in bytes. Thread rule: a value; the caller keeps other threads out.
#ifndef ASHLAR_HOLLOW_SURFACES_NCCL_CALL_H_
#define ASHLAR_HOLLOW_SURFACES_NCCL_CALL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hollow/books/rendezvous.h"
#include "hollow/surfaces/nccl_types.h"
#include "hollow/surfaces/stream_work.h"

namespace ashlar::hollow {

struct NcclCall {
  enum class Kind : std::uint8_t {
    kAllReduce,
    kReduce,
    kReduceScatter,
    kBroadcast,
    kAllGather,
    kAllToAll,
    kGather,
    kScatter,
    kSplit,  // and the other calls that make a communicator out of one: `data` is what a rank says
    kSend,
    kReceive,
  };
  struct Seat {
    int rank = 0;
    int ranks = 1;
  };

  Kind kind = Kind::kAllReduce;
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;  // as the call names it: of one rank's part for all that gather or scatter
  NcclType type = NcclType::kInt8;
  NcclOp op = NcclOp::kSum;
  int peer = 0;                  // the root, or the other of a pair
  const void* scalar = nullptr;  // each rank's values are multiplied by it first; null: not. Device or host memory
  std::vector<std::byte> scalar_bytes = {};  // the same, where it was read when the operation was made
  std::string data = {};

  bool IsReduction() const { return kind <= Kind::kReduceScatter; }
  bool IsPair() const { return kind >= Kind::kSend; }
  std::uint64_t PartBytes() const;                   // count elements
  std::uint64_t GivesBytes(const Seat& seat) const;  // that this rank puts in
  std::vector<ByteRange> Writes(const Seat& seat) const;
  bool IsSmall(int ranks) const;

  // The same for all ranks that make the same call, but for the last two numbers.
  Note Describe() const;
  // What this rank gives, ready to be combined; empty where it gives nothing or it is not known.
  std::vector<std::byte> Take(const Seat& seat) const;
  // Writes what this rank gets, of the parts that each rank gave, in their order.
  void Give(const Seat& seat, const std::vector<Heard>& parts) const;

 private:
  void GiveReduced(const Seat& seat, const std::vector<Heard>& parts) const;
};

// Whether two ranks make the same call.
bool SameCall(const Note& a, const Note& b);
// "all-reduce of 8 float32 (sum)".
std::string TextOf(const Note& note);

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_SURFACES_NCCL_CALL_H_
