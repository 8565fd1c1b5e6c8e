// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/fuzz/workers.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <poll.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fuzz {
namespace {

using Clock = std::chrono::steady_clock;

void write_all(int file, const void* data, std::size_t bytes) {
    for (const char* at = static_cast<const char*>(data); bytes != 0;) {
        const ssize_t written = write(file, at, bytes);
        if (written <= 0) _exit(3);
        at += written, bytes -= static_cast<std::size_t>(written);
    }
}

/// The last line that a process wrote to its error file, without what differs from one run to the next.
std::string last_words(int file) {
    char text[4096];
    const off_t size = lseek(file, 0, SEEK_END), from = std::max<off_t>(0, size - static_cast<off_t>(sizeof text));
    const ssize_t got = pread(file, text, sizeof text, from);
    std::string words(text, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    while (!words.empty() && words.back() == '\n') words.pop_back();
    words.erase(0, words.rfind('\n') + 1);
    return words.substr(0, 300);
}

} // namespace

Result result_of(const unsigned char* memory, std::size_t bytes) {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(recordings::hash_bytes(memory, bytes)));
    return digits;
}

struct Workers::Child {
    pid_t process = 0;
    int results = -1, errors = -1;
    Task task;
    std::size_t next = 0; ///< of task.seeds: the first without a result
    std::string received;
    Clock::time_point since;
};

Workers::Child Workers::start(Task task, const MakeProgram& make, bool sends_memory) const {
    Child child;
    child.task = std::move(task);
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    child.errors = memfd_create("stderr", 0);
    std::fflush(nullptr);
    child.process = fork();
    if (child.process < 0) throw std::runtime_error("no process");
    child.since = Clock::now();
    if (child.process != 0) {
        close(ends[1]);
        child.results = ends[0];
        return child;
    }
    close(ends[0]);
    dup2(child.errors, 2);
    for (const char* variable : configurations_[child.task.configuration].environment) putenv(const_cast<char*>(variable));
    const auto report = [&](std::uint32_t seed, const std::string& text) {
        const std::string line = std::to_string(seed) + " " + text + "\n";
        write_all(ends[1], line.data(), line.size());
    };
    std::uint32_t seed = child.task.seeds.front();
    try {
        Runner runner(library_.c_str());
        for (std::uint32_t s : child.task.seeds) {
            seed = s;
            const std::vector<unsigned char> memory = runner.run(make(seed));
            if (const std::string words = last_words(child.errors); words.find("in another form") != std::string::npos)
                throw std::runtime_error("not compiled as asked: " + words);
            if (sends_memory) write_all(ends[1], memory.data(), memory.size());
            else report(seed, result_of(memory.data(), memory.size()));
        }
    } catch (const std::exception& error) {
        // A fault stays with the context: another process goes on.
        if (!sends_memory) report(seed, std::string("error: ") + error.what());
        else std::fprintf(stderr, "%s\n", error.what());
        _exit(1);
    }
    _exit(0);
}

void Workers::run(std::vector<Task> all_tasks, unsigned jobs, const MakeProgram& make,
                  const std::function<void(unsigned, std::uint32_t, const Result&)>& visit) const {
    std::deque<Task> tasks(std::make_move_iterator(all_tasks.begin()), std::make_move_iterator(all_tasks.end()));
    std::list<Child> children;
    const Clock::time_point begin = Clock::now();
    while (!tasks.empty() || !children.empty()) {
        if (seconds_ != 0 && Clock::now() - begin > std::chrono::seconds(seconds_)) tasks.clear();
        while (!tasks.empty() && children.size() < jobs) {
            children.push_back(start(std::move(tasks.front()), make, false));
            tasks.pop_front();
        }
        std::vector<pollfd> files;
        for (const Child& child : children) files.push_back({child.results, POLLIN, 0});
        poll(files.data(), files.size(), 1000);
        std::size_t index = 0;
        for (auto child = children.begin(); child != children.end();) {
            const short events = files[index++].revents;
            bool ended = false, late = false;
            if (events != 0) {
                char text[4096];
                const ssize_t got = read(child->results, text, sizeof text);
                if (got > 0) child->received.append(text, static_cast<std::size_t>(got));
                ended = got == 0 || (got < 0 && errno != EINTR);
            }
            for (std::size_t end; (end = child->received.find('\n')) != std::string::npos;) {
                const std::string line = child->received.substr(0, end);
                child->received.erase(0, end + 1);
                const std::size_t space = line.find(' ');
                Result result = line.substr(space + 1);
                if (is_error(result)) result += ", " + last_words(child->errors);
                ++child->next;
                child->since = Clock::now();
                visit(child->task.configuration, static_cast<std::uint32_t>(std::stoul(line.substr(0, space))), result);
            }
            if (!ended && Clock::now() - child->since > std::chrono::seconds(time_limit_)) {
                kill(child->process, SIGKILL);
                ended = late = true;
            }
            if (!ended) {
                ++child;
                continue;
            }
            int status = 0;
            waitpid(child->process, &status, 0);
            std::vector<std::uint32_t>& seeds = child->task.seeds;
            if (child->next < seeds.size()) {
                // Of an error that was reported it is the driver's process that ended; a signal or a hang is this program's.
                if (late || WIFSIGNALED(status) || child->next == 0) {
                    const std::string what = late ? "no end in " + std::to_string(time_limit_) + " s" : WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status)) : "exit";
                    visit(child->task.configuration, seeds[child->next++], "error: " + what + ", " + last_words(child->errors));
                }
                seeds.erase(seeds.begin(), seeds.begin() + static_cast<std::ptrdiff_t>(child->next));
                if (!seeds.empty()) tasks.push_front(std::move(child->task));
            }
            close(child->results);
            close(child->errors);
            child = children.erase(child);
        }
    }
}

Result Workers::run_one(unsigned configuration, const Program& program, std::vector<unsigned char>* memory) const {
    Child child = start({configuration, {0}}, [&](std::uint32_t) { return program; }, true);
    std::string received;
    bool late = false;
    while (true) {
        pollfd file{child.results, POLLIN, 0};
        if (poll(&file, 1, 1000) > 0) {
            char text[65536];
            const ssize_t got = read(child.results, text, sizeof text);
            if (got <= 0) break;
            received.append(text, static_cast<std::size_t>(got));
        } else if (Clock::now() - child.since > std::chrono::seconds(time_limit_)) {
            kill(child.process, SIGKILL);
            late = true;
            break;
        }
    }
    int status = 0;
    waitpid(child.process, &status, 0);
    Result result;
    if (late) result = "error: no end in " + std::to_string(time_limit_) + " s";
    else if (WIFSIGNALED(status)) result = "error: signal " + std::to_string(WTERMSIG(status)) + ", " + last_words(child.errors);
    else if (WEXITSTATUS(status) != 0) result = "error: " + last_words(child.errors);
    else {
        result = result_of(reinterpret_cast<const unsigned char*>(received.data()), received.size());
        if (memory) memory->assign(received.begin(), received.end());
    }
    close(child.results);
    close(child.errors);
    return result;
}

} // namespace fuzz
