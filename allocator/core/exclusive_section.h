// While an ExclusiveSection exists, its thread has the allocator for itself. It holds the mutex, and every desk's lock
// unless the allocator is serial, where no desk works on its own. On the way in the desks' sums are folded into the
// ledger's statistics, which are complete and exact inside; on the way out the room below the peaks is dealt out to the
// desks again (desk.h). Its cost depends on the number of threads, not of streams. Locks are always taken in this
// order: mutex first, desks as they were made.
//
//   const ExclusiveSection section(desks);
//
// A second one by the same thread, as from a sink or a filter, ends the program.
#ifndef ASHLAR_ALLOCATOR_CORE_EXCLUSIVE_SECTION_H_
#define ASHLAR_ALLOCATOR_CORE_EXCLUSIVE_SECTION_H_

#include "allocator/core/desks.h"

namespace ashlar::core {

class ExclusiveSection {
 public:
  explicit ExclusiveSection(Desks& desks);
  ~ExclusiveSection();
  ExclusiveSection(const ExclusiveSection&) = delete;
  ExclusiveSection& operator=(const ExclusiveSection&) = delete;

  // Whether no desk serves on its own from now on.
  void SetSerial(bool is_serial) const;
  // Also where the allocator is serial: a thread that has not yet seen so may be inside its desk's lock.
  void StopDesks() const;

 private:
  void LockDesks() const;
  void UnlockDesks() const;
  void Fold(Desk& desk) const;
  void DealRoom() const;

  Desks& desks_;
  mutable bool holds_desks_ = false;
  mutable bool is_own_biased_ = false;  // how the thread holds the lock of its own (counted_lock.h)
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_EXCLUSIVE_SECTION_H_
