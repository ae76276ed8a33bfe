#include "hollow/launch/settings.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <optional>

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

}  // namespace

Settings ReadSettings() {
  Settings settings;
  const char* folder = std::getenv("ASHLAR_HOLLOW_RUN");
  if (folder == nullptr || *folder == '\0') return settings;
  settings.run_folder = folder;
  const std::string file = settings.run_folder + "/machine";
  std::ifstream in(file);
  if (!in) Refuse(file, "cannot be read: start the program by `ashlar dry-run`");
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
