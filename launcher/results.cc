#include "launcher/results.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "allocator/trace/codec.h"
#include "analyzer/formats/input_file.h"
#include "analyzer/formats/native/native_log.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "analyzer/formats/utf8.h"
#include "console/command.h"
#include "console/load_trace.h"
#include "launcher/json_fields.h"
#include "launcher/shared_accounting.h"
#include "nlohmann/json.hpp"

namespace ashlar::cli {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMostReportBytes = 64 * kMiB;

std::optional<int> GetRank(const json& object, const char* key) {
  const int rank = Get<int>(object, key, -1);
  return rank < 0 ? std::nullopt : std::optional(rank);
}

std::vector<LibraryBytes> LibrariesOf(const json& device) {
  std::vector<LibraryBytes> out;
  for (const json& library : GetArray(device, "libraries")) {
    out.push_back({Get<std::string>(library, "name"), Get<std::uint64_t>(library, "bytes")});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const LibraryBytes& a, const LibraryBytes& b) { return a.bytes > b.bytes; });
  return out;
}

const json& GetObject(const json& object, const char* key) {
  static const json kEmpty = json::object();
  return object.is_object() && object.contains(key) && object[key].is_object() ? object[key] : kEmpty;
}

bool GetBool(const json& object, const char* key) { return object.is_object() && object.value(key, json()) == true; }

LibraryCalls LibraryCallsOf(const json& file) {
  const json& use = GetObject(file, "library_use");
  LibraryCalls out{.has_cudnn = GetBool(use, "cudnn")};
  if (const json& plans = GetObject(use, "cudnn_plans"); !plans.empty()) {
    out.cudnn_plans = {Get<std::string>(plans, "library"), Get<std::string>(plans, "cublaslt"),
                       GetObject(plans, "device").dump()};
    for (const json& graph : GetArray(plans, "graphs")) out.cudnn_plans.graphs.push_back(graph.dump());
    out.cudnn_plans.more = Get<std::uint64_t>(plans, "more");
    if (const json& said = GetObject(plans, "said"); !said.empty()) {
      out.cudnn = {.plans = out.cudnn_plans.graphs.size() + out.cudnn_plans.more,
                   .answered = Get<std::size_t>(said, "answered"),
                   .most_bytes = Get<std::uint64_t>(said, "most_bytes"),
                   .version = Get<std::uint64_t>(said, "version"),
                   .why_not = Get<std::string>(said, "why_not"),
                   .is_in_peak = true};
    }
  }
  for (const json& of : GetArray(use, "cublas"))
    out.cublas.push_back({Get<int>(of, "device"), Get<int>(of, "handles")});
  const json& nccl = GetObject(use, "nccl");
  out.nccl_version = Get<int>(nccl, "version");
  for (const auto& [name, value] : GetObject(nccl, "settings").items()) {
    if (value.is_string()) out.nccl_settings[name] = value.get<std::string>();
  }
  for (const json& of : GetArray(nccl, "communicators")) {
    out.communicators.push_back(
        {Get<int>(of, "device"),
         {Get<int>(of, "ranks"), GetBool(of, "collectives"), Get<int>(of, "peers"), GetBool(of, "suspended")}});
  }
  return out;
}

ProcessAccounting AccountingOf(const json& file) {
  ProcessAccounting out;
  out.program = Get<std::string>(file, "program");
  out.arguments = GetTexts(file, "args");
  for (const json& device : GetArray(file, "devices")) {
    out.devices.push_back({Get<int>(device, "ordinal"), Get<std::uint64_t>(device, "total_bytes"),
                           Get<std::uint64_t>(device, "context_bytes"), Get<std::uint64_t>(device, "peak_bytes"),
                           Get<std::uint64_t>(device, "used_at_end_bytes"), Get<std::uint64_t>(device, "out_of_memory"),
                           LibrariesOf(device)});
  }
  out.pinned_peak_bytes = Get<std::uint64_t>(file, "pinned_peak_bytes");
  out.launches = Get<std::uint64_t>(file, "launches");
  out.found_done = Get<std::uint64_t>(file, "found_done");
  for (const json& call : GetArray(file, "refused")) {
    out.refused.push_back({Get<std::string>(call, "name"), Get<std::uint64_t>(call, "count")});
  }
  for (const json& value : GetArray(file, "made_up")) {
    out.made_up.push_back(
        {Get<std::string>(value, "line"), Get<std::uint64_t>(value, "count"), Get<std::uint64_t>(value, "bytes")});
  }
  out.made_up_total = Get<std::uint64_t>(file, "made_up_total");
  out.calls_lost = Get<std::uint64_t>(file, "calls_lost");
  out.library_calls = LibraryCallsOf(file);
  return out;
}

