// Reads a trace as every command does and says what that took.
//
//   read_time large.pickle    10000000 events, 1.89 GiB in 4.10 s: 495 MB/s, at most 655.2 MiB
#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <variant>

#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "analyzer/formats/formats.h"
#include "analyzer/formats/input_file.h"

namespace ashlar::bench {
namespace {

std::uint64_t CountOf(const formats::Content& content) {
  std::uint64_t count = 0;
  if (const auto* snapshot = std::get_if<trace::Snapshot>(&content)) {
    for (const trace::EventList& events : snapshot->device_traces) count += events.size();
  } else if (const auto* requests = std::get_if<trace::RequestTrace>(&content)) {
    count = requests->requests.size();
  }
  return count;
}

std::uint64_t MostResidentBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * kKiB;
}

int Main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "use: read_time FILE\n";
    return 2;
  }
  const auto begin = std::chrono::steady_clock::now();
  absl::StatusOr<formats::InputBytes> bytes = formats::OpenInput(argv[1]);
  if (!bytes.ok()) {
    std::cerr << "read_time: " << bytes.status().message() << "\n";
    return 1;
  }
  const std::uint64_t size = bytes->view().size();
  const formats::Format& format = formats::FormatOf(*bytes);
  if (format.read == nullptr) {
    std::cerr << "read_time: " << argv[1] << ": " << format.name << " is not a trace\n";
    return 1;
  }
  const formats::ReadContent content = format.read(*bytes, {});
  bytes->Clear();
  if (!content.ok()) {
    std::cerr << "read_time: " << content.status().message() << "\n";
    return 1;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::cout << absl::StrFormat(
      "%d events, %s in %.2f s: %.0f MB/s, %.1f million events/s, at most %s\n", CountOf(**content), FormatBytes(size),
      seconds, static_cast<double>(size) / 1e6 / seconds, static_cast<double>(CountOf(**content)) / 1e6 / seconds,
      FormatBytes(MostResidentBytes()));
  return 0;
}

}  // namespace
}  // namespace ashlar::bench

int main(int argc, char** argv) { return ashlar::bench::Main(argc, argv); }
