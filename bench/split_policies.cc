// What settings of splitting and of segments cost on the requests of real programs. Each workload of kernels/workloads
// runs once in simulation; what it asks of its allocator is then asked of each setting of ours, which decide as PyTorch
// does, and of CUB's caching allocator, over devices that cost nothing; where there is a GPU also of cudaMalloc and
// cudaMallocAsync. bench/split_policies_torch.py asks PyTorch's own.
//
//   split_policies [--brief] [--svg FILE] [--requests FOLDER]
//
// Prints a table a workload: peak of requested bytes / peak reserved (utilisation), peak reserved, calls of the driver
// that obtain or return memory, time of a request. Every answer is checked: all requests are served, and no block
// overlaps a live one. --brief: small models, which a test runs. --requests: writes them too, a file a workload, for
// the script. Exit code 1: a wrong answer.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/device/sim_device.h"
#include "allocator/trace/sink.h"
#include "kernels/workloads/workload.h"
#ifdef ASHLAR_BENCH_CUB
#include "bench/rival_cub.h"
#endif
#ifdef ASHLAR_BENCH_GPU
#include "bench/rival_gpu.h"
#endif

namespace ashlar::bench {
namespace {

constexpr std::uint64_t kCapacityBytes = 80 * kGiB;
constexpr int kTimedPasses = 7;

[[noreturn]] void Wrong(const std::string& what) {
  std::fprintf(stderr, "split_policies: wrong answer: %s\n", what.c_str());
  std::exit(1);
}

struct Program {
  const char* workload;
  std::vector<std::pair<const char*, const char*>> flags;
};

std::vector<Program> Programs(bool is_brief) {
  if (is_brief) {
    return {{"gpt_training", {{"model", "tiny"}, {"lengths", "uniform:16-256"}, {"batch", "8"}}},
            {"embedding_serving", {{"rows", "50"}, {"width", "64"}, {"requests", "200"}}}};
  }
  return {{"bert_training", {{"model", "bert-base"}, {"lengths", "skewed:16-512"}, {"batch", "8"}, {"steps", "20"}}},
          {"gpt_training", {{"model", "gpt2"}, {"lengths", "uniform:32-512"}, {"batch", "4"}, {"steps", "20"}}},
          {"tabformer_training", {{"batch", "16"}, {"steps", "10"}}},
          {"attention_inference", {}},
          {"embedding_serving", {}}};
}

struct Request {
  std::uint32_t id;
  std::uint64_t bytes;  // 0: a free
  Stream stream;
};

// What a workload asks, from its first request on; blocks may be live at the end.
class Recorded final : public trace::EventSink {
 public:
  explicit Recorded(const Program& program) : name_(program.workload) {
    const std::unique_ptr<kernels::Runtime> runtime =
        *kernels::Runtime::Make({.capacity_bytes = kCapacityBytes,
                                 .framework = *kernels::FrameworkOf("2.6"),
                                 .gpu = *kernels::GpuNamed("A100")});
    const kernels::Workload& workload = *kernels::FindWorkload(program.workload);
    kernels::Flags flags(workload.flags);
    for (const auto& [flag, value] : program.flags) flags.Set(flag, value);
    runtime->allocator().SetSink(this);
    if (const absl::Status status = workload.run(*runtime, flags, [](const kernels::Progress&) {}); !status.ok()) {
      Wrong(absl::StrCat(name_, ": ", status.message()));
    }
    runtime->allocator().SetSink(nullptr);
    live_.clear();
  }

  void OnEvent(const trace::Event& event, std::uint64_t) override {
    if (event.action == trace::Action::kAlloc) {
      live_[event.address] = {allocations_, event.size_bytes};
      requests_.push_back({allocations_++, event.size_bytes, event.stream});
      live_bytes_ += event.size_bytes;
      peak_requested_bytes_ = std::max(peak_requested_bytes_, live_bytes_);
    } else if (event.action == trace::Action::kFreeRequested) {
      const auto it = live_.find(event.address);
      requests_.push_back({it->second.first, 0, event.stream});
      live_bytes_ -= it->second.second;
      live_.erase(it);
    }
  }

