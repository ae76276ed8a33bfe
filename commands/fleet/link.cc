#include "commands/fleet/link.h"

#include <dlfcn.h>

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "commands/fleet/mpi/mpi_module.h"

namespace ashlar::fleet {
namespace {

class MpiLink : public Link {
 public:
  explicit MpiLink(const AshlarMpiModule& module) : module_(module) {}

  absl::Status Begin() { return Checked(module_.begin(&rank_, &size_)); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  absl::Status Send(int to, const std::string& bytes) override {
    return Checked(module_.send(to, bytes.data(), bytes.size()));
  }

  absl::StatusOr<std::optional<Packet>> TryReceive() override {
    Packet out;
    unsigned long long size = 0;
    if (absl::Status status = Checked(module_.look(&out.from, &size)); !status.ok()) return status;
    if (out.from < 0) return std::nullopt;
    out.bytes.resize(size);
    if (absl::Status status = Checked(module_.receive(out.from, out.bytes.data(), size)); !status.ok()) return status;
    return out;
  }

  absl::Status Close() override { return Checked(module_.end()); }

 private:
  absl::Status Checked(int code) const {
    return code == 0 ? absl::OkStatus() : absl::UnavailableError(absl::StrCat("MPI: ", module_.error()));
  }

  const AshlarMpiModule& module_;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Link>> JoinByMpi(const std::string& module) {
  // Open MPI opens components of its own that look for its symbols among those of the program.
  void* library = dlopen(module.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return absl::UnavailableError(absl::StrCat("the MPI module cannot be opened: ", dlerror()));
  const auto function = reinterpret_cast<AshlarMpiModuleFunction>(dlsym(library, "ashlar_mpi_module"));
  if (function == nullptr || function()->version != ASHLAR_MPI_MODULE_VERSION) {
    return absl::UnavailableError(absl::StrCat(module, " is not the MPI module of this version of ashlar"));
  }
  auto link = std::make_unique<MpiLink>(*function());
  if (absl::Status status = link->Begin(); !status.ok()) return status;
  return link;
}

namespace {

struct LauncherVariables {
  const char* launcher;
  const char* rank;
  const char* size;  // nullptr: it has none
};

// mpirun within a job of Slurm sets Slurm's as well: its own come first.
constexpr LauncherVariables kLaunchers[] = {
    {"mpirun (Open MPI)", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
    {"mpiexec (PMI)", "PMI_RANK", "PMI_SIZE"},
    {"a launcher (PMIx)", "PMIX_RANK", nullptr},
};

std::optional<int> NumberOf(const char* text) {
  int out = 0;
  if (text == nullptr || !absl::SimpleAtoi(text, &out) || out < 0) return std::nullopt;
  return out;
}

}  // namespace

std::optional<FleetLaunch> FindLaunch(const std::function<const char*(const char*)>& variable) {
  for (const LauncherVariables& names : kLaunchers) {
    const std::optional<int> rank = NumberOf(variable(names.rank));
    if (!rank.has_value()) continue;
    if (names.size == nullptr) return FleetLaunch{names.launcher, *rank, 0};
    const std::optional<int> size = NumberOf(variable(names.size));
    if (size.value_or(0) > 1) return FleetLaunch{names.launcher, *rank, *size};
  }
  return std::nullopt;
}

std::optional<FleetLaunch> FindLaunch() {
  return FindLaunch([](const char* name) -> const char* { return std::getenv(name); });
}

}  // namespace ashlar::fleet
