#include "console/command_line.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "allocator/base/nearest_word.h"
#include "console/command.h"
#include "console/generate.h"
#include "console/given_command.h"
#include "console/help_text.h"

namespace ashlar::cli {
namespace {

// The innermost command that was named, and what led there: "ashlar run".
struct Named {
  const CLI::App* app;
  std::string path;
  int words = 0;
};

Named NamedCommand(const CLI::App& program) {
  Named out{&program, program.get_name()};
  while (!out.app->get_subcommands().empty()) {
    out.app = out.app->get_subcommands().front();
    absl::StrAppend(&out.path, " ", out.app->get_name());
    ++out.words;
  }
  return out;
}

// "Could not convert: --device = x", as CLI11 says it.
std::string WrongValue(const CLI::App& app, const std::string& message) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(absl::StripPrefix(message, "Could not convert: "), absl::MaxSplits(" = ", 1));
  const CLI::Option* option = app.get_option_no_throw(std::string(parts.first));
  if (option == nullptr) return message;
  const bool is_whole = option->get_type_name() != "FLOAT";
  return absl::StrCat(parts.first, ": '", parts.second, "' is not a ", is_whole ? "whole number" : "number");
}

// "--max-reserved: 1 required SIZE missing", as CLI11 says it.
std::string MissingValue(const CLI::App& app, const std::string& message) {
  const std::string flag = message.substr(0, message.find(':'));
  const CLI::Option* option = app.get_option_no_throw(flag);
  if (option == nullptr || !absl::EndsWith(message, " missing")) return message;
  return absl::StrCat(flag, " needs a value: ", option->get_description());
}

bool IsFlag(const std::string& word) { return word.size() > 1 && word.front() == '-'; }

// After a parse, failed or not: the word that stands where a command must and is none, or that none stands there;
// nullopt where the command was found.
std::optional<std::string> WrongCommand(const CLI::App& program, int argc, const char* const* argv) {
  const Named named = NamedCommand(program);
  std::vector<std::string> known;
  const std::function<bool(const CLI::App*)> every;
  for (const CLI::App* app : named.app->get_subcommands(every)) known.push_back(app->get_name());
  if (known.empty()) return std::nullopt;
  std::string what = "a command is missing";
  for (int i = named.words + 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool is_flag = IsFlag(word);
    if (is_flag && named.app->get_option_no_throw(word) != nullptr) continue;
    what = absl::StrCat("there is no ", is_flag ? "flag" : "command", " '", word, "'");
    if (const std::string question = DidYouMean(word, known); !question.empty()) {
      return absl::StrCat(what, ": ", question, " One of ", absl::StrJoin(known, ", "), "; see ", named.path,
                          " --help");
    }
    break;
  }
  return absl::StrCat(what, ": give one of ", absl::StrJoin(known, ", "), "; see ", named.path, " --help");
}

// "there is no flag '--capacty': did you mean '--capacity'?" where a word that looks like a flag is none.
std::optional<std::string> WrongFlag(const CLI::App& app, const std::vector<std::string>& unexpected) {
  std::vector<std::string> known;
  const std::function<bool(const CLI::Option*)> every;
  for (const CLI::Option* option : app.get_options(every)) {
    for (const std::string& name : option->get_lnames()) known.push_back(absl::StrCat("--", name));
  }
  for (const std::string& word : unexpected) {
    if (!IsFlag(word)) continue;
    const std::string flag = word.substr(0, word.find('='));
    const std::string question = DidYouMean(flag, known);
    return absl::StrCat("there is no flag '", flag, "'", question.empty() ? "" : ": ", question);
  }
  return std::nullopt;
}

// Of words that nobody takes, as they were given: "plain ./p" where CLI11 lists the last one first.
std::string UnexpectedWords(std::vector<std::string> unexpected, int argc, const char* const* argv) {
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    const auto it = std::find(unexpected.begin(), unexpected.end(), argv[i]);
    if (it == unexpected.end()) continue;
    words.push_back(ShellWord(*it));
    unexpected.erase(it);
  }
  return absl::StrCat("not expected: ", absl::StrJoin(words, " "));
}

