// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/progress_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

namespace ptarmigan::runtime {
namespace {

constexpr std::size_t longest = 500;

/// Characters on the terminal. No lock: who writes a message may have been interrupted by a signal.
std::atomic<std::size_t> shown{0};

void write_once(const char* text, std::size_t size) {
    // Lost progress is no loss.
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, size);
}

} // namespace

unsigned terminal_columns() {
    winsize size{};
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void show_progress_line(std::string_view text) {
    text = text.substr(0, longest);
    const std::size_t before = shown.exchange(text.size());
    // Spaces instead of an escape sequence: every terminal has them.
    std::string line = "\r" + std::string(text);
    if (before > text.size()) line.append(before - text.size(), ' ').append(before - text.size(), '\b');
    write_once(line.data(), line.size());
}

void erase_progress_line() {
    const std::size_t count = std::min(shown.exchange(0), longest);
    if (count == 0) return;
    char line[longest + 2];
    std::memset(line, ' ', sizeof line);
    line[0] = '\r';
    line[count + 1] = '\r';
    write_once(line, count + 2);
}

} // namespace ptarmigan::runtime
