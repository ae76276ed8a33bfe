#include "launcher/names_flags.h"

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace ashlar::cli {
namespace {

bool IsTimeOfALook(absl::string_view text) {
  double seconds = 0;
  return absl::SimpleAtod(absl::StripSuffix(text, "s"), &seconds) && seconds >= 0 && seconds < 3600;
}

// "peak" and a time, each at most once, or "off" alone.
bool IsNames(const std::string& given) {
  if (given == "off") return true;
  std::size_t peaks = 0;
  std::size_t times = 0;
  for (const absl::string_view part : absl::StrSplit(given, ',')) {
    if (part != "peak" && !IsTimeOfALook(part)) return false;
    ++(part == "peak" ? peaks : times);
  }
  return peaks <= 1 && times <= 1;
}

}  // namespace

void AddNamesFlags(Command& app, NamesFlags& flags) {
  app.Add("--names", flags.looks,
          "how long one look at who holds the memory, by name, may take: 10s (the default), or off; peak: looks at new "
          "peaks too; peak,3s: both")
      .Takes("LOOKS");
  app.Add("--redact", flags.redacts,
          "the history has v1, f2 and file3.py in the place of the program's names, so that it can be sent to others");
}

absl::Status CheckNames(const NamesFlags& flags) {
  if (!flags.looks.has_value() || IsNames(*flags.looks)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--names: '", *flags.looks,
                                                 "' is neither a time of less than an hour, such as 3s, nor off, nor "
                                                 "peak, nor peak with a time, such as peak,3s"));
}

void PutNames(const NamesFlags& flags, std::map<std::string, std::string>& environment) {
  if (flags.looks.has_value()) environment["ASHLAR_NAMES"] = *flags.looks;
  if (flags.redacts) environment["ASHLAR_REDACT"] = "1";
}

}  // namespace ashlar::cli