  const std::string& name() const { return name_; }
  const std::vector<Request>& requests() const { return requests_; }
  std::uint32_t allocations() const { return allocations_; }
  std::uint64_t peak_requested_bytes() const { return peak_requested_bytes_; }

 private:
  std::string name_;
  std::vector<Request> requests_;
  std::uint32_t allocations_ = 0;
  std::uint64_t live_bytes_ = 0;
  std::uint64_t peak_requested_bytes_ = 0;
  std::map<std::uint64_t, std::pair<std::uint32_t, std::uint64_t>> live_;
};

class Ours {
 public:
  explicit Ours(const char* conf) : allocator_(&device_, *policy::ParseConf(conf, policy::Compat::kTorch210)) {}
  std::uint64_t Allocate(std::uint64_t bytes, Stream stream) {
    const absl::StatusOr<std::uint64_t> address = allocator_.AllocateAddress(bytes, stream);
    return address.ok() ? *address : 0;
  }
  void Free(std::uint64_t address) { allocator_.FreeAddress(address); }
  std::uint64_t peak_reserved_bytes() const {
    return static_cast<std::uint64_t>(allocator_.stats().reserved_bytes.all().peak);
  }
  std::uint64_t driver_calls() const { return device_.calls().MemoryCalls(); }

 private:
  device::SimDevice device_{{.capacity_bytes = kCapacityBytes, .events_complete_immediately = true}};
  core::CachingAllocator allocator_;
};

struct Outcome {
  std::uint64_t peak_reserved_bytes = 0;
  std::optional<std::uint64_t> driver_calls = {};  // nothing: not known
  double ns_a_request = 0;
};

// Some want the stream too.
template <typename Subject>
void Free(Subject& subject, std::uint64_t address, Stream stream) {
  if constexpr (requires { subject.Free(address, stream); }) {
    subject.Free(address, stream);
  } else {
    subject.Free(address);
  }
}

// Frees the blocks that are live behind the last request.
template <typename Subject>
void FreeRest(Subject& subject, const Recorded& recorded, const std::vector<std::uint64_t>& addresses) {
  std::map<std::uint32_t, Stream> live;
  for (const Request& request : recorded.requests()) {
    if (request.bytes != 0) {
      live[request.id] = request.stream;
    } else {
      live.erase(request.id);
    }
  }
  for (const auto& [id, stream] : live) Free(subject, addresses[id], stream);
}

// Once with every block held against those that are live, then for the time, of which the shortest counts. `make` is
// told which of the two.
template <typename Make>
Outcome Serve(const Recorded& recorded, const std::string& name, const Make& make) {
  std::vector<std::uint64_t> addresses(recorded.allocations());
  Outcome out;
  {
    const auto subject = make(/*is_measured=*/true);
    std::map<std::uint64_t, std::uint64_t> live;  // begin -> end
    std::uint64_t served = 0;
    for (const Request& request : recorded.requests()) {
      std::uint64_t& address = addresses[request.id];
      if (request.bytes == 0) {
        live.erase(address);
        Free(*subject, address, request.stream);
        continue;
      }
      address = subject->Allocate(request.bytes, request.stream);
      if (address == 0) break;
      ++served;
      const auto next = live.lower_bound(address);
      const bool meets_next = next != live.end() && next->first < address + request.bytes;
      const bool meets_last = next != live.begin() && std::prev(next)->second > address;
      if (meets_next || meets_last) Wrong(absl::StrCat(recorded.name(), ", ", name, ": two live blocks overlap"));
      live[address] = address + request.bytes;
    }
    if (served != recorded.allocations()) {
      Wrong(absl::StrCat(recorded.name(), ", ", name, ": ", served, " of ", recorded.allocations(), " requests"));
    }
    out.peak_reserved_bytes = subject->peak_reserved_bytes();
    out.driver_calls = subject->driver_calls();
    FreeRest(*subject, recorded, addresses);
  }
  if (out.peak_reserved_bytes < recorded.peak_requested_bytes()) {
    Wrong(absl::StrCat(recorded.name(), ", ", name, ": reserved less than was requested"));
  }
  for (int pass = 0; pass < kTimedPasses; ++pass) {
    const auto subject = make(/*is_measured=*/false);
    const auto begin = std::chrono::steady_clock::now();
    for (const Request& request : recorded.requests()) {
      if (request.bytes == 0) {
        Free(*subject, addresses[request.id], request.stream);
      } else {
        addresses[request.id] = subject->Allocate(request.bytes, request.stream);
      }
    }
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    const double ns = time.count() / static_cast<double>(recorded.requests().size());
    out.ns_a_request = pass == 0 ? ns : std::min(out.ns_a_request, ns);
    FreeRest(*subject, recorded, addresses);
  }
  return out;
}

struct Row {
  std::string name;
  bool is_ours;
  Outcome outcome;
};

constexpr const char* kSettings[] = {"",
                                     "max_split_size_mb:32",
                                     "max_split_size_mb:64",
                                     "max_split_size_mb:128",
                                     "max_split_size_mb:256",
                                     "max_split_size_mb:512",
                                     "large_segment_size_mb:64",
                                     "large_segment_size_mb:256",
                                     "large_segment_size_mb:64,max_split_size_mb:256",
                                     "roundup_power2_divisions:4",
                                     "roundup_power2_divisions:4,max_split_size_mb:256",
                                     "expandable_segments:True",
                                     "expandable_segments:True,large_segment_size_mb:64"};

std::vector<Row> RowsOf(const Recorded& recorded, [[maybe_unused]] bool has_gpu) {
  std::vector<Row> out;
  for (const char* conf : kSettings) {
    const std::string name = *conf == '\0' ? "PyTorch's defaults" : conf;
    out.push_back({name, true, Serve(recorded, name, [&](bool) { return std::make_unique<Ours>(conf); })});
  }
#ifdef ASHLAR_BENCH_CUB
  // Bins of powers of two up to 2 GiB, kept for good; and CUB's default object, which keeps 6 MB.
  const std::pair<const char*, RivalCubOptions> kinds[] = {
      {"CUB, powers of 2", {.capacity_bytes = kCapacityBytes}},
      {"CUB, its defaults",
       {.growth = 8, .min_bin = 3, .max_bin = 7, .most_cached_bytes = 6'291'455, .capacity_bytes = kCapacityBytes}}};
  for (const auto& kind : kinds) {
    const auto make = [&](bool) { return std::make_unique<RivalCub>(kind.second); };
    out.push_back({kind.first, false, Serve(recorded, kind.first, make)});
  }
#endif
#ifdef ASHLAR_BENCH_GPU
  const std::pair<const char*, GpuAllocator> drivers[] = {{"cudaMalloc", GpuAllocator::kMalloc},
                                                          {"cudaMallocAsync", GpuAllocator::kPool}};
  if (has_gpu && !GpuHolds(2 * recorded.peak_requested_bytes())) {
    std::printf("\ncudaMalloc, cudaMallocAsync: skipped, the GPU has too little free for %s\n",
                recorded.name().c_str());
  } else if (has_gpu) {
    for (const auto& driver : drivers) {
      const auto make = [&](bool is_measured) { return std::make_unique<RivalGpu>(driver.second, is_measured); };
      out.push_back({driver.first, false, Serve(recorded, driver.first, make)});
    }
  }
#endif
  return out;
}

double Utilisation(const Recorded& recorded, const Row& row) {
  return static_cast<double>(recorded.peak_requested_bytes()) / static_cast<double>(row.outcome.peak_reserved_bytes);
}

void PrintTable(const Recorded& recorded, const std::vector<Row>& rows) {
  std::printf("\n%s: %zu requests and frees, at most %s requested\n\n", recorded.name().c_str(),
              recorded.requests().size(), FormatBytes(recorded.peak_requested_bytes()).c_str());
  std::printf("| setting | utilisation | peak reserved | driver calls | ns a request |\n|---|---|---|---|---|\n");
  for (const Row& row : rows) {
    const std::optional<std::uint64_t> calls = row.outcome.driver_calls;
    std::printf("| %s | %.1f %% | %s | %s | %.0f |\n", row.name.c_str(), 100 * Utilisation(recorded, row),
                FormatBytes(row.outcome.peak_reserved_bytes).c_str(),
                calls.has_value() ? absl::StrCat(*calls).c_str() : "unknown", row.outcome.ns_a_request);
  }
}

// Bars of utilisation, a panel a workload.
class Plot {
 public:
  void Add(const Recorded& recorded, const std::vector<Row>& rows) {
    y_ += 34;
    Text(16, y_, "start", 15, "#1b1b1b", absl::StrCat(recorded.name(), ": peak requested / peak reserved"));
    y_ += 10;
    for (const Row& row : rows) {
      const double share = Utilisation(recorded, row);
      y_ += 18;
      Text(kLeft - 8, y_, "end", 12, "#444444", row.name);
      absl::StrAppendFormat(&body_, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"13\" fill=\"%s\"/>\n", kLeft,
                            y_ - 11, share * kWidth, row.is_ours ? "#5b8fc9" : "#e0a458");
      Text(kLeft + static_cast<int>(share * kWidth) + 6, y_, "start", 12, "#1b1b1b",
           absl::StrFormat("%.1f %%, %s", 100 * share, FormatBytes(row.outcome.peak_reserved_bytes)));
    }
  }
  std::string Svg() const {
    return absl::StrFormat(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\">\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n%s</svg>\n",
        kLeft + kWidth + 160, y_ + 20, body_);
  }

