// A thread's place in the process: desks (desk.h) belong to seats, not to threads, so that a thread that ends leaves
// its desks to the next one. Seats are never freed.
//
//   const Seat* seat = SeatOfThread();
//
// Threads: any may call SeatOfThread. A thread that asks while its own thread_local objects are being destroyed gets
// one seat that all such threads share.
#ifndef ASHLAR_ALLOCATOR_CORE_SEAT_H_
#define ASHLAR_ALLOCATOR_CORE_SEAT_H_

namespace ashlar::core {

struct Seat {};

// The calling thread's.
const Seat* SeatOfThread();

// Whether at most one thread has it at a time. nullptr: nobody's.
bool IsOfOneThread(const Seat* seat);

// Around a fork: no seat is given or returned meanwhile, so that the child's copy of the free ones is whole.
void LockSeats();
void UnlockSeats();

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_SEAT_H_
