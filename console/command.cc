#include "console/command.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "allocator/base/units.h"
#include "allocator/device/sim_device.h"
#include "allocator/trace/codec.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "commands/shared/layout.h"
#include "commands/shared/replay_settings.h"
#include "console/output_file.h"
#include "console/progress_line.h"

namespace ashlar::cli {
namespace {

// A key of the conf that says the same as a flag stands for that flag.
template <typename Rule>
absl::Status TakeRule(absl::string_view conf, absl::string_view key, absl::string_view flag, Rule rule,
                      std::optional<Rule>& out) {
  bool is_named = false;
  for (const absl::string_view item : absl::StrSplit(conf, ',')) {
    is_named |= absl::StripAsciiWhitespace(item.substr(0, item.find(':'))) == key;
  }
  if (!is_named) return absl::OkStatus();
  if (out.has_value() && *out != rule) {
    return absl::InvalidArgumentError(absl::StrCat("--conf: its ", key, " is not that of ", flag, ": give one"));
  }
  out = rule;
  return absl::OkStatus();
}

absl::Status ReadPolicyFlags(const ReplayFlags& flags, answers::ReplaySettings& out) {
  if (!flags.compat.empty()) {
    const absl::StatusOr<policy::Compat> compat = policy::ParseCompat(flags.compat);
    if (!compat.ok()) return OfFlag("--compat", compat.status());
    out.overrides.compat = *compat;
  }
  if (!flags.free_order.empty()) {
    const absl::StatusOr<policy::FreeOrder> order = policy::ParseFreeOrder(flags.free_order);
    if (!order.ok()) return OfFlag("--free-order", order.status());
    out.overrides.free_order = *order;
  }
  out.overrides.conf = flags.conf;
  // Read here once, so that a bad setting is a usage error before any work.
  const std::string conf = flags.conf.value_or("");
  const policy::Compat compat = out.overrides.compat.value_or(policy::Compat::kTorch210);
  const absl::StatusOr<policy::Options> options = policy::ParseConf(conf, compat, policy::Keys::kAshlar);
  if (!options.ok()) return OfFlag("--conf", options.status());
  absl::Status status = TakeRule(conf, "compat", "--compat", options->compat, out.overrides.compat);
  status.Update(TakeRule(conf, "free_order", "--free-order", options->free_order, out.overrides.free_order));
  return status;
}

absl::Status ReadDeviceCosts(const std::string& file, answers::ReplaySettings& out) {
  if (file.empty()) return absl::OkStatus();
  const absl::StatusOr<std::string> text = ReadSmallInput(file);
  if (!text.ok()) return OfFlag("--device-costs", text.status());
  const absl::StatusOr<device::CostModel> costs = device::ReadCosts(*text);
  if (!costs.ok()) {
    return absl::Status(costs.status().code(), absl::StrCat("--device-costs: ", file, ": ", costs.status().message()));
  }
  out.device_costs = *costs;
  return absl::OkStatus();
}

}  // namespace

absl::Status OfFlag(const char* flag, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(flag, ": ", status.message()));
}

constexpr char kExpert[] = "For experts";

namespace {

// How the allocator decides, and how many events are looked at.
void AddRuleFlags(Command& app, ReplayFlags& flags) {
  app.Add("--compat", flags.compat, "whose rules: torch-1.13, torch-2.6, torch-2.10, torch-2.12, torch-latest")
      .Takes("RELEASE")
      .NotEmpty()
      .Under(kExpert);
  app.Add("--free-order", flags.free_order,
          "order of equally big free blocks: address, per-block-counter, per-segment-counter")
      .Takes("ORDER")
      .NotEmpty()
      .Under(kExpert);
  app.Add("--segment-addresses", flags.segment_addresses,
          "where the simulated device puts segments: ascending, descending, driver (as NVIDIA's); default: as was "
          "recorded")
      .Takes("ORDER")
      .NotEmpty()
      .Under(kExpert);
  app.Add("--conf", flags.conf, "settings, as for PYTORCH_CUDA_ALLOC_CONF or ASHLAR_CONF").Takes("CONF");
  app.Add("--max-events", flags.max_events,
          "how many events are held of each device, the last; 0: all (default: 20 million, or what memory allows)")
      .Under(kExpert);
}

}  // namespace

