#include "launcher/machine.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "allocator/base/units.h"
#include "analyzer/gpus/gpu_table.h"
#include "console/command.h"

namespace ashlar::cli {
namespace {

constexpr std::uint64_t kMostDevices = 64;
constexpr std::uint64_t kRoomBytes = std::uint64_t{8} << 40;  // what a hollow device has addresses for
constexpr std::uint64_t kMostProfileBytes = kMiB;

enum class KeyKind : std::uint8_t { kText, kNumber, kSize, kAddresses, kValues };
struct Key {
  absl::string_view name;
  KeyKind kind;
};

// Those of hollow/process/settings.h.
constexpr std::array kKeys = {Key{"devices", KeyKind::kNumber},         Key{"name", KeyKind::kText},
                              Key{"total_bytes", KeyKind::kSize},       Key{"context_bytes", KeyKind::kSize},
                              Key{"in_use_bytes", KeyKind::kSize},      Key{"compute_major", KeyKind::kNumber},
                              Key{"compute_minor", KeyKind::kNumber},   Key{"sm_count", KeyKind::kNumber},
                              Key{"l2_bytes", KeyKind::kSize},          Key{"shared_per_block_optin", KeyKind::kSize},
                              Key{"shared_per_sm", KeyKind::kSize},     Key{"threads_per_sm", KeyKind::kNumber},
                              Key{"clock_khz", KeyKind::kNumber},       Key{"memory_clock_khz", KeyKind::kNumber},
                              Key{"memory_bus_bits", KeyKind::kNumber}, Key{"driver_version", KeyKind::kNumber},
                              Key{"addresses", KeyKind::kAddresses},    Key{"lag_queries", KeyKind::kNumber},
                              Key{"lag_ns", KeyKind::kNumber},          Key{"real_bytes", KeyKind::kSize},
                              Key{"values", KeyKind::kValues},          Key{"fail_call", KeyKind::kNumber},
                              Key{"fail_request", KeyKind::kNumber},    Key{"fail_after", KeyKind::kSize}};

using Fields = std::map<std::string, std::string>;

absl::StatusOr<std::string> Addresses(const std::string& value) {
  if (device::AddressOrderNamed(value).has_value()) return value;
  return absl::InvalidArgumentError(absl::StrCat("'", value, "' is none of driver, ascending and descending"));
}

absl::StatusOr<std::string> Number(const std::string& value) {
  std::uint64_t number = 0;
  if (absl::SimpleAtoi(value, &number)) return absl::StrCat(number);
  return absl::InvalidArgumentError(absl::StrCat("'", value, "' is not a whole number"));
}

absl::StatusOr<std::string> Size(const std::string& value) {
  const absl::StatusOr<std::uint64_t> bytes = ParseBytes(value);
  if (!bytes.ok()) return bytes.status();
  return absl::StrCat(*bytes);
}

// "zeros", "ones", "random:7".
absl::StatusOr<std::string> Values(const std::string& value) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(value, absl::MaxSplits(':', 1));
  if (value == "zeros" || value == "ones" || (parts.first == "random" && Number(parts.second).ok())) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("'", value, "' is neither zeros, ones nor random:SEED, such as random:7"));
}

// As the library reads it.
absl::StatusOr<std::string> Canonical(KeyKind kind, const std::string& value) {
  switch (kind) {
    case KeyKind::kText:
      return value;
    case KeyKind::kNumber:
      return Number(value);
    case KeyKind::kSize:
      return Size(value);
    case KeyKind::kAddresses:
      return Addresses(value);
    case KeyKind::kValues:
      return Values(value);
  }
  return value;
}

absl::Status SetField(const std::string& name, const std::string& value, Fields& fields) {
  const auto* key = std::find_if(kKeys.begin(), kKeys.end(), [&](const Key& of) { return of.name == name; });
  if (key == kKeys.end()) {
    std::vector<absl::string_view> known;
    for (const Key& of : kKeys) known.push_back(of.name);
    return absl::InvalidArgumentError(absl::StrCat("there is no key '", name, "': ", absl::StrJoin(known, ", ")));
  }
  absl::StatusOr<std::string> canonical = Canonical(key->kind, value);
  if (!canonical.ok()) return absl::InvalidArgumentError(absl::StrCat(name, ": ", canonical.status().message()));
  fields[name] = *std::move(canonical);
  return absl::OkStatus();
}

