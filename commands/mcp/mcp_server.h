// A server of the Model Context Protocol, for agents: the program's answers as tools. A line in, at most a line out;
// each call runs the program itself, so that what one call does is gone with its process.
//
//   McpServer server({.folder = "/home/u/job", .version = "1.0", .run = RunSelf});
//   while (std::getline(std::cin, line)) {
//     if (std::optional<std::string> answer = server.Answer(line)) std::cout << *answer << std::endl;
//   }
//
// Protocol: JSON-RPC 2.0 over lines, https://modelcontextprotocol.io/specification (2024-11-05, 2025-03-26,
// 2025-06-18). Files are read below `folder` alone, links followed. Programs run only where `may_run`.
// One thread; an unreadable line, an unknown method or a tool that fails is an answer, never an end.
#ifndef ASHLAR_COMMANDS_MCP_MCP_SERVER_H_
#define ASHLAR_COMMANDS_MCP_MCP_SERVER_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace ashlar::cli {

// A run of the program with these arguments, `input` as its standard input.
struct ToolRun {
  std::vector<std::string> arguments;
  std::string input;
};

struct ToolEnd {
  int exit_code = 0;
  std::string out;  // standard output
  std::string err;
};

struct McpOptions {
  std::string folder;
  std::string version;
  bool may_run = false;
  std::function<ToolEnd(const ToolRun&)> run;
};

class McpServer {
 public:
  explicit McpServer(McpOptions options) : options_(std::move(options)) {}

  // nullopt: a notification, which has no answer.
  std::optional<std::string> Answer(absl::string_view line) const;

 private:
  McpOptions options_;
};

}  // namespace ashlar::cli

#endif  // ASHLAR_COMMANDS_MCP_MCP_SERVER_H_