TorchInfo TorchOf(const json& file) {
  TorchInfo out;
  out.arguments = GetTexts(file, "argv");
  out.version = Get<std::string>(file, "torch");
  out.archs = GetTexts(file, "archs");
  out.exception = Get<std::string>(file, "exception");
  out.not_kept = Get<std::string>(file, "not_kept");
  out.failures = Get<std::uint64_t>(file, "num_failures");
  out.routing_choices = Get<std::uint64_t>(file, "routing_choices");
  for (const json& value : GetArray(file, "given_values")) {
    out.given_values.push_back(
        {Get<std::string>(value, "flag"), Get<std::uint64_t>(value, "reads"), Get<std::string>(value, "why_not")});
  }
  for (const json& line : GetArray(file, "value_reads")) {
    out.reading_lines.push_back({Get<std::string>(line, "line"), Get<std::uint64_t>(line, "count")});
  }
  if (file.contains("exit") && file["exit"].is_number_integer()) out.exit_code = file["exit"].get<std::int64_t>();
  for (const json& device : GetArray(file, "devices")) {
    out.devices.push_back({Get<int>(device, "index"), Get<std::uint64_t>(device, "peak_allocated"),
                           Get<std::uint64_t>(device, "peak_reserved"), Get<std::uint64_t>(device, "num_ooms"),
                           Get<std::uint64_t>(device, "num_alloc_retries")});
  }
  return out;
}

JaxInfo JaxOf(const json& file) {
  JaxInfo out{.devices = {}, .out_of_memory = Get<std::string>(file, "out_of_memory")};
  for (const json& device : GetArray(file, "devices")) {
    out.devices.push_back({Get<int>(device, "index"), Get<std::uint64_t>(device, "peak_in_use_bytes"),
                           Get<std::uint64_t>(device, "reserved_bytes"), Get<std::uint64_t>(device, "limit_bytes")});
  }
  return out;
}

VllmInfo VllmOf(const json& file) {
  const auto bytes = [&file](const char* key) { return Get<std::uint64_t>(file, key); };
  return {bytes("weights_bytes"),   bytes("activations_bytes"), bytes("graphs_bytes"),
          bytes("kv_cache_bytes"),  bytes("requested_bytes"),   bytes("tokens"),
          bytes("longest_request"), bytes("most_requests")};
}

SglangInfo SglangOf(const json& file) {
  const auto number = [&file](const char* key) { return Get<std::uint64_t>(file, key); };
  return {number("weights_bytes"), number("kv_cache_bytes"), number("requested_bytes"), number("tokens")};
}

// "oom-4242-1.pickle": the kind, the process and which of its files.
struct FileName {
  std::string kind;
  std::int64_t pid = 0;
  std::int64_t index = 0;
};

std::optional<FileName> ParseName(absl::string_view name, absl::string_view ending) {
  if (!absl::ConsumeSuffix(&name, ending)) return std::nullopt;
  const std::vector<std::string> parts = absl::StrSplit(name, '-');
  FileName out{parts.front()};
  if (parts.size() < 2 || parts.size() > 3 || !absl::SimpleAtoi(parts[1], &out.pid)) return std::nullopt;
  if (parts.size() == 3 && !absl::SimpleAtoi(parts[2], &out.index)) return std::nullopt;
  return out;
}

