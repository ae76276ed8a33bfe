// The settings of a hollow machine: written by `ashlar dry-run`, read by the preloaded library of each process.
//
// The file `machine` in the folder that ASHLAR_HOLLOW_RUN names is read when the process starts. It has a line
// `key=value` for each field that is not as below. What the process becomes, and what it starts, has the text in its
// environment too, as it may not be able to read the file. Without a folder, the fields are as below. An unknown key or
// a value that cannot be read is one line on stderr, and the process ends with exit code 3.
#ifndef ASHLAR_HOLLOW_PROCESS_SETTINGS_H_
#define ASHLAR_HOLLOW_PROCESS_SETTINGS_H_

#include <cstdint>
#include <string>

#include "allocator/device/address_space.h"

namespace ashlar::hollow {

enum class Values : std::uint8_t { kZeros, kOnes, kRandom };

struct Settings {
  std::string run_folder;  // where reports and what processes share lie; empty: nowhere

  int devices = 1;
  // One device, all are alike. The defaults are an A100 of 80 GB.
  std::string name = "NVIDIA A100-SXM4-80GB";
  std::uint64_t total_bytes = std::uint64_t{81'152} << 20;  // as cudaMemGetInfo gives it
  std::uint64_t context_bytes = std::uint64_t{409} << 20;   // of each process that uses the device
  std::uint64_t in_use_bytes = 0;                           // beside the programs of the run
  int compute_major = 8;
  int compute_minor = 0;
  int sm_count = 108;
  std::uint64_t l2_bytes = std::uint64_t{40} << 20;
  std::uint64_t shared_per_block_optin = 166'912;
  std::uint64_t shared_per_sm = 167'936;
  int threads_per_sm = 2048;
  int clock_khz = 1'410'000;
  int memory_clock_khz = 1'593'000;
  int memory_bus_bits = 5120;

  int driver_version = 13'030;                                        // cudaDriverGetVersion: at least every runtime's
  device::AddressOrder addresses = device::AddressOrder::kAscending;  // where cudaMalloc's memory lies
  std::uint64_t lag_queries = 0;       // an event is done at this query of it; 0: at once
  std::uint64_t lag_ns = 0;            // of simulated time that each piece of work takes; 0: none
  std::uint64_t real_bytes = 1 << 20;  // copies and fills up to this are real
  Values values = Values::kZeros;      // what a read of unknown bytes gives
  std::uint64_t random_seed = 0;       // with Values::kRandom
  std::uint64_t fail_call = 0;         // the n-th call that asks for memory fails; 0: none
  std::uint64_t fail_request = 0;      // the same, and its repeats
  std::uint64_t fail_after = 0;        // calls fail once a device has this many bytes in use; 0: never
};

// Ends the process with one line where what it reads is wrong.
Settings ReadSettings();

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_PROCESS_SETTINGS_H_
