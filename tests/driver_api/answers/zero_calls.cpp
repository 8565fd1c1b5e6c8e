// SPDX-License-Identifier: Apache-2.0
// What a driver answers to each of its entries when all arguments are zero: before cuInit, without a context, and with one.
//   PROGRAM LIBCUDA             prints "state entry TAB answer": a status, "crash" or "hangs"
//   PROGRAM LIBCUDA ANSWERS     compares; where the recorded driver crashed or hung, any status will do
// Children make the calls, so that one that crashes costs the others nothing. Answers: zero_calls_h100.txt.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <map>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

struct Entry {
    const char* name;
    bool asked; ///< not of entries that are to come
};

constexpr Entry entries[] = {
#define IMPLEMENTED(name, ...) {#name, true},
#define UNSUPPORTED(name, ...) {#name, false},
#define REFUSED(name, ...) {#name, false}, // with a status of its own
#include "runtime/shim/driver_api.def"
};
constexpr int entry_count = sizeof entries / sizeof entries[0];

const char* library_name;

/// Those after which the state is another one.
bool changes_state(const char* name) {
    for (const char* part : {"BeginCapture", "cuInit", "cuCtxDestroy", "PrimaryCtx", "cuCtxSetCurrent", "cuCtxPopCurrent", "cuCtxPushCurrent", "cuCtxDetach", "cuCtxSetFlags", "cuCheckpoint", "cuGLInit", "cuGLCtx", "cuVDPAU"})
        if (std::strstr(name, part)) return true;
    return false;
}

using Call = int (*)(std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, double);

/// cuIpcOpen*: a structure of 64 bytes by value, whose address is passed on AArch64.
struct ProcessHandle {
    char bytes[64];
};
using CallWithHandle = int (*)(void*, ProcessHandle, unsigned);

int call_with_zeros(const char* name, void* entry) {
    if (std::strncmp(name, "cuIpcOpen", 9) == 0) return reinterpret_cast<CallWithHandle>(entry)(nullptr, ProcessHandle{}, 0);
    return reinterpret_cast<Call>(entry)(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0);
}

[[noreturn]] void make_calls(const char* state, int first, int stride, std::FILE* out) {
    alarm(30);
    void* const library = dlopen(library_name, RTLD_NOW);
    if (!library) std::_Exit(3);
    if (*state != 'b') {
        if (reinterpret_cast<int (*)(unsigned)>(dlsym(library, "cuInit"))(0) != 0) std::_Exit(3);
        void* context = nullptr;
        if (*state == 'c' && reinterpret_cast<int (*)(void**, unsigned, int)>(dlsym(library, "cuCtxCreate_v2"))(&context, 0, 0) != 0) std::_Exit(3);
    }
    for (int i = first; i < entry_count; i += stride) {
        const char* const name = entries[i].name;
        void* const entry = dlsym(library, name);
        if (!entry || std::strstr(name, "Multicast") || std::strstr(name, "Checkpoint")) continue; // shared machines must not be asked these
        std::fprintf(out, "%d %s\t", i, name);
        std::fflush(out);
        alarm(5);
        const int result = call_with_zeros(name, entry);
        std::fprintf(out, "%d\n", result);
        std::fflush(out);
        if (changes_state(name)) std::_Exit(4);
    }
    std::_Exit(0);
}

/// The answers of one state, by name.
void ask(const char* state, std::map<std::string, std::string>& answers) {
    constexpr int stride = 12;
    struct Slice {
        int next;
        int pipe;
        pid_t child;
    };
    std::vector<Slice> slices;
    const auto start = [&](Slice& slice) {
        int ends[2];
        if (pipe(ends) != 0) std::_Exit(2);
        slice.child = fork();
        if (slice.child == 0) {
            close(ends[0]);
            make_calls(state, slice.next, stride, fdopen(ends[1], "w"));
        }
        close(ends[1]);
        slice.pipe = ends[0];
    };
    for (int i = 0; i < stride; ++i) {
        slices.push_back({i, -1, 0});
        start(slices.back());
    }
    for (Slice& slice : slices)
        for (bool ended = false; !ended;) {
            std::string text;
            char buffer[4096];
            for (ssize_t got; (got = read(slice.pipe, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(got));
            close(slice.pipe);
            int status = 0;
            waitpid(slice.child, &status, 0);
            int last = slice.next - stride;
            for (std::size_t at = 0; at < text.size();) {
                const std::size_t end = std::min(text.find('\n', at), text.size());
                const std::string line = text.substr(at, end - at);
                const std::size_t space = line.find(' '), tab = line.find('\t');
                last = std::atoi(line.c_str());
                std::string answer = line.substr(tab + 1);
                if (answer.empty()) answer = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "hangs" : "crash";
                answers[std::string(state) + " " + line.substr(space + 1, tab - space - 1)] = answer;
                at = end + 1;
            }
            slice.next = last + stride;
            ended = WIFEXITED(status) && WEXITSTATUS(status) != 4;
            if (WIFEXITED(status) && WEXITSTATUS(status) == 3) std::fprintf(stderr, "no driver for %s\n", state);
            if (slice.next >= entry_count) ended = true;
            if (!ended) start(slice);
        }
}

} // namespace

int main(int count, char** words) {
    if (count < 2) return 2;
    library_name = words[1];
    std::map<std::string, std::string> answers;
    for (const char* state : {"before", "none", "context"}) ask(state, answers);
    if (count == 2) {
        for (const auto& [question, answer] : answers) std::printf("%s\t%s\n", question.c_str(), answer.c_str());
        return 0;
    }
    std::map<std::string, bool> is_asked;
    for (const Entry& entry : entries) is_asked[entry.name] = entry.asked;
    std::ifstream file(words[2]);
    int wrong = 0, compared = 0;
    for (std::string line; std::getline(file, line);) {
        const std::size_t tab = line.find('\t');
        if (line.empty() || line[0] == '#' || tab == std::string::npos) continue;
        const std::string question = line.substr(0, tab), recorded = line.substr(tab + 1, line.find('\t', tab + 1) - tab - 1);
        const std::string name = question.substr(question.find(' ') + 1);
        if (!is_asked[name]) continue;
        ++compared;
        // A third column is our answer, where it is another one, and why.
        const std::size_t other = line.find('\t', tab + 1);
        const std::string expected = other == std::string::npos ? recorded : line.substr(other + 1, line.find(' ', other) - other - 1);
        const bool any = expected == "crash" || expected == "hangs";
        if (any ? answers[question] != "crash" && answers[question] != "hangs" : answers[question] == expected) continue;
        // Before cuInit the driver looks at some arguments first: any refusal will do.
        if (question.starts_with("before ") && expected != "0" && answers[question] != "0") continue;
        std::fprintf(stderr, "%s: %s, recorded %s\n", question.c_str(), answers[question].c_str(), recorded.c_str());
        ++wrong;
    }
    for (const auto& [question, answer] : answers)
        if (answer == "crash" || answer == "hangs") std::fprintf(stderr, "%s: %s\n", question.c_str(), answer.c_str()), ++wrong;
    return wrong != 0 || compared == 0;
}
