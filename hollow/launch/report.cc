#include "hollow/launch/report.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "hollow/books/file_limit.h"
#include "hollow/launch/process.h"

namespace ashlar::hollow {
namespace {

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", static_cast<unsigned>(c));
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::vector<std::string> CommandLine() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> out;
  for (std::string word; std::getline(in, word, '\0');) out.push_back(word);
  return out;
}

void WriteDevices(Process& process, std::ostream& out) {
  out << "\"devices\":[";
  const char* comma = "";
  for (int i = 0; i < process.settings.devices; ++i) {
    DeviceBooks& device = *process.devices[i];
    if (!device.has_context() && device.out_of_memory_count() == 0) continue;
    out << comma << "{\"ordinal\":" << i << ",\"total_bytes\":" << device.total_bytes()
        << ",\"context_bytes\":" << device.context_bytes() << ",\"peak_bytes\":" << process.shared.Peak(i)
        << ",\"used_at_end_bytes\":" << device.UsedBytes() << ",\"out_of_memory\":" << device.out_of_memory_count()
        << "}";
    comma = ",";
  }
  out << "]";
}

void WriteTally(const Tally& tally, std::ostream& out) {
  out << ",\"launches\":" << tally.launches() << ",\"refused\":[";
  const char* comma = "";
  for (const auto& [name, count] : tally.refused()) {
    out << comma << "{\"name\":" << Quoted(name) << ",\"count\":" << count << "}";
    comma = ",";
  }
  out << "],\"made_up\":[";
  comma = "";
  std::uint64_t total = 0;
  for (const auto& [line, made_up] : tally.made_up()) {
    out << comma << "{\"line\":" << Quoted(line) << ",\"count\":" << made_up.count << ",\"bytes\":" << made_up.bytes
        << "}";
    comma = ",";
    total += made_up.count;
  }
  out << "],\"made_up_total\":" << total;
}

void WriteReport(Process& process) {
  const QuietFileLimit quiet;
  const std::vector<std::string> words = CommandLine();
  std::ostringstream out;
  out << "{\"pid\":" << getpid() << ",\"program\":" << Quoted(words.empty() ? "" : words[0]) << ",\"args\":[";
  for (std::size_t i = 1; i < words.size(); ++i) out << (i > 1 ? "," : "") << Quoted(words[i]);
  out << "],";
  WriteDevices(process, out);
  out << ",\"pinned_peak_bytes\":" << process.allocations.pinned_peak_bytes();
  out << ",\"found_done\":" << process.streams.found_done();
  WriteTally(process.tally, out);
  out << ",\"calls_lost\":" << process.calls.lost() << "}\n";
  const std::string name = process.settings.run_folder + "/process-" + std::to_string(getpid()) + ".json";
  std::ofstream(name + ".part") << out.str();
  std::rename((name + ".part").c_str(), name.c_str());
}

bool UsedADevice(const Process& process) {
  for (const auto& device : process.devices) {
    if (device->has_context() || device->out_of_memory_count() > 0) return true;
  }
  return process.tally.launches() > 0 || !process.tally.refused().empty();
}

}  // namespace

void EndProcess() {
  if (!HasProcess()) return;
  Process& process = TheProcess();
  static std::atomic<int> ended_pid = 0;
  if (ended_pid.exchange(getpid()) == getpid() || process.is_orphan) return;
  const std::unique_lock<std::mutex> lock(process.mutex, std::try_to_lock);  // another thread may hold it for good
  if (!process.settings.run_folder.empty() && UsedADevice(process)) WriteReport(process);
  process.shared.Leave();
}

__attribute__((destructor)) static void AtExit() { EndProcess(); }
__attribute__((constructor)) static void AtStart() { at_quick_exit(EndProcess); }

}  // namespace ashlar::hollow

extern "C" {

// What os._exit and multiprocessing's children call.
__attribute__((visibility("default"), noreturn)) void _exit(int status) {
  ashlar::hollow::EndProcess();
  syscall(SYS_exit_group, status);
  __builtin_unreachable();
}

// The same by the name that C has for it; quick_exit ends in the C library's own.
__attribute__((visibility("default"), noreturn)) void _Exit(int status) noexcept { _exit(status); }

}  // extern "C"