// Of the command whose help was asked for.
CommandDescription DescribeNamed(const CLI::App& program) {
  const Named named = NamedCommand(program);
  const std::size_t space = named.path.rfind(' ');
  return Describe(*named.app, space == std::string::npos ? "" : named.path.substr(0, space));
}

// Of a parse that failed: one line that ends in the help to read.
std::string UsageError(const CLI::App& program, const CLI::ParseError& error, int argc, const char* const* argv) {
  if (std::optional<std::string> wrong = WrongCommand(program, argc, argv); wrong.has_value()) return *wrong;
  const Named named = NamedCommand(program);
  std::string what = error.what();
  if (error.get_name() == "ConversionError") what = WrongValue(*named.app, what);
  if (error.get_name() == "ArgumentMismatch") what = MissingValue(*named.app, what);
  if (error.get_name() == "RequiredError") absl::StrAppend(&what, ", as in: ", UsageOf(DescribeNamed(program)));
  const bool is_extra = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
  if (is_extra) {
    const std::vector<std::string> unexpected = program.remaining(true);
    what = WrongFlag(*named.app, unexpected).value_or(UnexpectedWords(unexpected, argc, argv));
  }
  return absl::StrCat(what, absl::EndsWith(what, "?") ? " See " : "; see ", named.path, " --help");
}

// `ashlar`, `ashlar help`, `ashlar help sweep` and `ashlar version` as the flags that they stand for.
std::vector<const char*> AsFlags(int argc, const char* const* argv) {
  std::vector<const char*> out(argv, argv + argc);
  const absl::string_view first = argc > 1 ? argv[1] : "help";
  if (first == "version" && argc == 2) out[1] = "--version";
  if (first != "help") return out;
  if (argc > 1) out.erase(out.begin() + 1);
  out.push_back("--help");
  return out;
}

template <typename T>
constexpr bool IsCount() {
  return std::is_same_v<T, std::uint64_t> || std::is_same_v<T, std::optional<std::uint64_t>>;
}

// What reads the number would take -1, and a number that is too large, for the largest that there is.
std::string WhyNoCount(const std::string& value) {
  if (absl::StartsWith(absl::StripLeadingAsciiWhitespace(value), "-")) return absl::StrCat(value, " is negative");
  errno = 0;
  std::strtoull(value.c_str(), nullptr, 0);
  return errno == ERANGE ? absl::StrCat(value, " is too large") : "";
}

std::string WhyEmpty(const std::string& text) {
  return text.empty() ? "the value is empty: give one, or leave the flag out" : "";
}

}  // namespace

Flag Flag::Required() {
  option_->required();
  return *this;
}

Flag Flag::NotEmpty() {
  option_->check(WhyEmpty);
  return *this;
}

Flag Flag::Takes(const std::string& what) {
  option_->type_name(what);
  return *this;
}

Flag Flag::OneOf(const std::vector<std::string>& values) {
  option_->check(CLI::Validator(
      [values](const std::string& value) {
        const bool is_known = std::find(values.begin(), values.end(), value) != values.end();
        return is_known ? std::string() : absl::StrCat("'", value, "' is none of ", absl::StrJoin(values, ", "));
      },
      absl::StrJoin(values, "|")));
  return *this;
}

Flag Flag::Between(std::int64_t least, std::int64_t most) {
  option_->transform(CLI::Range(least, most));  // before other checks: it names the range
  return *this;
}

Flag Flag::OneValueEach() {
  option_->allow_extra_args(false);
  return *this;
}

Flag Flag::MayStandAlone() {
  option_->expected(0, 1);
  return *this;
}