bool IsOfOurs(absl::string_view name) {
  return ParseName(name, ".json").has_value() || ParseName(name, ".log").has_value() ||
         ParseName(name, ".pickle").has_value();
}

class Reader {
 public:
  void Read(const std::string& path, const std::string& name) {
    if (!IsLeftFile(path)) {
      if (IsOfOurs(name)) {
        results_.unreadable.push_back(absl::StrCat(name, ": is no file, but a pipe, a link or a folder"));
      }
      return;
    }
    if (const auto of = ParseName(name, ".json")) ReadJson(path, name, *of);
    if (const auto of = ParseName(name, ".log"); of.has_value() && of->kind == "native") native_logs_[of->pid] = path;
    if (const auto of = ParseName(name, ".pickle")) {
      ProcessRun& run = RunOf(of->pid);
      if (of->kind == "history") run.history = path;
      if (of->kind == "oom") failures_[of->pid][of->index] = path;
    }
  }

  void ReadShared(const std::string& folder) {
    const std::optional<SharedAccounting> books = ReadSharedAccounting(folder);
    if (!books.has_value()) return;
    for (const auto& [device, bytes] : books->peaks) results_.peak_bytes = std::max(results_.peak_bytes, bytes);
    for (const auto& [pid, devices] : books->left_held) {
      ProcessRun& run = RunOf(pid);
      if (run.books.has_value()) continue;
      for (const auto& [device, bytes] : devices) {
        run.left_held.push_back({.ordinal = device, .peak_bytes = books->peaks.at(device), .used_at_end_bytes = bytes});
      }
    }
  }

  RunResults Finish() {
    for (const auto& [pid, path] : native_logs_) TakeNative(path, RunOf(pid));
    for (auto& [pid, run] : runs_) {
      for (const auto& [index, path] : failures_[pid]) run.failures.push_back(path);
      if (run.UsedADevice() || run.HasCallsToTell()) results_.runs.push_back(std::move(run));
    }
    std::stable_sort(results_.runs.begin(), results_.runs.end(), [](const ProcessRun& a, const ProcessRun& b) {
      return std::tuple(!a.rank.has_value(), a.rank.value_or(0)) < std::tuple(!b.rank.has_value(), b.rank.value_or(0));
    });
    return std::move(results_);
  }

 private:
  ProcessRun& RunOf(std::int64_t pid) {
    runs_[pid].pid = pid;
    return runs_[pid];
  }

  // PyTorch's own history says more, but not whose the memory beside it is.
  void TakeNative(const std::string& path, ProcessRun& run) {
    if (run.torch.has_value() || !run.history.empty() || !failures_[run.pid].empty()) {
      run.device_log = path;
      return;
    }
    const absl::StatusOr<NativeCalls> calls = ReadNativeCalls(path);
    if (!calls.ok()) results_.unreadable.push_back(absl::StrCat(path, ": ", std::string(calls.status().message())));
    if (!calls.ok() || calls->allocations + calls->out_of_memory == 0) return;
    if (calls->has_torch) {
      run.device_log = path;
      return;
    }
    run.native = *calls;
    run.history = path;
  }

  void ReadJson(const std::string& path, const std::string& name, const FileName& of) {
    constexpr std::string_view kKinds[] = {"process", "info", "jax", "vllm", "sglang"};
    if (std::find(std::begin(kKinds), std::end(kKinds), of.kind) == std::end(kKinds)) return;
    const absl::StatusOr<std::string> bytes =
        formats::ReadInput(path, {.max_bytes = kMostReportBytes, .files_only = true});
    const json file = bytes.ok() ? json::parse(formats::ToUtf8(*bytes), nullptr, /*allow_exceptions=*/false) : json();
    if (!file.is_object()) {
      results_.unreadable.push_back(absl::StrCat(name, bytes.ok() ? ": is no JSON object, as of a process that was "
                                                                    "killed while it wrote"
                                                                  : ": cannot be read"));
      return;
    }
    ProcessRun& run = RunOf(of.pid);
    if (of.kind == "process") {
      run.books = AccountingOf(file);
    } else if (of.kind == "jax") {
      run.jax = JaxOf(file);
    } else if (of.kind == "vllm") {
      run.vllm = VllmOf(file);
    } else if (of.kind == "sglang") {
      run.sglang = SglangOf(file);
    } else {
      run.torch = TorchOf(file);
      run.rank = GetRank(file, "rank");
      run.local_rank = GetRank(file, "local_rank");
      run.world_size = GetRank(file, "world_size");
    }
  }

