#include "launcher/hollow_program.h"

#include <sys/resource.h>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "launcher/run_program.h"
#include "launcher/value_flags.h"

namespace ashlar::cli {

void AddHollowFlags(Command& app, HollowSettings& settings) {
  app.Add("--conf", settings.conf, "settings, put into PYTORCH_CUDA_ALLOC_CONF").Takes("CONF");
  app.Add("--skip-init", settings.skip_init,
          "weights made on the CPU are not initialised, so that they take no memory");
  app.Add("--reproducible", settings.reproducible,
          "two runs are alike: hash seed, one thread, generator seeds, addresses not randomised");
  AddValueFlag(app, settings.values);
  app.Add("--workspaces", settings.workspaces,
          "what cuDNN's plans ask their caller for: none (default), or cudnn, as the program's own cuDNN says by its "
          "heuristics")
      .OneOf({kNoWorkspaces, kCudnnWorkspaces});
}

std::map<std::string, std::string> HollowEnvironment(const HollowSettings& settings, const HollowFiles& files,
                                                     const std::string& folder) {
  std::map<std::string, std::string> out = {
      {"ASHLAR_HOLLOW_RUN", folder},
      {"ASHLAR_RECORD", folder},
      {"LD_PRELOAD", Prepended("LD_PRELOAD", Preloaded(FindRecordLibrary(), files.library))},
      {"LD_LIBRARY_PATH", Prepended("LD_LIBRARY_PATH", files.drivers)},
      {"PYTHONPATH", Prepended("PYTHONPATH", files.python)},
      {"TRITON_LIBCUDA_PATH", files.drivers},
  };
  if (!files.audit.empty()) out["LD_AUDIT"] = Prepended("LD_AUDIT", files.audit);
  if (settings.history.has_value()) out["ASHLAR_HISTORY"] = absl::StrCat(*settings.history);
  PutNames(settings.names, out);
  if (!settings.calls.empty()) out["ASHLAR_HOLLOW_CALLS"] = settings.calls;
  if (!settings.routing.empty()) out["ASHLAR_ROUTING"] = settings.routing;
  PutValues(settings.values, out);
  if (settings.workspaces == kCudnnWorkspaces) out[CudnnServer::kVariable] = CudnnServer::PathIn(folder);
  if (settings.skip_init) out["ASHLAR_SKIP_INIT"] = "1";
  if (settings.reproducible) {
    out["ASHLAR_REPRODUCIBLE"] = "1";
    out["PYTHONHASHSEED"] = "0";
    out["OMP_NUM_THREADS"] = "1";
  }
  if (settings.conf.has_value()) {
    out["PYTORCH_CUDA_ALLOC_CONF"] = *settings.conf;  // before torch 2.9, and still
    out["PYTORCH_ALLOC_CONF"] = *settings.conf;
  }
  return out;
}

absl::StatusOr<std::unique_ptr<CudnnServer>> ServeWorkspaces(const HollowSettings& settings,
                                                             const std::string& folder) {
  if (settings.workspaces != kCudnnWorkspaces) return nullptr;
  return CudnnServer::Start(folder);
}

std::uint64_t LargestChildBytes() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * kKiB;
}

}  // namespace ashlar::cli
