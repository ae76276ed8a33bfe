#include "analyzer/cli/fleet_module.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"

namespace ashlar::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kMpiModule[] = "libashlar_mpi.so";
constexpr char kMpiVariable[] = "ASHLAR_MPI_LIB";

std::vector<fs::path> ModulePlaces() {
  std::error_code error;
  if (const char* given = std::getenv(kMpiVariable); given != nullptr && *given != '\0') {
    return {fs::absolute(given, error)};
  }
  const fs::path own = fs::read_symlink("/proc/self/exe", error).parent_path();
  return {own / "../lib/ashlar" / kMpiModule, own / "../analyzer/fleet/mpi" / kMpiModule};
}

}  // namespace

absl::StatusOr<std::string> FindMpiModule() {
  const std::vector<fs::path> places = ModulePlaces();
  for (const fs::path& place : places) {
    std::error_code error;
    if (fs::exists(place, error)) return place.lexically_normal().string();
  }
  return absl::NotFoundError(absl::StrCat("the MPI module is not here: looked for ",
                                          places.front().lexically_normal().string(),
                                          "; build ashlar where MPI is installed, set ", kMpiVariable,
                                          " to the module, or run one process with --mpi off"));
}

}  // namespace ashlar::cli