absl::Status ReadProfile(const std::string& file, Fields& fields) {
  const absl::StatusOr<std::string> text = ReadSmallInput(file, kMostProfileBytes);
  if (!text.ok()) return absl::UnavailableError(absl::StrCat("--profile: ", text.status().message()));
  int number = 0;
  for (const absl::string_view whole : absl::StrSplit(*text, '\n')) {
    ++number;
    const absl::string_view line = absl::StripAsciiWhitespace(whole);
    if (line.empty() || line.front() == '#') continue;
    const std::pair<std::string, std::string> field = absl::StrSplit(line, absl::MaxSplits('=', 1));
    absl::Status status = absl::StrContains(line, '=')
                              ? SetField(field.first, field.second, fields)
                              : absl::InvalidArgumentError(absl::StrCat("'", line, "' is not key=value"));
    if (status.ok()) continue;
    return absl::InvalidArgumentError(absl::StrCat("--profile: ", file, ", line ", number, ": ", status.message()));
  }
  return absl::OkStatus();
}

MachineValue ValueOf(const gpus::GpuFact& fact) {
  return {fact.value, std::string(gpus::MarkName(fact.mark)), std::string(fact.source)};
}

void SetFacts(const gpus::Gpu& gpu, Fields& fields) {
  fields["name"] = std::string(gpu.driver_name);
  for (const auto& [key, fact] : gpus::FactsOf(gpu)) fields[std::string(key)] = absl::StrCat(fact.value);
}

absl::Status SetCard(const std::string& name, HollowMachine& machine, Fields& fields) {
  const absl::StatusOr<gpus::Gpu> gpu = gpus::GpuNamed(name);
  if (!gpu.ok()) return OfFlag("--device", gpu.status());
  machine.card = std::string(gpu->name);
  machine.has_limit = true;
  machine.total = ValueOf(gpu->total_bytes);
  machine.has_unified_memory = gpu->has_unified_memory;
  SetFacts(*gpu, fields);
  return absl::OkStatus();
}

// Nanoseconds a piece of work: far more than the calls of a program take, and 10^10 pieces of it are still a time.
constexpr std::uint64_t kUntilWaited = 1'000'000'000;

// "queries:6", "time:2000", "until-waited".
absl::Status SetLag(const std::string& lag, Fields& fields) {
  if (lag.empty()) return absl::OkStatus();
  if (lag == "until-waited") return SetField("lag_ns", absl::StrCat(kUntilWaited), fields);
  const std::pair<std::string, std::string> parts = absl::StrSplit(lag, absl::MaxSplits(':', 1));
  const char* key = parts.first == "queries" ? "lag_queries" : parts.first == "time" ? "lag_ns" : nullptr;
  if (key == nullptr || !Number(parts.second).ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--lag: '", lag, "' is none of queries:N, such as queries:6, time:NS, such as time:2000, and until-waited"));
  }
  return SetField(key, parts.second, fields);
}

absl::Status SetSize(const char* flag, const char* key, const std::string& text, Fields& fields) {
  std::optional<std::uint64_t> bytes;
  const absl::Status status = ReadSize(flag, text, {.end_bytes = kRoomBytes + 1}, bytes);
  if (bytes.has_value()) fields[key] = absl::StrCat(*bytes);
  return status;
}

// The program reads no more than 19 digits.
absl::Status CheckCall(const char* flag, const std::optional<std::uint64_t>& call) {
  constexpr std::uint64_t kLastCall = 999'999'999'999'999'999;
  if (!call.has_value() || (*call >= 1 && *call <= kLastCall)) return absl::OkStatus();
  return absl::InvalidArgumentError(*call == 0 ? absl::StrCat(flag, ": calls count from 1")
                                               : absl::StrCat(flag, ": no program makes ", *call, " calls"));
}

absl::Status SetFlags(const MachineFlags& flags, Fields& fields) {
  absl::Status status = SetSize("--capacity", "total_bytes", flags.capacity, fields);
  status.Update(SetSize("--context", "context_bytes", flags.context, fields));
  status.Update(SetSize("--in-use", "in_use_bytes", flags.in_use, fields));
  status.Update(SetSize("--fail-after", "fail_after", flags.fail_after, fields));
  status.Update(SetLag(flags.lag, fields));
  if (!flags.values.empty()) {
    const absl::StatusOr<std::string> values = Values(flags.values);
    if (!values.ok()) return OfFlag("--values", values.status());
    fields["values"] = *values;
  }
  if (!flags.segment_addresses.empty()) {
    const absl::Status order = SetField("addresses", flags.segment_addresses, fields);
    if (!order.ok()) return OfFlag("--segment-addresses", order);
  }
  if (flags.devices.has_value() && (*flags.devices < 1 || *flags.devices > kMostDevices)) {
    status.Update(absl::InvalidArgumentError(
        absl::StrCat("--devices: ", *flags.devices, " is not between 1 and ", kMostDevices)));
  }
  status.Update(CheckCall("--fail-call", flags.fail_call));
  status.Update(CheckCall("--fail-request", flags.fail_request));
  if (flags.devices.has_value()) fields["devices"] = absl::StrCat(*flags.devices);
  if (flags.fail_call.has_value()) fields["fail_call"] = absl::StrCat(*flags.fail_call);
  if (flags.fail_request.has_value()) fields["fail_request"] = absl::StrCat(*flags.fail_request);
  return status;
}