void AddReplayFlags(Command& app, ReplayFlags& flags) {
  flags.takes_card = true;
  AddRuleFlags(app, flags);
  app.Add("--device", flags.device,
          "a number: which device of a snapshot (default: the one that holds most); a name: a card, as for --capacity")
      .Takes("INDEX|CARD")
      .NotEmpty();
  app.Add("--capacity", flags.capacity, "memory of the device, such as 16GiB, or a card that has it, such as L4")
      .Takes("SIZE|CARD")
      .NotEmpty();
  app.Add("--context", flags.context, "what of --capacity the CUDA context takes, such as 500MiB")
      .Takes("SIZE")
      .NotEmpty();
  app.Add("--memory-fraction", flags.memory_fraction, "as set_per_process_memory_fraction, 0 to 1");
  app.Add("--device-costs", flags.device_costs, "what the device's calls cost: a table as device_cost prints it")
      .Takes("FILE")
      .NotEmpty()
      .Under(kExpert);
  app.Add("--window", flags.window,
          "a part of the trace, FROM:TO: events (1000:2000), times (2s:2500ms) or shares (20%:)")
      .Takes("RANGE")
      .NotEmpty()
      .Under(kExpert);
}

void AddPolicyFlags(Command& app, ReplayFlags& flags) {
  AddRuleFlags(app, flags);
  app.Add("--device", flags.device, "which device of a snapshot (default: the one that holds most)")
      .Takes("INDEX")
      .NotEmpty();
}

absl::Status ReadAddressOrder(const std::string& text, device::AddressOrder& order) {
  const std::optional<device::AddressOrder> named = device::AddressOrderNamed(text);
  if (!named.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--segment-addresses: '", text, "' is none of ascending, descending and driver"));
  }
  order = *named;
  return absl::OkStatus();
}

namespace {

absl::Status ReadCapacity(const ReplayFlags& flags, answers::ReplaySettings& out) {
  const bool is_card = !flags.capacity.empty() && absl::ascii_isalpha(static_cast<unsigned char>(flags.capacity[0]));
  if (is_card) return OfFlag("--capacity", answers::SetCard(flags.capacity, out));
  return ReadSize("--capacity", flags.capacity, DeviceSizes(), out.capacity_bytes);
}

// A number is an index, a name a card.
absl::Status ReadDevice(const ReplayFlags& flags, answers::ReplaySettings& out) {
  out.device = flags.DeviceIndex();
  if (!flags.NamesCard()) return absl::OkStatus();
  if (!flags.takes_card) {
    return absl::InvalidArgumentError(
        absl::StrCat("--device: '", flags.device, "' is no index of a device, such as 0"));
  }
  if (!flags.capacity.empty()) {
    return absl::InvalidArgumentError(
        "--device: a card has a memory of its own: leave out --capacity, or give the device's index here");
  }
  const absl::Status status = answers::SetCard(flags.device, out);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat("--device: neither the index of a device, such as 0, nor a card: ", status.message()));
}

}  // namespace

std::optional<int> ReplayFlags::DeviceIndex() const {
  int index = 0;
  return absl::SimpleAtoi(device, &index) ? std::optional(index) : std::nullopt;
}