 private:
  static constexpr int kLeft = 370, kWidth = 400;
  void Text(int x, int y, const char* anchor, int size, const char* color, const std::string& text) {
    absl::StrAppendFormat(&body_, "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\" font-size=\"%d\" fill=\"%s\">%s</text>\n",
                          x, y, anchor, size, color, text);
  }
  int y_ = 0;
  std::string body_;
};

// One line where there is none.
bool HasGpu() {
#ifdef ASHLAR_BENCH_GPU
  const absl::Status found = FindGpu();
  if (!found.ok()) {
    std::printf("cudaMalloc, cudaMallocAsync: skipped, there is no GPU here: %s\n",
                std::string(found.message()).c_str());
  }
  return found.ok();
#else
  std::printf("cudaMalloc, cudaMallocAsync: skipped, no CUDA toolkit was found\n");
  return false;
#endif
}

bool WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) std::fprintf(stderr, "split_policies: cannot write %s\n", path.c_str());
  return static_cast<bool>(file);
}

// "a ID BYTES STREAM" or "f ID" a line.
std::string RequestsText(const Recorded& recorded) {
  std::string out;
  for (const Request& request : recorded.requests()) {
    if (request.bytes == 0) {
      absl::StrAppend(&out, "f ", request.id, "\n");
    } else {
      absl::StrAppend(&out, "a ", request.id, " ", request.bytes, " ", Handle(request.stream), "\n");
    }
  }
  return out;
}