std::uint64_t NumberOf(const Fields& fields, const char* key, std::uint64_t otherwise) {
  const auto field = fields.find(key);
  std::uint64_t out = 0;
  return field != fields.end() && absl::SimpleAtoi(field->second, &out) ? out : otherwise;
}

std::string LagInWords(const Fields& fields) {
  const std::uint64_t queries = NumberOf(fields, "lag_queries", 0), ns = NumberOf(fields, "lag_ns", 0);
  if (queries > 0) return absl::StrCat("an event is done at query ", queries, " of it");
  if (ns == kUntilWaited) return "work is done once the host waits for it, and no sooner";
  if (ns > 0) return absl::StrCat("each piece of work takes ", FormatCount(ns), " ns of simulated time");
  return "work is done as soon as it is given";
}

// A profile's name where it says whose kernels run, else the card.
answers::RanAs RanAsOf(const gpus::Gpu& card, const Fields& fields) {
  const auto number = [&](const char* key, int otherwise) {
    return static_cast<int>(NumberOf(fields, key, static_cast<std::uint64_t>(otherwise)));
  };
  const gpus::Capability capability = {number("compute_major", card.compute_major),
                                       number("compute_minor", card.compute_minor)};
  const auto name = fields.find("name");
  const bool is_card = capability == card.capability() || name == fields.end();
  return {is_card ? std::string(card.name) : name->second, capability};
}

MachineValue AmpleRoom() { return {kRoomBytes, "assumed", "room that no program fills"}; }

// What the report says of it, from the fields as they are written.
void Describe(const MachineFlags& flags, const Fields& fields, HollowMachine& machine) {
  const gpus::Gpu usual = *gpus::GpuNamed(gpus::kUsualCard);
  const gpus::Gpu card = machine.card.empty() ? usual : *gpus::GpuNamed(machine.card);
  machine.device_count = NumberOf(fields, "devices", 1);
  machine.ran_as = RanAsOf(card, fields);
  machine.has_limit |= !flags.capacity.empty() || (!flags.profile.empty() && fields.count("total_bytes") > 0);
  const char* giver = flags.profile.empty() ? "--capacity" : "--profile";
  if (machine.card.empty() && machine.has_limit) {
    machine.total = {NumberOf(fields, "total_bytes", kRoomBytes), "given", giver};
  } else if (machine.card.empty()) {
    machine.total = AmpleRoom();
  }
  machine.context = ValueOf(gpus::ContextOf(card, gpus::ModuleLoading::kLazy));
  if (machine.card.empty()) machine.context.mark = std::string(gpus::MarkName(gpus::Mark::kAssumed));
  if (machine.card.empty()) machine.context.source = absl::StrCat("that of ", usual.name, "; or give --context");
  const std::uint64_t context_bytes = NumberOf(fields, "context_bytes", machine.context.bytes);
  if (!flags.context.empty() || context_bytes != machine.context.bytes) {
    machine.context = {context_bytes, "given", flags.context.empty() ? "--profile" : "--context"};
  }
  machine.in_use = {NumberOf(fields, "in_use_bytes", 0), "given", flags.in_use.empty() ? "--profile" : "--in-use"};
  if (machine.in_use.bytes == 0) machine.in_use = {0, "assumed", "nothing beside the program; or give --in-use"};
  machine.lag = LagInWords(fields);
  machine.addresses = *device::AddressOrderNamed(fields.at("addresses"));
  machine.values = fields.count("values") > 0 ? fields.at("values") : "zeros";
}

