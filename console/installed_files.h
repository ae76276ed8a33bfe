// The files that lie beside the program: what a started program gets, the module of MPI, and the analyzer's page.
#ifndef ASHLAR_CONSOLE_INSTALLED_FILES_H_
#define ASHLAR_CONSOLE_INSTALLED_FILES_H_

#include <string>

#include "absl/status/statusor.h"

namespace ashlar::cli {

// Finds the files that a started program gets: the preloaded libraries, the folder with libcuda.so.1 and
// libnvidia-ml.so.1 in it, the folder for PYTHONPATH, and the auditor for LD_AUDIT.
//
// Looked for, in this order: the library that ASHLAR_HOLLOW_LIB names, with shims/ and python/ beside it; lib/ashlar of
// the installed program; the build tree that the program lies in, where python/ is a link into the source tree.
struct HollowFiles {
  std::string library;
  std::string drivers;
  std::string python;
  std::string audit;  // libashlar_audit.so; empty where it is not there: a linked in runtime is not served
};

// NotFound, in one line, where a part is missing.
absl::StatusOr<HollowFiles> FindHollowFiles();

// The last of them alone: what a recording needs.
absl::StatusOr<std::string> FindPythonFolder();

// libashlar_record.so, which lies beside the library; empty where it does not: native programs go unrecorded.
std::string FindRecordLibrary();

// libashlar_serve.so, from the same place; NotFound, in one line, where it is not there.
absl::StatusOr<std::string> FindServeLibrary();

// What LD_PRELOAD gets of two libraries, either of which may be empty.
std::string Preloaded(const std::string& first, const std::string& second);

// Finds libashlar_mpi.so: the file that ASHLAR_MPI_LIB names; lib/ashlar of the installed program; the build tree that
// the program lies in.

// NotFound, in one line, where it is not there.
absl::StatusOr<std::string> FindMpiModule();

// The analyzer's page, one HTML file (tools/web): the file that ASHLAR_PAGE names; lib/ashlar of the installed program;
// dist of the source tree that the program's build tree lies in. NotFound, in one line, where it is not there.
absl::StatusOr<std::string> FindWebPage();

}  // namespace ashlar::cli

#endif  // ASHLAR_CONSOLE_INSTALLED_FILES_H_
