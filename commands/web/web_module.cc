// The module that the analyzer's page loads: a session (web_session.h) by functions of C. What it says of how far it is
// goes to the function onStage of the module. Where its memory ends it sets noMemory there, and ends itself.
#include <emscripten.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "commands/shared/layout.h"
#include "commands/web/web_session.h"

// clang-format off
EM_JS(void, ashlar_web_tell, (const char* stage), {
  if (Module.onStage) Module.onStage(UTF8ToString(stage >>> 0));
});
EM_JS(void, ashlar_web_memory_ended, (), { Module.noMemory = true; });
// clang-format on

namespace ashlar {
namespace {

struct WebModule {
  answers::WebSession session{[](const std::string& stage) { ashlar_web_tell(stage.c_str()); }};
  std::string said;  // the last answer, or why there is none
};

[[noreturn]] void EndWithoutMemory() {
  ashlar_web_memory_ended();
  std::abort();
}

WebModule& TheModule() {
  static auto* const module = [] {
    std::set_new_handler(&EndWithoutMemory);
    return new WebModule;
  }();
  return *module;
}

// 0, or 1 where `said` says why not.
int Say(const absl::Status& status) {
  if (status.ok()) return 0;
  TheModule().said = report::Printable(status.message());
  return 1;
}

}  // namespace
}  // namespace ashlar

extern "C" {

// Room for a file; 0: there is none.
EMSCRIPTEN_KEEPALIVE char* ashlar_web_reserve(std::size_t size) { return static_cast<char*>(std::malloc(size + 1)); }

EMSCRIPTEN_KEEPALIVE int ashlar_web_set(const char* key, const char* value) {
  return ashlar::Say(ashlar::TheModule().session.Set(key, value));
}

// Takes the room, which was reserved.
EMSCRIPTEN_KEEPALIVE int ashlar_web_read(const char* name, char* bytes, std::size_t size) {
  return ashlar::Say(ashlar::TheModule().session.Read(name, ashlar::answers::HeldBytes(bytes), size));
}

EMSCRIPTEN_KEEPALIVE int ashlar_web_answer(const char* what) {
  std::string().swap(ashlar::TheModule().said);
  absl::StatusOr<std::string> answer = ashlar::TheModule().session.Answer(what);
  if (!answer.ok()) return ashlar::Say(answer.status());
  ashlar::TheModule().said = *std::move(answer);
  return 0;
}

// UTF-8, good until the next call.
EMSCRIPTEN_KEEPALIVE const char* ashlar_web_said() { return ashlar::TheModule().said.data(); }
EMSCRIPTEN_KEEPALIVE std::size_t ashlar_web_said_size() { return ashlar::TheModule().said.size(); }

}  // extern "C"
