// The desks of one allocator: whose desk is whose, and how all of them are stopped (exclusive_section.h). There is one
// for each thread that uses the allocator, and the common one.
//
//   Desks desks(ledger);
//   DeskOfAllocator& place = desks.OfThread();              // remembered by the thread
//   const ExclusiveSection section(desks);                  // nobody else is inside
//
// While the allocator is serial no desk serves on its own: all threads share the section's lock. Thread rule: any
// thread may call what does not say otherwise.
#ifndef ASHLAR_ALLOCATOR_CORE_DESKS_H_
#define ASHLAR_ALLOCATOR_CORE_DESKS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "allocator/base/check.h"
#include "allocator/core/desk.h"
#include "allocator/core/journal.h"
#include "allocator/core/ledger.h"
#include "allocator/core/seat.h"

namespace ashlar::core {

class Desks {
 public:
  // What the desks sum goes to the ledger, which outlives them.
  explicit Desks(Ledger& ledger);

  // The calling thread's.
  DeskOfAllocator& OfThread() {
    DeskOfAllocator& remembered = table_of_thread->desks[id_ % no_seat.desks.size()];
    if (remembered.allocator != id_) [[unlikely]]
      return FindOfThread();
    return remembered;
  }
  // Not within a section.
  Desk& Common() { return Find(nullptr); }

  // Whether no desk may serve on its own. It changes in a section, while every desk is locked.
  bool IsSerial() const { return is_serial_.load(std::memory_order_acquire); }
  // The same, by who holds the lock of a desk or is in a section.
  bool IsSerialNow() const { return is_serial_.load(std::memory_order_relaxed); }

  // Before anybody uses them.
  void BeginSerial(bool is_serial) { is_serial_.store(is_serial, std::memory_order_relaxed); }
  // Every call from now on ends the program with one line: the allocator is gone.
  void Close();
  void CheckOpen() const;
  // Ends the program where some thread is inside.
  void CheckLeft() const { ASHLAR_CHECK(inside_.load(std::memory_order_relaxed) == std::thread::id()); }

  // What desks put off is real. Only while no other thread uses them; a section does the same.
  void Settle() const {
    for (const std::unique_ptr<Desk>& desk : desks_) desk->Settle();
  }

  // How often everything stood still after a desk had recorded an event. By who holds the lock of a desk or is in a
  // section.
  std::uint64_t turn() const { return turn_; }

  // --- only within a section ---
  // From now on desks record into its journals; nullptr: they do not record. Desks must be stopped.
  void SetKeeper(JournalKeeper* keeper);
  JournalKeeper* keeper() const { return keeper_; }
  // Of the thread that is inside.
  Desk& OfSection() { return *desk_of_section_; }
  // Sections so far, and how often desks were locked; for the latter all must be stopped.
  std::uint64_t section_count() const { return section_count_; }
  std::uint64_t LockCount() const;

 private:
  friend class ExclusiveSection;

  DeskOfAllocator& FindOfThread();
  // The desk of the seat, nullptr for the common one.
  Desk& Find(const Seat* seat);

  const std::uint64_t id_;  // no other allocator of the process ever has it
  Ledger& ledger_;
  std::uint64_t turn_ = 1;
  std::atomic<bool> is_serial_{false};
  std::atomic<bool> is_closed_{false};        // is_serial_ is true then
  std::atomic<std::thread::id> inside_{};     // the thread that is in the section
  std::mutex mutex_;                          // the section's, and of what follows
  std::vector<std::unique_ptr<Desk>> desks_;  // as they were made
  JournalKeeper* keeper_ = nullptr;
  Desk* desk_of_section_ = nullptr;  // of the thread that is inside
  std::uint64_t section_count_ = 0;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_DESKS_H_
