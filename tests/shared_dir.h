// Finds large test data that is not part of the repository: golden files, corpora. Tests that read them skip, and say
// why, where the folder is missing:
//
//   const std::optional<std::string> shared = SharedDir();
//   if (!shared) GTEST_SKIP() << kNoSharedDir;
#ifndef ASHLAR_TESTS_SHARED_DIR_H_
#define ASHLAR_TESTS_SHARED_DIR_H_

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

namespace ashlar {

inline constexpr char kNoSharedDir[] =
    "no shared test data: set ASHLAR_SHARED_DIR to the folder with corpus/ in it, or put it at ../shared";

// The folder that ASHLAR_SHARED_DIR names, else `shared` beside the repository; nullopt where it has no corpus: it is
// empty, or another.
inline std::optional<std::string> SharedDir() {
  const char* named = std::getenv("ASHLAR_SHARED_DIR");
  const std::string folder = named != nullptr && *named != '\0' ? named : ASHLAR_SOURCE_DIR "/../shared";
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder + "/corpus", ignored)) return std::nullopt;
  return folder;
}

}  // namespace ashlar

#endif  // ASHLAR_TESTS_SHARED_DIR_H_