absl::StatusOr<answers::ReplaySettings> ReadReplayFlags(const ReplayFlags& flags) {
  answers::ReplaySettings out;
  if (absl::Status status = ReadPolicyFlags(flags, out); !status.ok()) return status;
  if (!flags.segment_addresses.empty()) {
    device::AddressOrder order{};
    if (absl::Status status = ReadAddressOrder(flags.segment_addresses, order); !status.ok()) return status;
    out.segment_addresses = order;
  }
  if (absl::Status status = ReadSize("--context", flags.context, {.begin_bytes = 0}, out.context_bytes); !status.ok()) {
    return status;
  }
  if (absl::Status status = ReadCapacity(flags, out); !status.ok()) return status;
  if (absl::Status status = ReadDevice(flags, out); !status.ok()) return status;
  if (flags.memory_fraction.has_value() && !(*flags.memory_fraction >= 0 && *flags.memory_fraction <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--memory-fraction: ", *flags.memory_fraction, " is not between 0 and 1"));
  }
  if (absl::Status status = ReadDeviceCosts(flags.device_costs, out); !status.ok()) return status;
  if (!flags.window.empty()) {
    absl::StatusOr<timeline::AskedWindow> window = timeline::ParseWindow(flags.window);
    if (!window.ok()) return window.status();
    out.window = *std::move(window);
  }
  out.memory_fraction = flags.memory_fraction;
  return out;
}

int Fail(int code, const absl::Status& status) {
  ProgressLine::End();
  std::fprintf(stderr, "ashlar: %s\n", report::Printable(status.message()).c_str());
  return code;
}

int FailInput(const std::string& input, const absl::Status& status) {
  const int code = status.code() == absl::StatusCode::kOutOfRange ? kUsage : kUnreadable;
  return Fail(code, absl::Status(status.code(), absl::StrCat(input, ": ", status.message())));
}

absl::Status NoSnapshotFlags(const ReplayFlags& flags) {
  if (flags.device.empty() || flags.NamesCard()) return absl::OkStatus();
  return absl::OutOfRangeError("--device needs a snapshot: this input has one device only");
}

absl::Status WriteFile(const std::string& path, const std::string& text) {
  const absl::StatusOr<std::unique_ptr<OutputFile>> file = OutputFile::Open(path);
  if (!file.ok()) return file.status();
  (*file)->Append(text);
  return (*file)->Commit();
}

absl::Status WriteCapture(const std::string& path, const trace::Snapshot& snapshot) {
  if (absl::EndsWith(path, ".ashlar")) return WriteFile(path, trace::Encode(snapshot));
  const absl::StatusOr<std::unique_ptr<OutputFile>> file = OutputFile::Open(path);
  if (!file.ok()) return file.status();
  formats::WriteTorchSnapshot(snapshot, **file);
  return (*file)->Commit();
}

std::array<Flag, 2> AddFormatFlags(Command& app, const std::string& json_help, FormatFlags& flags) {
  const Flag json = app.Add("--json", flags.json, json_help);
  const Flag format = app.Add("--format", flags.format, "text, json, or markdown to paste into an issue")
                          .OneOf({"text", "json", "markdown"})
                          .Excludes(json);
  return {json, format};
}

void AddJsonFile(Command& app, std::string& file) {
  app.Add("--json-to", file, "also writes the JSON to this file").Takes("FILE").NotEmpty();
}

bool Print(const std::string& text) {
  ProgressLine::End();
  const bool is_written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!is_written) std::fprintf(stderr, "ashlar: cannot write to standard output\n");
  return is_written;
}

formats::OpenRules RulesOf(const std::string& path) {
  formats::OpenRules out;
  out.on_quiet = [name = path == "-" ? "standard input" : report::Printable(path)] {
    std::fprintf(stderr, "%sashlar: %s: nothing has come from this pipe yet: waiting for its writer\n",
                 isatty(STDERR_FILENO) == 1 ? "\r\033[K" : "", name.c_str());
  };
  return out;
}

absl::StatusOr<std::string> ReadSmallInput(const std::string& path, std::uint64_t max_bytes) {
  formats::OpenRules rules = RulesOf(path);
  rules.max_bytes = max_bytes;
  return formats::ReadInput(path, rules);
}

namespace {

bool IsPlainNumber(const std::string& text) { return absl::ascii_isdigit(static_cast<unsigned char>(text.back())); }

}  // namespace

SizeRange DeviceSizes() { return {.end_bytes = answers::kMostCapacityBytes + 1}; }

SizeRange InUseSizes() { return {.begin_bytes = 0, .end_bytes = answers::kMostCapacityBytes + 1}; }

absl::Status ReadSize(const char* flag, const std::string& text, const SizeRange& range,
                      std::optional<std::uint64_t>& out) {
  if (text.empty()) return absl::OkStatus();
  const absl::StatusOr<std::uint64_t> bytes = ParseBytes(text);
  if (!bytes.ok()) return OfFlag(flag, bytes.status());
  if (*bytes > 0 && *bytes < range.least_plain_bytes && IsPlainNumber(text)) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": '", text, "' is ", text, " bytes: give its unit, such as ", text, "GiB"));
  }
  if (*bytes < range.begin_bytes || *bytes >= range.end_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(flag, ": '", text, "' is not between ",
                                                   FormatBytes(range.begin_bytes), " and ",
                                                   FormatBytes(range.end_bytes - 1)));
  }
  out = *bytes;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ReadConfs(const std::string& given) {
  std::error_code ignored;
  std::string text = given;
  const bool is_file = std::filesystem::is_regular_file(given, ignored) || std::filesystem::is_fifo(given, ignored);
  if (is_file) {
    absl::StatusOr<std::string> bytes = ReadSmallInput(given);
    if (!bytes.ok()) return bytes.status();
    text = *std::move(bytes);
  }
  std::vector<std::string> out;
  for (const absl::string_view part : absl::StrSplit(text, is_file ? '\n' : ';')) {
    const absl::string_view conf = absl::StripAsciiWhitespace(part);
    if (conf.empty() || conf.front() == '#') continue;
    out.push_back(conf == "default" ? "" : std::string(conf));
  }
  if (out.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", given, "' has no conf: give confs with ; between, or a file with one a line"));
  }
  return out;
}

}  // namespace ashlar::cli
