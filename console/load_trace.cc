#include "console/load_trace.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/host_memory.h"
#include "analyzer/formats/formats.h"
#include "analyzer/formats/input_file.h"
#include "commands/shared/input.h"
#include "console/command.h"
#include "console/memory_end.h"

namespace ashlar::cli {
namespace {

absl::Status FlagsFit(formats::InputKind kind, const ReplayFlags& flags) {
  if (kind == formats::InputKind::kPlainTrace) return NoSnapshotFlags(flags);
  if (flags.NamesCard()) {
    return absl::OutOfRangeError(absl::StrCat("--device ", flags.device,
                                              ": a snapshot is taken as it was recorded; ashlar explain --device ",
                                              flags.device, " says whether it would fit there"));
  }
  const char* wrong = flags.conf.has_value()              ? "--conf"
                      : !flags.capacity.empty()           ? "--capacity"
                      : flags.memory_fraction.has_value() ? "--memory-fraction"
                      : !flags.segment_addresses.empty()  ? "--segment-addresses"
                                                          : nullptr;
  if (wrong == nullptr) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(wrong, " needs a request trace: a snapshot is taken as it was recorded"));
}

// Of the file as it lies there; 0 where that is not known.
std::uint64_t StoredBytes(const std::string& input) {
  std::error_code error;
  const std::uintmax_t size = input == "-" ? 0 : std::filesystem::file_size(input, error);
  return error ? 0 : static_cast<std::uint64_t>(size);
}

}  // namespace

formats::ReadLimits LimitsOf(const ReplayFlags& flags) {
  formats::ReadLimits out = WholeWhereItFits(flags);
  const bool is_more = out.max_events == 0 || out.max_events > kHeldEvents;
  if (!flags.max_events.has_value() && is_more) out.max_events = kHeldEvents;
  return out;
}

formats::ReadLimits WholeWhereItFits(const ReplayFlags& flags) {
  constexpr std::uint64_t kBytesAnEvent = 300;  // read, replayed and explained
  constexpr std::uint64_t kAlwaysHeld = 1'000'000;
  if (flags.max_events.has_value()) return {.max_events = *flags.max_events};
  const std::optional<std::uint64_t> free = AvailableHostBytes();
  return {.max_events = free.has_value() ? std::max(kAlwaysHeld, *free / 4 * 3 / kBytesAnEvent) : 0};
}

absl::StatusOr<formats::InputBytes> LoadBytes(const std::string& input, const answers::ReplaySettings& settings) {
  answers::Tell(settings, absl::StrCat("reading ", input));
  ExpectMemoryFor(input, StoredBytes(input));
  formats::OpenRules rules = RulesOf(input);
  rules.is_enough = formats::IsUnknownBinary;
  absl::StatusOr<formats::InputBytes> bytes = formats::OpenInput(input, rules);
  if (bytes.ok()) ExpectMemoryFor(input, bytes->view());
  return bytes;
}

answers::ReplaySettings NamingProgress(const std::string& input, answers::ReplaySettings settings) {
  if (!settings.progress) return settings;
  const std::string name = input.substr(input.find_last_of('/') + 1);
  settings.progress = [name, progress = std::move(settings.progress)](const std::string& stage) {
    progress(absl::StrCat(name, ": ", stage));
  };
  return settings;
}

absl::Status OfInput(const std::string& input, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(input, ": ", status.message()));
}

absl::StatusOr<answers::Input> InputOf(const std::string& input, absl::string_view bytes, const ReplayFlags& flags,
                                       answers::InputRule rule) {
  rule.limits = LimitsOf(flags);
  rule.fits = [&](formats::InputKind kind) {
    const bool is_problem = kind == formats::InputKind::kPackingCsv && rule.problems;
    return is_problem ? absl::OkStatus() : FlagsFit(kind, flags);
  };
  absl::StatusOr<answers::Input> out = answers::LoadInput(bytes, rule);
  if (!out.ok()) return OfInput(input, out.status());
  return out;
}

absl::StatusOr<answers::Input> LoadToExplain(const std::string& input, const ReplayFlags& flags,
                                             const answers::ReplaySettings& settings) {
  const absl::StatusOr<formats::InputBytes> bytes = LoadBytes(input, settings);
  if (!bytes.ok()) return bytes.status();
  return ToExplain(input, *bytes, flags, settings);
}

absl::StatusOr<answers::Input> ToExplain(const std::string& input, absl::string_view bytes, const ReplayFlags& flags,
                                         const answers::ReplaySettings& settings) {
  answers::InputRule rule = answers::ExplainedInputs();
  rule.limits = LimitsOf(flags);
  rule.fits = [&flags](formats::InputKind kind) {
    return kind == formats::InputKind::kPlainTrace ? NoSnapshotFlags(flags) : absl::OkStatus();
  };
  absl::StatusOr<answers::Input> out = answers::LoadInput(bytes, rule);
  if (!out.ok()) return OfInput(input, out.status());
  return PartOf(input, std::move(out), settings);
}

absl::StatusOr<answers::TracedRun> LoadTrace(const std::string& input, const ReplayFlags& flags,
                                             const answers::ReplaySettings& settings) {
  absl::StatusOr<formats::InputBytes> bytes = LoadBytes(input, settings);
  if (!bytes.ok()) return bytes.status();
  const absl::StatusOr<answers::Input> loaded = PartOf(input, InputOf(input, *bytes, flags), settings);
  bytes->Clear();
  if (!loaded.ok()) return loaded.status();
  absl::StatusOr<answers::TracedRun> run = answers::TraceInput(*loaded, NamingProgress(input, settings));
  if (!run.ok()) return OfInput(input, run.status());
  return run;
}

absl::StatusOr<std::vector<answers::TracedRun>> LoadDevices(const std::string& input, const ReplayFlags& flags,
                                                            const answers::ReplaySettings& settings) {
  absl::StatusOr<formats::InputBytes> bytes = LoadBytes(input, settings);
  if (!bytes.ok()) return bytes.status();
  const absl::StatusOr<answers::Input> loaded = PartOf(input, InputOf(input, *bytes, flags), settings);
  bytes->Clear();
  if (!loaded.ok()) return loaded.status();
  absl::StatusOr<std::vector<answers::TracedRun>> runs =
      answers::TraceDevices(*loaded, NamingProgress(input, settings));
  if (!runs.ok()) return OfInput(input, runs.status());
  return runs;
}

absl::StatusOr<answers::Input> PartOf(const std::string& input, absl::StatusOr<answers::Input> loaded,
                                      const answers::ReplaySettings& settings) {
  if (!loaded.ok() || settings.window.IsWhole()) return loaded;
  absl::StatusOr<answers::Input> part = answers::CutInput(*std::move(loaded), settings.window, settings.device);
  if (!part.ok()) return OfInput(input, part.status());
  return part;
}

int FailLoad(const absl::Status& status) {
  return Fail(status.code() == absl::StatusCode::kOutOfRange ? kUsage : kUnreadable, status);
}

}  // namespace ashlar::cli