  std::map<std::int64_t, ProcessRun> runs_;
  std::map<std::int64_t, std::map<std::int64_t, std::string>> failures_;
  std::map<std::int64_t, std::string> native_logs_;
  RunResults results_;
};

}  // namespace

bool ProcessRun::UsedADevice() const {
  const bool has_books = books.has_value() && std::any_of(books->devices.begin(), books->devices.end(),
                                                          [](const AccountedDevice& of) { return of.peak_bytes > 0; });
  return has_books || DiedEarly() || !history.empty() || !failures.empty() ||
         (torch.has_value() && (!torch->devices.empty() || torch->failures > 0));
}

bool ProcessRun::HasCallsToTell() const {
  return books.has_value() && (!books->refused.empty() || books->made_up_total > 0);
}

std::uint64_t ProcessRun::PeakBytes() const {
  std::uint64_t out = 0;
  if (books.has_value()) {
    for (const AccountedDevice& device : books->devices) out = std::max(out, device.peak_bytes);
  } else if (DiedEarly()) {
    for (const AccountedDevice& device : left_held) out = std::max(out, device.peak_bytes);
  } else if (torch.has_value()) {
    for (const TorchDevice& device : torch->devices) out = std::max(out, device.peak_reserved_bytes);
  } else if (native.has_value()) {
    out = native->peak_bytes;
  }
  return out;
}

// A call that fails under PyTorch's allocator is tried again: only it knows what failed in the end. Another allocator
// in its place may tell nothing.
std::uint64_t ProcessRun::OutOfMemory() const {
  std::uint64_t out = 0;
  if (torch.has_value()) {
    for (const TorchDevice& device : torch->devices) out += device.num_ooms;
    out = std::max({out, torch->failures, static_cast<std::uint64_t>(failures.size())});
    if (out > 0 || torch->not_kept.empty()) return out;
  }
  if (!failures.empty()) return failures.size();
  if (jax.has_value() && !jax->out_of_memory.empty()) return 1;
  if (books.has_value()) {
    for (const AccountedDevice& device : books->devices) out += device.out_of_memory;
  } else if (native.has_value()) {
    out = native->out_of_memory;
  }
  return out;
}

std::string ProcessRun::Name() const {
  return rank.has_value() ? absl::StrCat("rank ", *rank) : absl::StrCat("process ", pid);
}

libraries::CudnnUse CudnnOf(const RunResults& results) {
  libraries::CudnnUse out;
  for (const ProcessRun& run : results.runs) {
    if (run.books.has_value()) out.Add(run.books->library_calls.cudnn);
  }
  return out;
}

std::vector<std::string> NotKept(const RunResults& results) {
  std::vector<std::string> out;
  for (const ProcessRun& run : results.runs) {
    if (!run.torch.has_value() || run.torch->not_kept.empty()) continue;
    out.push_back(absl::StrCat(run.Name(), ": no history of its allocations: ", run.torch->not_kept));
  }
  return out;
}

RunResults ReadResults(const std::string& folder) {
  std::set<std::string> names;  // in an order that no file system decides
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    names.insert(entry.path().filename().string());
  }
  Reader reader;
  for (const std::string& name : names) reader.Read(absl::StrCat(folder, "/", name), name);
  reader.ReadShared(folder);
  return reader.Finish();
}

namespace {

absl::StatusOr<trace::Snapshot> ReadLog(const std::string& path) {
  const absl::StatusOr<formats::InputBytes> bytes = LoadBytes(path, {});
  if (!bytes.ok()) return bytes.status();
  return formats::ReadNativeLog(*bytes);
}

}  // namespace

