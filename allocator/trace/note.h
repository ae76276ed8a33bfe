// One survivable oddity of a file: counted, named, shown beside the result.
#ifndef ASHLAR_ALLOCATOR_TRACE_NOTE_H_
#define ASHLAR_ALLOCATOR_TRACE_NOTE_H_

#include <cstdint>
#include <string>

namespace ashlar::trace {

struct Note {
  std::string name;     // stable key, "unknown_action"
  std::string message;  // one sentence for people
  std::uint64_t count = 0;

  bool operator==(const Note&) const = default;
};

}  // namespace ashlar::trace

#endif  // ASHLAR_ALLOCATOR_TRACE_NOTE_H_
