// Reads what the processes of a run left in its folder: process-PID.json of the preloaded library, info-PID.json,
// jax-PID.json, vllm-PID.json, sglang-PID.json, history-PID.pickle and oom-PID-K.pickle of the Python part,
// native-PID.log of the recorder, and the accounting that all share (docs/guide/dry-run.md, "The run folder").
//
//   RunResults results = ReadResults("/dev/shm/ashlar-f00");
//   results.runs.front().books->devices.front().peak_bytes;
//
// What a file does not say is empty or 0. Sizes are bytes.
#ifndef ASHLAR_LAUNCHER_RESULTS_H_
#define ASHLAR_LAUNCHER_RESULTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "analyzer/libraries/library_memory.h"
#include "analyzer/libraries/nccl_memory.h"
#include "launcher/cudnn_workspaces.h"
#include "launcher/value_flags.h"

namespace ashlar::cli {

struct LibraryBytes {
  std::string name;  // "libnccl.so.2"; empty: not known
  std::uint64_t bytes = 0;
};

// A device as the accounting has it: of all processes that used it.
struct AccountedDevice {
  int ordinal = 0;
  std::uint64_t total_bytes = 0;
  std::uint64_t context_bytes = 0;  // of each process
  std::uint64_t peak_bytes = 0;     // contexts included
  std::uint64_t used_at_end_bytes = 0;
  std::uint64_t out_of_memory = 0;  // calls that found no memory
  // By the library that called: what this process had asked for when that was most. Most bytes first.
  std::vector<LibraryBytes> libraries = {};
};

struct RefusedCall {
  std::string name;
  std::uint64_t count = 0;
};

struct MadeUpValue {
  std::string line;  // "train.py:12 step"
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

// What a process had of NVIDIA's libraries that take memory for themselves, when that was most.
struct CublasHandles {
  int device = 0;
  int handles = 0;
};
struct DeviceCommunicator {
  int device = 0;
  libraries::CommunicatorUse communicator;
};
struct LibraryCalls {
  bool has_cudnn = false;
  CudnnPlans cudnn_plans = {};
  libraries::CudnnUse cudnn = {};  // what was asked about them
  std::vector<CublasHandles> cublas = {};
  int nccl_version = 0;
  std::map<std::string, std::string> nccl_settings = {};
  std::vector<DeviceCommunicator> communicators = {};
};

struct ProcessAccounting {
  std::string program;
  std::vector<std::string> arguments;
  std::vector<AccountedDevice> devices;
  std::uint64_t pinned_peak_bytes = 0;
  std::uint64_t launches = 0;
  std::uint64_t found_done = 0;  // queries of events that were answered so though nothing had waited for the work
  std::vector<RefusedCall> refused;
  std::vector<MadeUpValue> made_up;
  std::uint64_t made_up_total = 0;
  std::uint64_t calls_lost = 0;  // that --calls could not write
  LibraryCalls library_calls;
};

struct TorchDevice {
  int index = 0;
  std::uint64_t peak_allocated_bytes = 0;
  std::uint64_t peak_reserved_bytes = 0;
  std::uint64_t num_ooms = 0;
  std::uint64_t num_alloc_retries = 0;
};

struct TorchInfo {
  std::vector<std::string> arguments;
  std::string version;
  std::vector<std::string> archs;  // what it has kernels for: "sm_80"; empty: not known
  std::vector<TorchDevice> devices;
  std::optional<std::int64_t> exit_code;
  std::string exception;              // that ended it
  std::string not_kept;               // why there is no history of its allocator; empty: there is
  std::uint64_t failures = 0;         // out-of-memory errors that were seen
  std::uint64_t routing_choices = 0;  // of routers of experts, that --routing gave
  std::vector<GivenValue> given_values;
  std::vector<ReadingLine> reading_lines;  // where values were given
};

// What JAX says of the memory that it reserved at its start.
struct JaxDevice {
  int index = 0;
  std::uint64_t peak_in_use_bytes = 0;
  std::uint64_t reserved_bytes = 0;
  std::uint64_t limit_bytes = 0;
};

struct JaxInfo {
  std::vector<JaxDevice> devices;
  std::string out_of_memory;  // the error that ended the program; empty: none of memory did
};

// What vLLM measured of itself before it made its KV cache.
struct VllmInfo {
  std::uint64_t weights_bytes = 0;
  std::uint64_t activations_bytes = 0;  // of a step, at most
  std::uint64_t graphs_bytes = 0;       // CUDA graphs, as it estimates them
  std::uint64_t kv_cache_bytes = 0;
  std::uint64_t requested_bytes = 0;  // of the device, by its gpu_memory_utilization
  std::uint64_t tokens = 0;           // that the cache has room for; 0: not told
  std::uint64_t longest_request = 0;  // tokens of a request at most: max_model_len
  std::uint64_t most_requests = 0;    // at once: max_num_seqs
};

// What SGLang counted of itself once it had its KV cache.
struct SglangInfo {
  std::uint64_t weights_bytes = 0;
  std::uint64_t kv_cache_bytes = 0;
  std::uint64_t requested_bytes = 0;  // of the device, by its mem_fraction_static: weights and cache
  std::uint64_t tokens = 0;           // that the cache has room for
};

// What the log of a program without PyTorch comes to.
struct NativeCalls {
  std::uint64_t allocations = 0;
  std::uint64_t out_of_memory = 0;
  std::uint64_t peak_bytes = 0;  // of the device that it held most of
  bool has_torch = false;        // PyTorch was loaded: calls of its allocator are among these
};

// One process.
struct ProcessRun {
  std::int64_t pid = 0;
  std::optional<int> rank, local_rank, world_size;
  std::optional<ProcessAccounting> books;
  std::optional<TorchInfo> torch;
  std::optional<JaxInfo> jax;
  std::optional<VllmInfo> vllm;
  std::optional<SglangInfo> sglang;
  std::optional<NativeCalls> native;  // where `history` is a log of device calls
  std::string history;                // a path; empty: none
  std::string device_log;             // of its calls on device memory, beside PyTorch's history; empty: none
  std::vector<std::string> failures;  // paths, in order
  // Where it died and closed no accounting: the devices that it held memory of then, by the accounting that all share.
  std::vector<AccountedDevice> left_held;