Flag Flag::Excludes(Flag other) {
  option_->excludes(other.option_);
  return *this;
}

Flag Flag::Under(const std::string& heading) {
  option_->group(heading);
  return *this;
}

Command Command::AddCommand(const std::string& name, const std::string& summary) {
  app_->require_subcommand(1);
  return Command(app_->add_subcommand(name, summary), run_);
}

template <typename T>
Flag Command::Add(const std::string& name, T& value, const std::string& help) {
  if constexpr (std::is_same_v<T, bool>) {
    return Flag(app_->add_flag(name, value, help));
  } else {
    CLI::Option* const option = app_->add_option(name, value, help);
    if constexpr (IsCount<T>()) option->check(WhyNoCount);
    return Flag(option);
  }
}

template Flag Command::Add(const std::string&, bool&, const std::string&);
template Flag Command::Add(const std::string&, std::string&, const std::string&);
template Flag Command::Add(const std::string&, int&, const std::string&);
template Flag Command::Add(const std::string&, std::int64_t&, const std::string&);
template Flag Command::Add(const std::string&, std::uint64_t&, const std::string&);
template Flag Command::Add(const std::string&, double&, const std::string&);
template Flag Command::Add(const std::string&, std::optional<std::string>&, const std::string&);
template Flag Command::Add(const std::string&, std::optional<int>&, const std::string&);
template Flag Command::Add(const std::string&, std::optional<std::int64_t>&, const std::string&);
template Flag Command::Add(const std::string&, std::optional<std::uint64_t>&, const std::string&);
template Flag Command::Add(const std::string&, std::optional<double>&, const std::string&);
template Flag Command::Add(const std::string&, std::vector<std::string>&, const std::string&);

Flag Command::AddText(const std::string& name, const std::function<void(const std::string&)>& take,
                      const std::string& help) {
  return Flag(app_->add_option_function<std::string>(name, take, help));
}

void Command::TakesProgram(std::vector<std::string>& program) {
  app_->prefix_command();
  app_->parse_complete_callback([app = app_, &program] {
    std::vector<std::string> words = app->remaining();
    if (words.empty()) return;
    if (IsFlag(words.front())) {
      throw CLI::ExtrasError(app->get_name(), words);
    }
    if (!program.empty()) words.emplace_back("--");  // the program's own
    program.insert(program.begin(), words.begin(), words.end());
    KeepAsProgram(program);
  });
}

void Command::Example(const std::string& line) { app_->footer(absl::StrCat("Example:\n  ", line)); }

void Command::OnRun(std::function<int()> run) {
  app_->callback([to = run_, run = std::move(run)] { *to = run; });
}

bool Command::IsGiven(const std::string& flag) const { return app_->get_option(flag)->count() > 0; }

CommandLine::CommandLine(const std::string& name, const std::string& summary, const std::string& version)
    : app_(std::make_unique<CLI::App>(summary, name)) {
  app_->set_version_flag("--version", version);
}

CommandLine::~CommandLine() = default;

Command CommandLine::AddCommand(const std::string& name, const std::string& summary) {
  const Command out = Command(app_.get(), &run_).AddCommand(name, summary);
  app_->get_subcommand(name)->group(heading_);
  return out;
}

// `ashlar --generate KIND`, which --help does not show: it is for packages.
int CommandLine::RunGenerate(const std::string& kind) const {
  const absl::StatusOr<std::string> text = Generate(kind, Describe(*app_), app_->version());
  if (!text.ok()) return Fail(kUsage, text.status());
  return Print(*text) ? kOk : kUnreadable;
}