// With what is given by other flags.
absl::StatusOr<HollowMachine> Described(const MachineFlags& flags, Fields fields, HollowMachine out) {
  if (absl::Status status = SetFlags(flags, fields); !status.ok()) return status;
  fields.emplace("addresses", "driver");
  Describe(flags, fields, out);
  fields["total_bytes"] = absl::StrCat(out.total.bytes);
  fields["context_bytes"] = absl::StrCat(out.context.bytes);
  if (out.context.bytes >= out.RoomBytes()) {
    const std::string in_use =
        out.in_use.bytes == 0 ? "" : absl::StrCat(" and the ", FormatBytes(out.in_use.bytes), " of --in-use");
    return absl::InvalidArgumentError(absl::StrCat(out.total.source, ": ", FormatBytes(out.total.bytes),
                                                   " is no more than the CUDA context of ",
                                                   FormatBytes(out.context.bytes), in_use, " takes"));
  }
  for (const Key& key : kKeys) {
    const auto field = fields.find(std::string(key.name));
    if (field != fields.end()) absl::StrAppend(&out.text, field->first, "=", field->second, "\n");
  }
  return out;
}

}  // namespace

Flag AddMachineFlags(Command& app, MachineFlags& flags) {
  Flag device =
      app.Add("--device", flags.device, absl::StrCat("the card: ", gpus::GpuNames())).Takes("CARD").NotEmpty();
  Flag capacity = app.Add("--capacity", flags.capacity, "memory of the device, such as 16GiB").Takes("SIZE").NotEmpty();
  Flag profile =
      app.Add("--profile", flags.profile, "a card of your own: a file of key=value lines").Takes("FILE").NotEmpty();
  device.Excludes(capacity).Excludes(profile);
  capacity.Excludes(profile);
  const Flag devices = app.Add("--devices", flags.devices, "how many of them (default 1)");
  app.Add("--context", flags.context, "what the CUDA context of a process takes, such as 500MiB")
      .Takes("SIZE")
      .NotEmpty();
  app.Add("--in-use", flags.in_use,
          "what others hold of each device, such as 3GiB: other programs; of memory that is the host's own (GB10), its "
          "programs and page cache too")
      .Takes("SIZE")
      .NotEmpty();
  app.Add("--lag", flags.lag,
          "when work is done: queries:N (at the N-th query of an event), time:NS, or until-waited (when the host waits "
          "for it)")
      .Takes("RULE")
      .NotEmpty()
      .Under("For experts");
  app.Add("--values", flags.values, "what made-up values read as: zeros (default), ones or random:SEED")
      .Takes("RULE")
      .NotEmpty();
  app.Add("--segment-addresses", flags.segment_addresses,
          "where cudaMalloc's memory lies: driver (as NVIDIA's, the default), ascending or descending")
      .Takes("ORDER")
      .NotEmpty()
      .Under("For experts");
  app.Add("--fail-call", flags.fail_call, "the N-th call that asks a device for memory fails").Under("For experts");
  app.Add("--fail-request", flags.fail_request, "the same, and its repeats: what makes a request of PyTorch fail")
      .Under("For experts");
  app.Add("--fail-after", flags.fail_after, "calls fail once a device has this much in use, such as 4GiB")
      .Takes("SIZE")
      .NotEmpty()
      .Under("For experts");
  return devices;
}

absl::StatusOr<HollowMachine> ReadMachine(const MachineFlags& flags) {
  HollowMachine out;
  Fields fields;
  if (!flags.device.empty()) {
    if (absl::Status status = SetCard(flags.device, out, fields); !status.ok()) return status;
  }
  if (!flags.profile.empty()) {
    if (absl::Status status = ReadProfile(flags.profile, fields); !status.ok()) return status;
  }
  return Described(flags, std::move(fields), std::move(out));
}

absl::StatusOr<HollowMachine> ReadMachineAs(const MachineFlags& flags, const gpus::Gpu& gpu) {
  Fields fields;
  if (!flags.profile.empty()) {
    if (absl::Status status = ReadProfile(flags.profile, fields); !status.ok()) return status;
  }
  SetFacts(gpu, fields);
  fields.erase("total_bytes");
  return Described(flags, std::move(fields), HollowMachine());
}

HollowMachine InAmpleRoom(HollowMachine machine) {
  std::vector<std::string> lines = absl::StrSplit(machine.text, '\n');
  for (std::string& line : lines) {
    if (absl::StartsWith(line, "total_bytes=")) line = absl::StrCat("total_bytes=", kRoomBytes);
  }
  machine.text = absl::StrJoin(lines, "\n");
  machine.has_limit = false;
  machine.total = AmpleRoom();
  return machine;
}

}  // namespace ashlar::cli
