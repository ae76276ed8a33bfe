#include "commands/mcp/mcp_server.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocator/base/nearest_word.h"
#include "nlohmann/json.hpp"

namespace ashlar::cli {
namespace {

constexpr std::array<absl::string_view, 3> kVersions = {"2025-06-18", "2025-03-26", "2024-11-05"};  // newest first
constexpr int kParseError = -32700;
constexpr int kInvalidRequest = -32600;
constexpr int kNoMethod = -32601;
constexpr int kInvalidParameters = -32602;
constexpr std::size_t kMostOutputBytes = 1 << 20;  // of one tool's text: an agent reads it

constexpr char kInstructions[] =
    "Ashlar explains GPU memory. For an out-of-memory message, a log, a PyTorch memory snapshot or a recording: "
    "`explain`. What grew between two snapshots: `diff`. Whether a model of config.json fits on a card: `estimate`. "
    "Whether a program fits, without a GPU: `dry_run`; what to change so that it fits: `fit`. How to record, and what "
    "a word of an answer means: `guide`. An answer begins with a VERDICT and FIX or TRY FIRST; what is not proven "
    "says so.";

struct Tool {
  absl::string_view name;
  const char* description;
  const char* schema;  // of its arguments
  bool runs_program = false;
};

constexpr std::array<Tool, 6> kTools = {{
    {"explain",
     "Explains an out-of-memory message, a log, a PyTorch memory snapshot (.pickle) or a recording: where the memory "
     "went, who holds it, what would have helped.",
     R"({"type":"object","properties":{
      "inputs":{"type":"array","items":{"type":"string"},
        "description":"files; a log and the snapshot of the same failure make one answer"},
      "text":{"type":"string","description":"in place of files: the message or the log itself"},
      "capacity":{"type":"string","description":"memory of the device, such as 16GiB, where it is another's"},
      "format":{"type":"string","enum":["text","json"],
        "description":"text (default), or JSON of `ashlar schema explain`"}}})"},
    {"diff", "What grew between two snapshots, recordings or traces.",
     R"({"type":"object","required":["before","after"],"properties":{
      "before":{"type":"string","description":"a file"},"after":{"type":"string","description":"a file"},
      "format":{"type":"string","enum":["text","json"]}}})"},
    {"estimate", "The memory of training or running a transformer of a Hugging Face config.json, before it starts.",
     R"({"type":"object","required":["model"],"properties":{
      "model":{"type":"string","description":"a file: config.json"},
      "device":{"type":"string","description":"a card, such as A100-80GB"},
      "batch":{"type":"integer","minimum":1},"seq":{"type":"integer","minimum":1},
      "precision":{"type":"string"},"optimizer":{"type":"string"},
      "checkpointing":{"type":"boolean"},"inference":{"type":"boolean"},
      "format":{"type":"string","enum":["text","json"]}}})"},
    {"guide", "A page of the guide, in Markdown; without a topic, which pages there are.",
     R"({"type":"object","properties":{"topic":{"type":"string"}}})"},
    {"dry_run", "Runs a CUDA program, unchanged, without a GPU: whether it fits on a card, and what it takes.",
     R"({"type":"object","required":["command"],"properties":{
      "command":{"type":"array","items":{"type":"string"},"minItems":1,"description":"the program and its arguments"},
      "device":{"type":"string","description":"a card, such as T4"},
      "capacity":{"type":"string","description":"in place of a card: its memory, such as 16GiB"}}})",
     true},
    {"fit", "Runs a PyTorch program again and again without a GPU, one change at a time, and says which set fits.",
     R"({"type":"object","required":["command"],"properties":{
      "command":{"type":"array","items":{"type":"string"},"minItems":1,"description":"the program and its arguments"},
      "device":{"type":"string","description":"a card, such as T4"},
      "capacity":{"type":"string","description":"in place of a card: its memory, such as 16GiB"},
      "budget":{"type":"string","description":"the time to search, such as 3min"}}})",
     true},
}};

