// The layout of a meeting's file (rendezvous.h): the head, a seat for each rank, a row of things said for each rank, a
// row of messages for each pair, and a room for each rank's data. The file is sparse: what is not used takes nothing.
//
// All of it is in shared memory: zeros are valid, nothing is an address, and every change that another process acts on
// is an atomic's. Internal to rendezvous*.cc.
#ifndef ASHLAR_HOLLOW_BOOKS_RENDEZVOUS_LAYOUT_H_
#define ASHLAR_HOLLOW_BOOKS_RENDEZVOUS_LAYOUT_H_

#include <atomic>
#include <cstdint>

#include "hollow/books/process_id.h"
#include "hollow/books/rendezvous.h"

namespace ashlar::hollow {

inline constexpr std::uint64_t kMeetingCalls = 1024;  // as many as a CUDA stream takes kernels before a launch waits
inline constexpr std::uint64_t kMeetingMessages = 256;
inline constexpr std::uint64_t kMeetingPage = 4096;

constexpr std::uint64_t RoundUpTo(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

struct Meeting::Head {
  std::atomic<std::uint32_t> ranks;
  std::atomic<std::uint32_t> came;
  std::atomic<std::uint32_t> news;  // a futex
  std::atomic<std::uint32_t> waiting;
  std::atomic<std::uint64_t> room_bytes;
};

struct alignas(64) Meeting::Seat {
  enum State : std::uint32_t { kFree = 0, kTaken = 1, kLeft = 2 };
  std::atomic<std::uint32_t> state;
  ProcessId process;
  char about[32];
  std::atomic<std::uint64_t> said;
  std::atomic<std::uint64_t> heard;  // needs nothing below this number
};

struct Meeting::Call {
  Note note;
  std::uint64_t offset;  // in the room of the rank that said it
  std::uint64_t bytes;
};

struct Meeting::Pair {
  std::atomic<std::uint64_t> sent;
  std::atomic<std::uint64_t> taken;
  Call messages[kMeetingMessages];
};

// Where each part begins.
struct Meeting::Layout {
  explicit Layout(std::uint64_t ranks)
      : calls(RoundUpTo(kMeetingPage + ranks * sizeof(Seat), kMeetingPage)),
        pairs(RoundUpTo(calls + ranks * kMeetingCalls * sizeof(Call), kMeetingPage)),
        rooms(RoundUpTo(pairs + ranks * ranks * sizeof(Pair), kMeetingPage)) {}
  std::uint64_t calls;
  std::uint64_t pairs;
  std::uint64_t rooms;
};

inline Meeting::Head& Meeting::head() const { return *reinterpret_cast<Head*>(at_); }

inline Meeting::Seat& Meeting::seat(int rank) const { return reinterpret_cast<Seat*>(at_ + kMeetingPage)[rank]; }

inline Meeting::Call& Meeting::call(int rank, std::uint64_t number) const {
  const auto first = reinterpret_cast<Call*>(at_ + Layout(place_.ranks).calls);
  return first[rank * kMeetingCalls + number % kMeetingCalls];
}

inline Meeting::Pair& Meeting::pair(int from, int to) const {
  const auto first = reinterpret_cast<Pair*>(at_ + Layout(place_.ranks).pairs);
  return first[static_cast<std::uint64_t>(from) * place_.ranks + to];
}

inline std::byte* Meeting::room(int rank) const { return at_ + Layout(place_.ranks).rooms + rank * place_.room_bytes; }

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_BOOKS_RENDEZVOUS_LAYOUT_H_
