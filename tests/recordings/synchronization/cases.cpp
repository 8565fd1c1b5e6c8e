// SPDX-License-Identifier: Apache-2.0
// Children, pipes and comparison for cases.h.
#include "tests/recordings/synchronization/cases.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include <sys/wait.h>
#include <unistd.h>

namespace recordings {
namespace {

/// Runs cases from `first` on and writes their lines to `file` until one has an error. Does not return.
[[noreturn]] void child(const char* library, const std::vector<Case>& cases, std::size_t first, int file) {
    std::size_t at = first;
    auto write_line = [&](const std::string& text) {
        const std::string line = cases[at].name + ": " + text + "\n";
        if (write(file, line.data(), line.size()) < 0) _exit(2);
    };
    try {
        Driver driver(library);
        for (; at < cases.size(); ++at) write_line(cases[at].run(driver));
    } catch (const std::exception& error) {
        write_line(std::string("error: ") + error.what());
    }
    _exit(0);
}

/// All lines, in the cases' order.
std::vector<std::string> lines_of(const char* library, const std::vector<Case>& cases) {
    std::vector<std::string> lines;
    while (lines.size() < cases.size()) {
        int ends[2];
        if (pipe(ends) != 0) std::abort();
        const std::size_t first = lines.size();
        const pid_t process = fork();
        if (process == 0) child(library, cases, first, ends[1]);
        close(ends[1]);
        std::string text;
        char buffer[4096];
        for (ssize_t size; (size = read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, std::size_t(size));
        close(ends[0]);
        waitpid(process, nullptr, 0);
        for (std::size_t end; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1))
            lines.push_back(text.substr(0, end));
        if (lines.size() == first) lines.push_back(cases[first].name + ": no line, the process ended");
    }
    return lines;
}

/// Word for word; * is any.
bool matches(const std::string& text, const std::string& expected) {
    std::istringstream here(text), recorded(expected);
    std::string mine, other;
    while (here >> mine)
        if (!(recorded >> other) || (mine != "*" && mine != other)) return false;
    return !(recorded >> other);
}

} // namespace

std::string hex(std::uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(value));
    return text;
}

int run_cases(int count, char** arguments, const std::vector<Case>& all) {
    const std::size_t every = count == 5 && std::strcmp(arguments[3], "--every") == 0 ? std::strtoul(arguments[4], nullptr, 10) : count == 3;
    if (every == 0) {
        std::fprintf(stderr, "usage: %s LIBCUDA RECORDING.txt [--every N]|--record\n", arguments[0]);
        return 2;
    }
    std::vector<Case> cases;
    for (std::size_t i = 0; i < all.size(); i += every) cases.push_back(all[i]);
    const std::vector<std::string> lines = lines_of(arguments[1], cases);
    if (std::strcmp(arguments[2], "--record") == 0) {
        for (const std::string& line : lines) std::puts(line.c_str());
        return 0;
    }
    std::map<std::string, std::string> recorded;
    std::ifstream file(arguments[2]);
    for (std::string line; std::getline(file, line);)
        if (const std::size_t colon = line.find(": "); colon != std::string::npos)
            recorded[line.substr(0, colon)] = line.substr(colon + 2);
    int different = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::string text = lines[i].substr(cases[i].name.size() + 2);
        const auto found = recorded.find(cases[i].name);
        const std::string expected = found == recorded.end() ? "(not recorded)" : found->second;
        if (matches(text, expected)) continue;
        ++different;
        std::printf("%s\n  here     %s\n  recorded %s\n", cases[i].name.c_str(), text.c_str(), expected.c_str());
    }
    std::printf("%zu cases, %d different\n", lines.size(), different);
    return different == 0 && !lines.empty() ? 0 : 1;
}

} // namespace recordings
