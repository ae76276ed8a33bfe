// The parts that commands share: exit codes, the flags that say how to replay, and reading an input.
#ifndef ASHLAR_CONSOLE_COMMAND_H_
#define ASHLAR_CONSOLE_COMMAND_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/device/address_space.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/formats/input_file.h"
#include "commands/shared/replay_settings.h"
#include "console/command_line.h"

namespace ashlar::cli {

// Exit codes, the same for every command.
inline constexpr int kOk = 0;
inline constexpr int kCheckFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kUnreadable = 3;

inline constexpr std::uint64_t kMostThreads = 256;  // of --jobs

// The flags that say how to replay, as given.
struct ReplayFlags {
  std::string compat;
  std::string free_order;
  std::string segment_addresses;
  std::optional<std::string> conf;
  std::string capacity;
  std::string context;
  std::string device_costs;
  std::optional<double> memory_fraction;
  std::string device;       // an index or a card
  bool takes_card = false;  // whether a card is an answer to --device
  std::string window;
  std::optional<std::uint64_t> max_events;

  std::optional<int> DeviceIndex() const;  // nullopt: none was given
  bool NamesCard() const { return !device.empty() && !DeviceIndex().has_value(); }
};

void AddReplayFlags(Command& app, ReplayFlags& flags);
// Those that do not limit the memory.
void AddPolicyFlags(Command& app, ReplayFlags& flags);

// The flags checked and read; errors name the flag.
absl::StatusOr<answers::ReplaySettings> ReadReplayFlags(const ReplayFlags& flags);

// The word of --segment-addresses; empty: ascending.
absl::Status ReadAddressOrder(const std::string& text, device::AddressOrder& order);

// The status with the flag before its message: "--capacity: ...".
absl::Status OfFlag(const char* flag, const absl::Status& status);

// Prints "ashlar: ..." on stderr, one line whatever the message quotes, and returns `code`.
int Fail(int code, const absl::Status& status);

// An input that could not be used, its name before the message: kUnreadable, or kUsage where a flag does not go with
// the input (kOutOfRange).
int FailInput(const std::string& input, const absl::Status& status);

// OutOfRange where a flag that only a snapshot has a use for is given with something else.
absl::Status NoSnapshotFlags(const ReplayFlags& flags);

// The whole file anew, or the old one as it was (output_file.h); Unavailable, with the file and why, when that fails.
absl::Status WriteFile(const std::string& path, const std::string& text);

// A captured run as a file: our own recording where the name ends in .ashlar, which keeps the version of the rules too,
// else a PyTorch snapshot. Unavailable when that fails.
absl::Status WriteCapture(const std::string& path, const trace::Snapshot& snapshot);

// How an answer is printed: as text, as JSON (--json is the shorter word for it), or as Markdown to paste into an
// issue.
struct FormatFlags {
  bool json = false;
  std::string format = "text";

  bool IsJson() const { return json || format == "json"; }
  bool IsMarkdown() const { return format == "markdown"; }
};
// --json and --format; the result is for flags that go with neither.
std::array<Flag, 2> AddFormatFlags(Command& app, const std::string& json_help, FormatFlags& flags);

// --json-to FILE: the answer as JSON goes to that file as well.
void AddJsonFile(Command& app, std::string& file);
// Writes `json()` there, where a file is given; false (with a line on stderr) when that fails.
template <typename Json>
bool WriteJson(const std::string& file, Json json) {
  if (file.empty()) return true;
  const absl::Status status = WriteFile(file, json());
  if (!status.ok()) Fail(kUnreadable, OfFlag("--json-to", status));
  return status.ok();
}

// Writes to stdout; false (with a line on stderr) when that fails.
bool Print(const std::string& text);

// How a command opens what its user names. A pipe is waited for; where it is quiet for two seconds, a line on stderr
// says so, once.
//
//   absl::StatusOr<formats::InputBytes> bytes = formats::OpenInput(path, RulesOf(path));
//   absl::StatusOr<std::string> text = ReadSmallInput("costs.txt");

formats::OpenRules RulesOf(const std::string& path);

// A file of settings, costs or a model.
inline constexpr std::uint64_t kMostSmallInputBytes = 64 * kMiB;
absl::StatusOr<std::string> ReadSmallInput(const std::string& path, std::uint64_t max_bytes = kMostSmallInputBytes);

// A flag whose value is a size in bytes: "16GiB", "10GB" (10^9), or a plain number of bytes.

// Sizes that a flag takes; half-open.
struct SizeRange {
  std::uint64_t begin_bytes = 1;
  std::uint64_t end_bytes = ~std::uint64_t{0};
  // A plain number below it is GiB or MiB whose unit was forgotten: no device, and no part of one, is that small.
  std::uint64_t least_plain_bytes = std::uint64_t{64} << 10;
};

// The memory of a device, or a part of it; up to the most that a replay simulates.
SizeRange DeviceSizes();
// What is in use of one: 0 too.
SizeRange InUseSizes();

// Sets `out`; leaves it where the text is empty. Errors name the flag: no size, out of the range, or a plain number so
// small that its unit was forgotten.
absl::Status ReadSize(const char* flag, const std::string& text, const SizeRange& range,
                      std::optional<std::uint64_t>& out);

// The flag --confs: settings to try, as a list or a file.
//
//   absl::StatusOr<std::vector<std::string>> confs = ReadConfs("default;expandable_segments:True");   // {"",
//   "expand..."}

// A file with a conf a line (an empty line or # begins nothing), or the confs themselves with semicolons between.
// Errors do not name the flag.
absl::StatusOr<std::vector<std::string>> ReadConfs(const std::string& given);

}  // namespace ashlar::cli

#endif  // ASHLAR_CONSOLE_COMMAND_H_