nlohmann::json ErrorAnswer(const nlohmann::json& id, int code, absl::string_view message) {
  return {{"jsonrpc", "2.0"}, {"id", id}, {"error", {{"code", code}, {"message", message}}}};
}

nlohmann::json ResultAnswer(const nlohmann::json& id, nlohmann::json result) {
  return {{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}};
}

nlohmann::json ToolText(std::string text, bool is_error) {
  if (text.size() > kMostOutputBytes) {
    text = absl::StrCat(text.substr(0, kMostOutputBytes), "\n(the rest is left out)\n");
  }
  return {{"content", nlohmann::json::array({{{"type", "text"}, {"text", std::move(text)}}})}, {"isError", is_error}};
}

// The arguments of a call, checked as they are read; errors name the argument.
class Arguments {
 public:
  Arguments(const nlohmann::json& arguments, std::string folder) : arguments_(arguments), folder_(std::move(folder)) {}

  bool Has(const char* name) const { return arguments_.contains(name) && !arguments_[name].is_null(); }

  absl::StatusOr<std::string> Text(const char* name) const {
    if (!Has(name)) return std::string();
    if (!arguments_[name].is_string()) return Wrong(name, "a text");
    return arguments_[name].get<std::string>();
  }
  absl::StatusOr<std::vector<std::string>> Texts(const char* name) const {
    if (!Has(name)) return std::vector<std::string>();
    const nlohmann::json& value = arguments_[name];
    const bool is_list = value.is_array() && std::all_of(value.begin(), value.end(),
                                                         [](const nlohmann::json& one) { return one.is_string(); });
    if (!is_list) return Wrong(name, "a list of texts");
    return value.get<std::vector<std::string>>();
  }

  // The whole path of a file below the folder.
  absl::StatusOr<std::string> Path(const char* name, const std::string& given) const {
    std::error_code error;
    const std::filesystem::path whole = std::filesystem::canonical(std::filesystem::path(folder_) / given, error);
    if (error) return absl::NotFoundError(absl::StrCat(name, ": '", given, "': ", error.message()));
    const bool is_below = whole == folder_ || absl::StartsWith(whole.string(), absl::StrCat(folder_, "/"));
    if (folder_ == "/" || is_below) return whole.string();
    return absl::PermissionDeniedError(absl::StrCat(name, ": '", given, "' lies outside of ", folder_,
                                                    ", the folder in which this server was started"));
  }

  // "--flag=value" of those that are given; `flag` alone of one that is true.
  absl::Status Flag(const char* name, std::vector<std::string>& out) const {
    if (!Has(name)) return absl::OkStatus();
    const nlohmann::json& value = arguments_[name];
    if (value.is_boolean()) {
      if (value.get<bool>()) out.push_back(absl::StrCat("--", name));
      return absl::OkStatus();
    }
    if (!value.is_string() && !value.is_number_integer()) return Wrong(name, "a text or a whole number");
    out.push_back(absl::StrCat("--", name, "=", value.is_string() ? value.get<std::string>() : value.dump()));
    return absl::OkStatus();
  }

 private:
  static absl::Status Wrong(const char* name, const char* what) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": this is not ", what));
  }

  const nlohmann::json& arguments_;
  std::string folder_;
};

