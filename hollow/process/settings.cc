#include "hollow/process/settings.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <sstream>

#include "hollow/model/shared_machine.h"

namespace ashlar::hollow {
namespace {

using Read = std::function<bool(const std::string&)>;

bool ReadNumber(const std::string& text, std::uint64_t* out) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos || text.size() > 19) return false;
  *out = std::strtoull(text.c_str(), nullptr, 10);
  return true;
}

Read Into(std::uint64_t* field) {
  return [field](const std::string& text) { return ReadNumber(text, field); };
}

Read Into(int* field) {
  return [field](const std::string& text) {
    std::uint64_t number = 0;
    if (!ReadNumber(text, &number) || number > std::numeric_limits<int>::max()) return false;
    *field = static_cast<int>(number);
    return true;
  };
}

Read IntoValues(Settings* settings) {
  return [settings](const std::string& text) {
    const std::string random = "random:";
    settings->values = text == "ones" ? Values::kOnes : Values::kZeros;
    if (text == "zeros" || text == "ones") return true;
    settings->values = Values::kRandom;
    return text.starts_with(random) && ReadNumber(text.substr(random.size()), &settings->random_seed);
  };
}

Read Into(device::AddressOrder* order) {
  return [order](const std::string& text) {
    const std::optional<device::AddressOrder> named = device::AddressOrderNamed(text);
    if (named.has_value()) *order = *named;
    return named.has_value();
  };
}

std::map<std::string, Read> Readers(Settings* settings) {
  Settings& s = *settings;
  return {{"devices", Into(&s.devices)},
          {"name", [&s](const std::string& text) { return !(s.name = text).empty() && text.size() < 256; }},
          {"total_bytes", Into(&s.total_bytes)},
          {"context_bytes", Into(&s.context_bytes)},
          {"in_use_bytes", Into(&s.in_use_bytes)},
          {"compute_major", Into(&s.compute_major)},
          {"compute_minor", Into(&s.compute_minor)},
          {"sm_count", Into(&s.sm_count)},
          {"l2_bytes", Into(&s.l2_bytes)},
          {"shared_per_block_optin", Into(&s.shared_per_block_optin)},
          {"shared_per_sm", Into(&s.shared_per_sm)},
          {"threads_per_sm", Into(&s.threads_per_sm)},
          {"clock_khz", Into(&s.clock_khz)},
          {"memory_clock_khz", Into(&s.memory_clock_khz)},
          {"memory_bus_bits", Into(&s.memory_bus_bits)},
          {"driver_version", Into(&s.driver_version)},
          {"addresses", Into(&s.addresses)},
          {"lag_queries", Into(&s.lag_queries)},
          {"lag_ns", Into(&s.lag_ns)},
          {"real_bytes", Into(&s.real_bytes)},
          {"values", IntoValues(&s)},
          {"fail_call", Into(&s.fail_call)},
          {"fail_request", Into(&s.fail_request)},
          {"fail_after", Into(&s.fail_after)}};
}

[[noreturn]] void Refuse(const std::string& file, const std::string& what) {
  std::fprintf(stderr, "ashlar: %s: %s\n", file.c_str(), what.c_str());
  std::_Exit(3);
}

constexpr char kMachineFile[] = "/machine";

std::string FolderOfRun() {
  const char* folder = std::getenv("ASHLAR_HOLLOW_RUN");
  return folder == nullptr ? "" : folder;
}

// By the system's calls alone, as every program of a run does it when it starts.
std::optional<std::string> ReadWholeFile(const std::string& file) {
  const int from = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (from < 0) return std::nullopt;
  std::string out;
  char part[4096];
  ssize_t got = 0;
  while ((got = read(from, part, sizeof(part))) > 0) out.append(part, static_cast<std::size_t>(got));
  close(from);
  return got < 0 ? std::nullopt : std::optional(out);
}

// The run that the process was started in. Before it uses a device a program may give up its user's rights, close its
// files, or live on as a daemon when the run and its folder are gone.
struct StartOfProcess {
  std::string folder;
  std::optional<std::string> text;
};

StartOfProcess& TheStart() {
  static auto* start = new StartOfProcess;
  return *start;
}

// What the process becomes may not be able to read the folder any more: "FOLDER\n", and the file's text.
constexpr char kHandedOn[] = "ASHLAR_HOLLOW_MACHINE";

std::optional<std::string> HandedOnTo(const std::string& folder) {
  const char* handed_on = std::getenv(kHandedOn);
  const std::string text = handed_on == nullptr ? "" : handed_on;
  if (!text.starts_with(folder + "\n")) return std::nullopt;
  return text.substr(folder.size() + 1);
}

__attribute__((constructor)) void ReadAtStart() {
  const std::string folder = FolderOfRun();
  if (folder.empty()) return;
  TheStart() = {folder, ReadWholeFile(folder + kMachineFile)};
  if (TheStart().text.has_value()) {
    SharedMachine::MapAtStart(folder);
    setenv(kHandedOn, (folder + "\n" + *TheStart().text).c_str(), 1);
  } else {
    TheStart().text = HandedOnTo(folder);
  }
}

}  // namespace

Settings ReadSettings() {
  Settings settings;
  settings.run_folder = FolderOfRun();
  if (settings.run_folder.empty()) return settings;
  const std::string file = settings.run_folder + kMachineFile;
  const bool is_at_start = TheStart().folder == settings.run_folder && TheStart().text.has_value();
  const std::optional<std::string> text = is_at_start ? TheStart().text : ReadWholeFile(file);
  if (!text.has_value()) Refuse(file, "cannot be read: start the program by `ashlar dry-run`");
  std::istringstream in(*text);
  const std::map<std::string, Read> readers = Readers(&settings);
  for (std::string line; std::getline(in, line);) {
    const std::size_t equals = line.find('=');
    const auto reader = readers.find(line.substr(0, equals));
    if (equals == std::string::npos || reader == readers.end()) Refuse(file, "no such setting: " + line);
    if (!reader->second(line.substr(equals + 1))) Refuse(file, "no such value: " + line);
  }
  if (settings.devices < 1 || settings.devices > 64) Refuse(file, "devices must be 1 to 64");
  return settings;
}

}  // namespace ashlar::hollow
