#include "console/installed_files.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"

namespace ashlar::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kLibrary[] = "libashlar_hollow.so";
constexpr char kRecordLibrary[] = "libashlar_record.so";
constexpr char kAuditLibrary[] = "libashlar_audit.so";
constexpr char kServeLibrary[] = "libashlar_serve.so";
constexpr char kVariable[] = "ASHLAR_HOLLOW_LIB";

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

fs::path OwnFolder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

// Where the library may be, the surest place first.
std::vector<fs::path> LibraryPlaces() {
  if (const char* given = std::getenv(kVariable); given != nullptr && *given != '\0') {
    std::error_code error;
    return {fs::absolute(given, error)};
  }
  return {OwnFolder() / "../lib/ashlar" / kLibrary, OwnFolder() / "../hollow" / kLibrary};
}

fs::path FoundLibrary() {
  for (const fs::path& place : LibraryPlaces()) {
    if (Exists(place)) return place.lexically_normal();
  }
  return {};
}

std::string FoundBeside(const char* name) {
  for (const fs::path& place : LibraryPlaces()) {
    const fs::path library = place.parent_path() / name;
    if (Exists(library)) return library.lexically_normal().string();
  }
  return "";
}

absl::Status Missing(const fs::path& what) {
  return absl::NotFoundError(absl::StrCat("the hollow device is not complete: ", what.string(), " is missing; set ",
                                          kVariable, " to a ", kLibrary, " that has it beside it"));
}

}  // namespace

absl::StatusOr<std::string> FindPythonFolder() {
  const std::string found = FoundBeside("python/sitecustomize.py");
  if (!found.empty()) return fs::path(found).parent_path().string();
  const fs::path first = LibraryPlaces().front().parent_path() / "python";
  return absl::NotFoundError(absl::StrCat("the Python part is not here: looked for sitecustomize.py in ",
                                          first.lexically_normal().string(), "; set ", kVariable, " to a ", kLibrary,
                                          " with python/ beside it"));
}

std::string FindRecordLibrary() { return FoundBeside(kRecordLibrary); }

absl::StatusOr<std::string> FindServeLibrary() {
  std::string found = FoundBeside(kServeLibrary);
  if (!found.empty()) return found;
  return absl::NotFoundError(absl::StrCat("what serves is not here: looked for ", kServeLibrary, " in ",
                                          LibraryPlaces().front().parent_path().lexically_normal().string(),
                                          "; build the target ashlar_serve"));
}

std::string Preloaded(const std::string& first, const std::string& second) {
  return absl::StrCat(first, first.empty() || second.empty() ? "" : ":", second);
}

absl::StatusOr<HollowFiles> FindHollowFiles() {
  const fs::path library = FoundLibrary();
  if (library.empty()) {
    return absl::NotFoundError(absl::StrCat("the hollow device is not here: looked for ",
                                            LibraryPlaces().front().lexically_normal().string(),
                                            "; build the target ashlar_hollow, or set ", kVariable, " to the library"));
  }
  const fs::path drivers = library.parent_path() / "shims";
  for (const char* name : {"libcuda.so.1", "libnvidia-ml.so.1"}) {
    if (!Exists(drivers / name)) return Missing(drivers / name);
  }
  const absl::StatusOr<std::string> python = FindPythonFolder();
  if (!python.ok()) return python.status();
  return HollowFiles{library.string(), drivers.string(), *python, FoundBeside(kAuditLibrary)};
}

namespace {

constexpr char kMpiModule[] = "libashlar_mpi.so";
constexpr char kMpiVariable[] = "ASHLAR_MPI_LIB";

constexpr char kWebPage[] = "ashlar.html";
constexpr char kPageVariable[] = "ASHLAR_PAGE";

// The file that the variable names, else those beside the program, the surest first.
std::vector<fs::path> PlacesOf(const char* variable, const std::vector<fs::path>& beside) {
  std::error_code error;
  if (const char* given = std::getenv(variable); given != nullptr && *given != '\0') {
    return {fs::absolute(given, error)};
  }
  std::vector<fs::path> out;
  for (const fs::path& place : beside) out.push_back(OwnFolder() / place);
  return out;
}

std::string FirstThatExists(const std::vector<fs::path>& places) {
  for (const fs::path& place : places) {
    if (Exists(place)) return place.lexically_normal().string();
  }
  return "";
}

}  // namespace

absl::StatusOr<std::string> FindMpiModule() {
  const std::vector<fs::path> places =
      PlacesOf(kMpiVariable, {fs::path("../lib/ashlar") / kMpiModule, fs::path("../commands/fleet/mpi") / kMpiModule});
  if (std::string found = FirstThatExists(places); !found.empty()) return found;
  return absl::NotFoundError(absl::StrCat("the MPI module is not here: looked for ",
                                          places.front().lexically_normal().string(),
                                          "; build ashlar where MPI is installed, set ", kMpiVariable,
                                          " to the module, or run one process with --mpi off"));
}

absl::StatusOr<std::string> FindWebPage() {
  const std::vector<fs::path> places =
      PlacesOf(kPageVariable, {fs::path("../lib/ashlar") / kWebPage, fs::path("../../../dist") / kWebPage});
  if (std::string found = FirstThatExists(places); !found.empty()) return found;
  return absl::NotFoundError(absl::StrCat(
      "the page is not here: looked for ", places.front().lexically_normal().string(),
      "; install the wheel (pip install ashlar-gpu), build it with tools/web, or set ", kPageVariable, " to the file"));
}

}  // namespace ashlar::cli
