// The terminal while `ashlar watch` shows a view that is drawn anew: a screen of its own, no echo, no cursor. However
// the view ends, by q, Ctrl-C, a signal that asks the program to end, or the destructor, the terminal is as it was.
//
//   WatchScreen screen;
//   while (screen.WaitForEnd(milliseconds) == false) screen.Draw(text);
//
// One at a time; by one thread.
#ifndef ASHLAR_COMMANDS_WATCH_SCREEN_H_
#define ASHLAR_COMMANDS_WATCH_SCREEN_H_

#include <signal.h>
#include <termios.h>

#include <array>
#include <cstddef>
#include <string>

namespace ashlar::cli {

class WatchScreen {
 public:
  // `draws`: on a terminal; else only the signals are seen to.
  explicit WatchScreen(bool draws);
  ~WatchScreen();
  WatchScreen(const WatchScreen&) = delete;
  WatchScreen& operator=(const WatchScreen&) = delete;

  // Of the terminal as it is now.
  static std::size_t Columns();
  static std::size_t Rows();

  // Whole lines, of which those that fit are shown.
  void Draw(const std::string& text) const;
  // True as soon as the user wants the end; false after the time.
  bool WaitForEnd(int milliseconds) const;

 private:
  const bool draws_;
  bool has_input_ = false;  // stdin is a terminal, whose keys are read
  termios before_{};
  std::array<struct sigaction, 3> actions_{};
};

}  // namespace ashlar::cli

#endif  // ASHLAR_COMMANDS_WATCH_SCREEN_H_
