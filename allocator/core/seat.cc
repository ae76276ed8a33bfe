#include "allocator/core/seat.h"

#include <mutex>
#include <utility>
#include <vector>

#include "allocator/core/desks.h"

namespace ashlar::core {
namespace {

// The seats of threads that have ended. Never destroyed: threads may outlive static destruction.
struct FreeSeats {
  std::mutex mutex;
  std::vector<const Seat*> seats;
};
FreeSeats& TheFreeSeats() {
  static FreeSeats& seats = *new FreeSeats;
  return seats;
}

constexpr Seat kSeatOfEndedThreads;
constinit thread_local const Seat* seat_of_thread = &kSeatOfEndedThreads;

// Returns the seat when the thread ends.
class SeatHolder {
 public:
  SeatHolder() {
    FreeSeats& free = TheFreeSeats();
    const std::lock_guard<std::mutex> lock(free.mutex);
    if (free.seats.empty()) free.seats.push_back(new Seat);
    seat_of_thread = free.seats.back();
    free.seats.pop_back();
  }
  ~SeatHolder() {
    ForgetDesksOfThread();  // they are the next one's
    FreeSeats& free = TheFreeSeats();
    const std::lock_guard<std::mutex> lock(free.mutex);
    free.seats.push_back(std::exchange(seat_of_thread, &kSeatOfEndedThreads));
  }
};

}  // namespace

const Seat* SeatOfThread() {
  thread_local const SeatHolder holder;
  return seat_of_thread;
}

bool IsOfOneThread(const Seat* seat) { return seat != nullptr && seat != &kSeatOfEndedThreads; }

void LockSeats() {
  SeatOfThread();
  TheFreeSeats().mutex.lock();
}
void UnlockSeats() { TheFreeSeats().mutex.unlock(); }

}  // namespace ashlar::core