  bool UsedADevice() const;
  bool DiedEarly() const { return !left_held.empty(); }  // killed, aborted, or gone past what runs at an exit
  bool HasCallsToTell() const;                           // refused ones, or made-up values
  std::uint64_t PeakBytes() const;    // of the device that held most; of the allocator where there is no accounting
  std::uint64_t OutOfMemory() const;  // requests of a program that failed
  std::string Name() const;           // "rank 0", else "process 4242"
};

struct RunResults {
  std::vector<ProcessRun> runs;         // that left something to tell, by rank, then by number
  std::vector<std::string> unreadable;  // files, and why
  std::uint64_t peak_bytes = 0;  // of the device that held most, by the accounting that all share; 0: there are none
};

// Of all processes: what their plans of cuDNN had, or would ask for.
libraries::CudnnUse CudnnOf(const RunResults& results);

// Why allocations of a process are not in its history, a line each.
std::vector<std::string> NotKept(const RunResults& results);

RunResults ReadResults(const std::string& folder);

// The log that libashlar_record.so wrote of a native program: what it comes to, and how it is kept.

absl::StatusOr<NativeCalls> ReadNativeCalls(const std::string& path);

// Writes the log's trace: as a snapshot where `to` ends in .pickle or .pkl, else as a recording.
absl::Status KeepNativeLog(const std::string& path, const std::string& to);

// Keeps what a run left: one process's history as a file, of several, or where a folder is asked for, all files in it.
//
//   absl::StatusOr<std::string> kept = KeepResults(results, "run.pickle");   // "run.pickle"
//
// In a folder: history-rank0.pickle, oom-rank0-1.pickle, and of processes without a rank history-4242.pickle;
// of native programs history-4242.ashlar.

// Where it now lies. NotFound where the run left no history; Unavailable, with the file, where it cannot be written.
// One process's file is its history to the end; where it has none, that up to its last out-of-memory error. A name that
// ends in / or is that of a folder asks for a folder.
// A native program's log is kept as a recording; as a snapshot where the name ends in .pickle or .pkl.
absl::StatusOr<std::string> KeepResults(const RunResults& results, const std::string& to);

// Of the file that a process's history is usually kept in: ".pickle", of native programs ".ashlar".
const char* EndingOf(const ProcessRun& run);

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_RESULTS_H_