absl::Status AddFlags(const Arguments& given, std::initializer_list<const char*> flags, std::vector<std::string>& out) {
  for (const char* flag : flags) {
    if (absl::Status status = given.Flag(flag, out); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<ToolRun> RunOfExplain(const Arguments& given) {
  const absl::StatusOr<std::vector<std::string>> inputs = given.Texts("inputs");
  if (!inputs.ok()) return inputs.status();
  absl::StatusOr<std::string> text = given.Text("text");
  if (!text.ok()) return text.status();
  if (inputs->empty() == text->empty()) return absl::InvalidArgumentError("give inputs (files), or text (the message)");
  ToolRun out{{"explain"}, *std::move(text)};
  for (const std::string& input : *inputs) {
    const absl::StatusOr<std::string> path = given.Path("inputs", input);
    if (!path.ok()) return path.status();
    out.arguments.push_back(*path);
  }
  if (inputs->empty()) out.arguments.emplace_back("-");
  if (absl::Status status = AddFlags(given, {"capacity", "format"}, out.arguments); !status.ok()) return status;
  return out;
}

absl::Status AddJson(const Arguments& given, std::vector<std::string>& out) {
  const absl::StatusOr<std::string> format = given.Text("format");
  if (!format.ok()) return format.status();
  if (*format == "json") out.emplace_back("--json");
  return absl::OkStatus();
}

absl::StatusOr<ToolRun> RunOfFiles(const Arguments& given, const char* command,
                                   std::initializer_list<const char*> files) {
  ToolRun out{{command}, ""};
  for (const char* file : files) {
    const absl::StatusOr<std::string> name = given.Text(file);
    if (!name.ok()) return name.status();
    if (name->empty()) return absl::InvalidArgumentError(absl::StrCat(file, ": no file is given"));
    const absl::StatusOr<std::string> path = given.Path(file, *name);
    if (!path.ok()) return path.status();
    out.arguments.push_back(*path);
  }
  if (absl::Status status = AddJson(given, out.arguments); !status.ok()) return status;
  return out;
}

absl::StatusOr<ToolRun> RunOfEstimate(const Arguments& given) {
  absl::StatusOr<ToolRun> out = RunOfFiles(given, "estimate", {"model"});
  if (!out.ok()) return out;
  const absl::Status status = AddFlags(
      given, {"device", "batch", "seq", "precision", "optimizer", "checkpointing", "inference"}, out->arguments);
  return status.ok() ? std::move(out) : status;
}

absl::StatusOr<ToolRun> RunOfProgram(const Arguments& given, const char* command) {
  const absl::StatusOr<std::vector<std::string>> program = given.Texts("command");
  if (!program.ok()) return program.status();
  if (program->empty()) return absl::InvalidArgumentError("command: no program is given");
  ToolRun out{{command}, ""};
  if (absl::Status status = AddFlags(given, {"device", "capacity", "budget"}, out.arguments); !status.ok()) {
    return status;
  }
  out.arguments.emplace_back("--");
  out.arguments.insert(out.arguments.end(), program->begin(), program->end());
  return out;
}

absl::StatusOr<ToolRun> RunOf(absl::string_view tool, const Arguments& given) {
  if (tool == "explain") return RunOfExplain(given);
  if (tool == "diff") return RunOfFiles(given, "diff", {"before", "after"});
  if (tool == "estimate") return RunOfEstimate(given);
  if (tool == "dry_run") return RunOfProgram(given, "dry-run");
  if (tool == "fit") return RunOfProgram(given, "fit");
  const absl::StatusOr<std::string> topic = given.Text("topic");
  if (!topic.ok()) return topic.status();
  ToolRun out{{"guide"}, ""};
  if (!topic->empty()) out.arguments.push_back(absl::StrCat(absl::StartsWith(*topic, "-") ? "./" : "", *topic));
  return out;
}

// Its answer as text, and as an object where it is one. A program that was run has an answer whatever its exit code is,
// which is on standard error; what could not be run at all has exit codes of its own.
nlohmann::json EndOf(const ToolEnd& end, bool runs_program) {
  constexpr std::array<int, 4> kNotRun = {2, 3, 126, 127};
  const bool is_answer =
      runs_program ? std::find(kNotRun.begin(), kNotRun.end(), end.exit_code) == kNotRun.end() : end.exit_code == 0;
  std::string text = runs_program || !is_answer ? absl::StrCat(end.out, end.err) : end.out;
  if (end.exit_code != 0) absl::StrAppend(&text, "exit code ", end.exit_code, "\n");
  nlohmann::json out = ToolText(std::move(text), !is_answer);
  nlohmann::json object = nlohmann::json::parse(end.out, nullptr, /*allow_exceptions=*/false);
  if (is_answer && object.is_object()) out["structuredContent"] = std::move(object);
  return out;
}

nlohmann::json Initialized(const nlohmann::json& parameters, const std::string& version) {
  const nlohmann::json asked = parameters.value("protocolVersion", nlohmann::json());
  const bool is_known =
      asked.is_string() && std::find(kVersions.begin(), kVersions.end(), asked.get<std::string>()) != kVersions.end();
  return {{"protocolVersion", is_known ? asked : nlohmann::json(kVersions.front())},
          {"capabilities", {{"tools", nlohmann::json::object()}}},
          {"serverInfo", {{"name", "ashlar"}, {"version", version}}},
          {"instructions", kInstructions}};
}

nlohmann::json ToolList() {
  nlohmann::json tools = nlohmann::json::array();
  for (const Tool& tool : kTools) {
    tools.push_back({{"name", tool.name},
                     {"description", tool.description},
                     {"inputSchema", nlohmann::json::parse(tool.schema)},
                     {"annotations", {{"readOnlyHint", !tool.runs_program}, {"openWorldHint", tool.runs_program}}}});
  }
  return {{"tools", std::move(tools)}};
}

nlohmann::json CallTool(const nlohmann::json& id, const nlohmann::json& parameters, const McpOptions& options) {
  const nlohmann::json name = parameters.value("name", nlohmann::json());
  const nlohmann::json arguments = parameters.value("arguments", nlohmann::json::object());
  if (!name.is_string()) return ErrorAnswer(id, kInvalidParameters, "name: no tool is named");
  if (!arguments.is_object()) return ErrorAnswer(id, kInvalidParameters, "arguments: this is not an object");
  const auto* const tool =
      std::find_if(kTools.begin(), kTools.end(), [&](const Tool& one) { return one.name == name.get<std::string>(); });
  if (tool == kTools.end()) {
    std::vector<std::string> known;
    for (const Tool& one : kTools) known.emplace_back(one.name);
    return ErrorAnswer(
        id, kInvalidParameters,
        absl::StrCat("no tool is called '", name.get<std::string>(), "' ", DidYouMean(name.get<std::string>(), known)));
  }
  if (tool->runs_program && !options.may_run) {
    return ResultAnswer(id, ToolText(absl::StrCat(tool->name,
                                                  " runs a program, and this server was not started with "
                                                  "--allow-run; whoever configures it can add the flag"),
                                     true));
  }
  const absl::StatusOr<ToolRun> run = RunOf(tool->name, Arguments(arguments, options.folder));
  if (!run.ok()) return ResultAnswer(id, ToolText(std::string(run.status().message()), true));
  return ResultAnswer(id, EndOf(options.run(*run), tool->runs_program));
}

}  // namespace

std::optional<std::string> McpServer::Answer(absl::string_view line) const {
  const nlohmann::json request = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  const auto print = [](const nlohmann::json& answer) {
    return answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  if (request.is_discarded()) return print(ErrorAnswer(nullptr, kParseError, "this line is no JSON"));
  if (!request.is_object() || !request.value("method", nlohmann::json()).is_string()) {
    // The answer to something that was never asked is passed by.
    if (request.is_object() && (request.contains("result") || request.contains("error"))) return std::nullopt;
    return print(ErrorAnswer(nullptr, kInvalidRequest, "this is no request of JSON-RPC 2.0"));
  }
  if (!request.contains("id")) return std::nullopt;
  const nlohmann::json& id = request["id"];
  const std::string method = request["method"].get<std::string>();
  const nlohmann::json parameters = request.value("params", nlohmann::json::object());
  if (!parameters.is_object()) return print(ErrorAnswer(id, kInvalidParameters, "params: this is not an object"));
  if (method == "initialize") return print(ResultAnswer(id, Initialized(parameters, options_.version)));
  if (method == "ping") return print(ResultAnswer(id, nlohmann::json::object()));
  if (method == "tools/list") return print(ResultAnswer(id, ToolList()));
  if (method == "tools/call") return print(CallTool(id, parameters, options_));
  return print(ErrorAnswer(id, kNoMethod, absl::StrCat("no method is called '", method, "'")));
}

}  // namespace ashlar::cli