absl::StatusOr<NativeCalls> ReadNativeCalls(const std::string& path) {
  const absl::StatusOr<trace::Snapshot> snapshot = ReadLog(path);
  if (!snapshot.ok()) return snapshot.status();
  NativeCalls out;
  out.has_torch = snapshot->settings->values.count(absl::StrCat(trace::kDeviceCallsNote, "torch_came")) > 0;
  for (const trace::EventList& events : snapshot->device_traces) {
    std::uint64_t held = 0;
    for (const trace::Event& event : events) {
      out.allocations += event.action == trace::Action::kAlloc ? 1 : 0;
      out.out_of_memory += event.action == trace::Action::kOom ? 1 : 0;
      held += event.action == trace::Action::kAlloc ? event.size_bytes : 0;
      held -= event.action == trace::Action::kFreeRequested ? event.size_bytes : 0;
      out.peak_bytes = std::max(out.peak_bytes, held);
    }
  }
  return out;
}

absl::Status KeepNativeLog(const std::string& path, const std::string& to) {
  const absl::StatusOr<trace::Snapshot> snapshot = ReadLog(path);
  if (!snapshot.ok()) return snapshot.status();
  const bool is_pickle = absl::EndsWith(to, ".pickle") || absl::EndsWith(to, ".pkl");
  return WriteFile(to, is_pickle ? formats::WriteTorchSnapshot(*snapshot) : trace::Encode(*snapshot));
}

namespace {

namespace fs = std::filesystem;

absl::Status Copy(const std::string& from, const fs::path& to) {
  std::error_code error;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write ", to.string(), ": ", error.message()));
}

// A native program's log lives in the form that every command reads.
absl::Status Keep(const ProcessRun& run, const std::string& from, const fs::path& to) {
  return run.native.has_value() ? KeepNativeLog(from, to.string()) : Copy(from, to);
}

struct KeptFile {
  const ProcessRun* run;
  std::string from;
  std::string name;  // in a folder
};

std::vector<KeptFile> FilesOf(const RunResults& results) {
  std::vector<KeptFile> out;
  for (const ProcessRun& run : results.runs) {
    const std::string who = run.rank.has_value() ? absl::StrCat("rank", *run.rank) : absl::StrCat(run.pid);
    if (!run.history.empty()) out.push_back({&run, run.history, absl::StrCat("history-", who, EndingOf(run))});
    for (std::size_t i = 0; i < run.failures.size(); ++i) {
      out.push_back({&run, run.failures[i], absl::StrCat("oom-", who, "-", i + 1, ".pickle")});
    }
  }
  return out;
}

}  // namespace

const char* EndingOf(const ProcessRun& run) { return run.native.has_value() ? ".ashlar" : ".pickle"; }

absl::StatusOr<std::string> KeepResults(const RunResults& results, const std::string& to) {
  std::vector<const ProcessRun*> recorded;
  for (const ProcessRun& run : results.runs) {
    if (!run.history.empty() || !run.failures.empty()) recorded.push_back(&run);
  }
  if (recorded.empty()) {
    return absl::NotFoundError(
        "there is no history to keep: no process had PyTorch allocate on a device, or allocated device memory itself "
        "in a way that is recorded (ashlar guide record)");
  }
  std::error_code error;
  if (recorded.size() == 1 && !absl::EndsWith(to, "/") && !fs::is_directory(to, error)) {
    const ProcessRun& run = *recorded.front();
    if (absl::Status status = Keep(run, run.history.empty() ? run.failures.back() : run.history, to); !status.ok()) {
      return status;
    }
    return to;
  }
  fs::create_directories(to, error);
  if (error) return absl::UnavailableError(absl::StrCat("cannot make the folder ", to, ": ", error.message()));
  for (const KeptFile& file : FilesOf(results)) {
    if (absl::Status status = Keep(*file.run, file.from, fs::path(to) / file.name); !status.ok()) return status;
  }
  return to;
}

}  // namespace ashlar::cli
