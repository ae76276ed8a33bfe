// What a program is given that runs over the hollow device.
//
//   launch.environment = HollowEnvironment({.conf = "expandable_segments:True"}, *FindHollowFiles(), folder.path());
#ifndef ASHLAR_LAUNCHER_HOLLOW_PROGRAM_H_
#define ASHLAR_LAUNCHER_HOLLOW_PROGRAM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "console/command_line.h"
#include "console/installed_files.h"
#include "launcher/cudnn_server.h"
#include "launcher/cudnn_workspaces.h"
#include "launcher/names_flags.h"

namespace ashlar::cli {

struct HollowSettings {
  std::optional<std::string> conf = {};
  std::optional<std::uint64_t> history = {};  // events at most
  NamesFlags names = {};
  std::string calls = {};                // a file
  std::string routing = {};              // how routers of experts choose: "balanced", "random:7", "worst"
  std::vector<std::string> values = {};  // what lines of the program read (value_flags.h)
  std::string workspaces = kNoWorkspaces;
  bool skip_init = false;
  bool reproducible = false;
};

// Those that every command over the hollow device has: not the history, the names, the calls and the routing.
void AddHollowFlags(Command& app, HollowSettings& settings);

// Beside and over our own.
std::map<std::string, std::string> HollowEnvironment(const HollowSettings& settings, const HollowFiles& files,
                                                     const std::string& folder);

// Under --workspaces cudnn, what answers the program and its runs while it lives; null without it. Make it before a
// SignalRelay. The folder is that of the environment.
absl::StatusOr<std::unique_ptr<CudnnServer>> ServeWorkspaces(const HollowSettings& settings, const std::string& folder);

// The resident memory of the largest of this process's children that have ended.
std::uint64_t LargestChildBytes();

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_HOLLOW_PROGRAM_H_
