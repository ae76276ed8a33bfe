// Counts the survivable oddities of a file by name and detail; they come out sorted, whatever order they were met in.
#ifndef ASHLAR_ANALYZER_READERS_TORCH_TORCH_NOTES_H_
#define ASHLAR_ANALYZER_READERS_TORCH_TORCH_NOTES_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "allocator/trace/snapshot.h"

namespace ashlar::readers {

class NoteCounter {
 public:
  // `name` is the stable key, `message` the sentence for people. A file with endless different messages under one
  // name gets the first kMaxMessages and one line for the rest.
  void Add(absl::string_view name, absl::string_view message, std::uint64_t count = 1);

  std::vector<trace::Note> Take() const;

 private:
  static constexpr std::size_t kMaxMessages = 32;

  struct Entry {
    std::map<std::string, std::uint64_t, std::less<>> messages;
    std::uint64_t others = 0;
  };
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace ashlar::readers

#endif  // ASHLAR_ANALYZER_READERS_TORCH_TORCH_NOTES_H_