int CommandLine::Run(int argc, const char* const* argv) {
  if (argc == 3 && std::string(argv[1]) == "--generate") return RunGenerate(argv[2]);
  const std::vector<const char*> words = AsFlags(argc, argv);
  argc = static_cast<int>(words.size());
  argv = words.data();
  try {
    app_->parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    const std::optional<std::string> wrong = WrongCommand(*app_, argc, argv);
    if (wrong.has_value() && absl::StrContains(*wrong, "there is no")) {  // its help was asked for
      return Fail(kUsage, absl::InvalidArgumentError(*wrong));
    }
    if (success.get_name() == "CallForHelp") return Print(HelpText(DescribeNamed(*app_))) ? kOk : kUnreadable;
    return Print(absl::StrCat(app_->version(), "\n")) ? kOk : kUnreadable;
  } catch (const CLI::ParseError& error) {
    return Fail(kUsage, absl::InvalidArgumentError(UsageError(*app_, error, argc, argv)));
  }
  return run_();
}

namespace {

constexpr char kBeforeExample[] = "Example:\n  ";

// "TEXT:text|json|markdown": the type, and the values behind it where a rule names them.
void ReadFlagType(const std::string& type, FlagDescription& out) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(type, absl::MaxSplits(':', 1));
  out.value = parts.first == "UINT" || parts.first == "INT" ? "N"
              : parts.first == "FLOAT"                      ? "NUMBER"
                                                            : std::string(parts.first);
  if (absl::StrContains(parts.second, "|")) out.choices = absl::StrSplit(parts.second, '|');
}

FlagDescription DescribeFlag(const CLI::Option& option) {
  FlagDescription out;
  for (const std::string& name : option.get_snames()) out.names.push_back(absl::StrCat("-", name));
  for (const std::string& name : option.get_lnames()) out.names.push_back(absl::StrCat("--", name));
  out.is_positional = option.get_positional();
  if (out.is_positional) out.names = {option.get_name(true, false)};
  out.help = option.get_description();
  out.heading = option.get_group();
  out.is_required = option.get_required();
  out.is_list = option.get_items_expected_max() > 1;
  if (option.get_type_size_max() > 0) ReadFlagType(option.get_type_name(), out);
  out.may_stand_alone = !out.value.empty() && option.get_items_expected_min() == 0;
  return out;
}

}  // namespace

CommandDescription Describe(const CLI::App& app, const std::string& path_before) {
  CommandDescription out;
  out.name = app.get_name();
  out.path = path_before.empty() ? out.name : absl::StrCat(path_before, " ", out.name);
  out.summary = app.get_description();
  out.group = app.get_group() == "Subcommands" ? "Commands" : app.get_group();
  out.example = std::string(absl::StripPrefix(app.get_footer(), kBeforeExample));
  out.takes_program = app.get_prefix_command();
  const std::function<bool(const CLI::Option*)> shown = [](const CLI::Option* o) { return !o->get_group().empty(); };
  for (const CLI::Option* option : app.get_options(shown)) out.flags.push_back(DescribeFlag(*option));
  // A heading once, those without one first.
  std::vector<std::string> headings = {"Options"};
  for (const FlagDescription& flag : out.flags) headings.push_back(flag.heading);
  std::stable_sort(out.flags.begin(), out.flags.end(), [&](const FlagDescription& a, const FlagDescription& b) {
    return std::find(headings.begin(), headings.end(), a.heading) <
           std::find(headings.begin(), headings.end(), b.heading);
  });
  const std::function<bool(const CLI::App*)> every = [](const CLI::App* a) { return !a->get_group().empty(); };
  for (const CLI::App* command : app.get_subcommands(every)) out.commands.push_back(Describe(*command, out.path));
  return out;
}

std::vector<const CommandDescription*> EveryCommand(const CommandDescription& program) {
  std::vector<const CommandDescription*> out = {&program};
  for (const CommandDescription& command : program.commands) {
    for (const CommandDescription* below : EveryCommand(command)) out.push_back(below);
  }
  return out;
}

std::string WordsOf(const CommandDescription& command) {
  const size_t space = command.path.find(' ');
  return space == std::string::npos ? "" : command.path.substr(space + 1);
}

}  // namespace ashlar::cli
