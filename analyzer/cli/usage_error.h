// What is wrong with a command line, in one line that ends in the help to read.
#ifndef ASHLAR_ANALYZER_CLI_USAGE_ERROR_H_
#define ASHLAR_ANALYZER_CLI_USAGE_ERROR_H_

#include <optional>
#include <string>

#include "CLI/CLI.hpp"

namespace ashlar::cli {

// After a parse, failed or not: the word that stands where a command must and is none, or that none stands there;
// nullopt where the command was found.
std::optional<std::string> WrongCommand(const CLI::App& program, int argc, const char* const* argv);
// Of a parse that failed.
std::string UsageError(const CLI::App& program, const CLI::ParseError& error, int argc, const char* const* argv);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_USAGE_ERROR_H_