int Main(int argc, char** argv) {
  bool is_brief = false;
  std::string svg, folder;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--brief") {
      is_brief = true;
    } else if (argument == "--svg" && i + 1 < argc) {
      svg = argv[++i];
    } else if (argument == "--requests" && i + 1 < argc) {
      folder = argv[++i];
    } else {
      std::fprintf(stderr, "split_policies: '%s' is not --brief, --svg FILE or --requests FOLDER\n", argument.c_str());
      return 2;
    }
  }
#ifndef ASHLAR_BENCH_CUB
  std::printf("CUB: skipped, no CUDA toolkit was found\n");
#endif
  const bool has_gpu = HasGpu();
  Plot plot;
  for (const Program& program : Programs(is_brief)) {
    const Recorded recorded(program);
    if (!folder.empty() &&
        !WriteFile(absl::StrCat(folder, "/", recorded.name(), ".requests"), RequestsText(recorded))) {
      return 1;
    }
    const std::vector<Row> rows = RowsOf(recorded, has_gpu);
    PrintTable(recorded, rows);
    plot.Add(recorded, rows);
  }
  if (svg.empty()) return 0;
  return WriteFile(svg, plot.Svg()) ? 0 : 1;
}

}  // namespace
}  // namespace ashlar::bench

int main(int argc, char** argv) { return ashlar::bench::Main(argc, argv); }
