#include "analyzer/formats/mapped_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>

#include "absl/status/status.h"
#include "analyzer/formats/mapped_file.h"

namespace ashlar::formats {
namespace {

// The mapped files of the process: from their first byte to their end.
struct Mappings {
  std::mutex mutex;
  std::map<const char*, const char*, std::less<>> ends;
  std::uint64_t done_bytes = 0;  // of the last
};

Mappings& TheMappings() {
  static auto* const mappings = new Mappings();
  return *mappings;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Map(int descriptor, std::size_t size_bytes) {
  void* const at = mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (at == MAP_FAILED) return absl::ErrnoToStatus(errno, "cannot be mapped");
  madvise(at, size_bytes, MADV_SEQUENTIAL);
  return std::shared_ptr<const MappedFile>(new MappedFile(static_cast<const char*>(at), size_bytes));
}

MappedFile::MappedFile(const char* begin, std::size_t size) : begin_(begin), size_(size) {
  Mappings& mappings = TheMappings();
  const std::lock_guard<std::mutex> lock(mappings.mutex);
  mappings.ends[begin] = begin + size;
  mappings.done_bytes = 0;
}

MappedFile::~MappedFile() {
  Mappings& mappings = TheMappings();
  {
    const std::lock_guard<std::mutex> lock(mappings.mutex);
    mappings.ends.erase(begin_);
  }
  munmap(const_cast<char*>(begin_), size_);
}

// The system maps a page with those around it, up to a huge one. Where a byte in front is looked at again, all of them
// come back: what is given back begins with the huge page.
constexpr std::uintptr_t kHugePageBytes = std::uintptr_t{2} << 20;

void GiveBackPages(absl::string_view bytes) {
  if (bytes.empty()) return;
  Mappings& mappings = TheMappings();
  const std::lock_guard<std::mutex> lock(mappings.mutex);
  const auto next = mappings.ends.upper_bound(bytes.data());
  if (next == mappings.ends.begin() || std::less_equal<>()(std::prev(next)->second, bytes.data())) return;
  mappings.done_bytes = static_cast<std::uint64_t>(bytes.data() + bytes.size() - std::prev(next)->first);
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto from = std::max(reinterpret_cast<std::uintptr_t>(bytes.data()) / kHugePageBytes * kHugePageBytes,
                             reinterpret_cast<std::uintptr_t>(std::prev(next)->first));
  const char* const last = std::min(bytes.data() + bytes.size(), std::prev(next)->second, std::less<>());
  const auto to = reinterpret_cast<std::uintptr_t>(last) / page * page;
  if (from < to) madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
}

bool AnyPart(absl::string_view bytes, std::size_t overlap, absl::FunctionRef<bool(absl::string_view part)> look) {
  constexpr std::size_t kAtOnce = std::size_t{4} << 20;
  for (std::size_t at = 0; at < bytes.size(); at += kAtOnce) {
    const std::size_t begin = at - std::min(at, overlap);
    const absl::string_view part = bytes.substr(begin, at + kAtOnce - begin);
    if (look(part)) return true;
    GiveBackPages(part);
  }
  return false;
}

ReadingProgress ProgressOfReading() {
  Mappings& mappings = TheMappings();
  const std::lock_guard<std::mutex> lock(mappings.mutex);
  if (mappings.ends.size() != 1) return {};
  const auto& [begin, end] = *mappings.ends.begin();
  return {mappings.done_bytes, static_cast<std::uint64_t>(end - begin)};
}

}  // namespace ashlar::formats
