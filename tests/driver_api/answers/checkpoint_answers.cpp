// SPDX-License-Identifier: Apache-2.0
// What a process that locks, keeps, restores and unlocks another one is told, with cuInit and without it, and what
// becomes of a call that the other makes meanwhile. Answers: checkpoint_answers_h200.txt.
#include "processes.h"

#include <csignal>
#include <ctime>

using namespace answers;

namespace {

/// CUcheckpointLockArgs.
struct LockArguments {
    unsigned timeout_ms = 0, reserved0 = 0;
    std::uint64_t reserved1[7] = {};
};

std::string state_of(int pid) {
    int state = 77;
    const int result = call("cuCheckpointProcessGetState", pid, &state);
    return number(result) + " state " + number(state);
}
std::string thread_of(int pid) {
    int thread = -7;
    const int result = call("cuCheckpointProcessGetRestoreThreadId", pid, &thread);
    return number(result) + " " + (thread > 0 ? "positive" : number(thread));
}
int lock(int pid, unsigned milliseconds) {
    const LockArguments arguments{milliseconds};
    return call("cuCheckpointProcessLock", pid, &arguments);
}

/// A process that reads a word of its device's memory when it is asked to, and tells what it read and whether that took
/// more than a second.
class Target {
public:
    explicit Target(bool uses_driver) {
        int question[2], answer[2];
        if (pipe(question) != 0 || pipe(answer) != 0) std::_Exit(2);
        pid = fork();
        if (pid == 0) {
            close(question[1]);
            CUdeviceptr memory = 0;
            if (uses_driver) {
                start();
                must("cuMemAlloc_v2", &memory, std::size_t{1} << 20);
                must("cuMemsetD32_v2", memory, 7u, std::size_t{256});
            }
            char byte = 'r';
            if (write(answer[1], &byte, 1) != 1) std::_Exit(3);
            while (read(question[0], &byte, 1) == 1) {
                const std::time_t before = std::time(nullptr);
                int words[3] = {call("cuMemcpyDtoH_v2", static_cast<void*>(&words[1]), memory, std::size_t{4})};
                words[2] = std::time(nullptr) - before > 1;
                if (write(answer[1], words, sizeof words) != sizeof words) std::_Exit(3);
            }
            std::_Exit(0);
        }
        close(question[0]);
        ask_ = question[1], answer_ = answer[0];
        char byte;
        if (read(answer_, &byte, 1) != 1) std::_Exit(3);
    }
    ~Target() { end(); }
    void end() {
        if (pid <= 0) return;
        kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
        pid = 0;
    }
    void ask() const {
        if (write(ask_, "x", 1) != 1) std::_Exit(3);
    }
    std::string answer() const {
        int words[3]{};
        if (read(answer_, words, sizeof words) != sizeof words) return "none";
        return number(words[0]) + " " + number(words[1]) + (words[2] ? " late" : " at once");
    }
    pid_t pid;

private:
    int ask_, answer_;
};

void ask_all(const Told& told, bool initializes) {
    Target target(true), plain(false); // before cuInit, of which a forked child has no use
    if (initializes) must("cuInit", 0u);
    const std::string where = initializes ? "initialized, " : "no cuInit, ";
    const auto give = [&](const std::string& question, const std::string& answer) { told.give(where + question, answer); };
    const auto unlock = [](int pid) { return call("cuCheckpointProcessUnlock", pid, nullptr); };
    const auto keep = [](int pid) { return call("cuCheckpointProcessCheckpoint", pid, nullptr); };
    const auto restore = [](int pid) { return call("cuCheckpointProcessRestore", pid, nullptr); };
    const int pid = target.pid;
    const auto give_with_state = [&](const std::string& question, int result) {
        give(question, number(result) + " " + state_of(pid));
    };
    give("state", state_of(pid));
    give("thread", thread_of(pid));
    give("unlock of a running one", number(unlock(pid)));
    give("checkpoint of a running one", number(keep(pid)));
    give("restore of a running one", number(restore(pid)));
    give_with_state("lock", lock(pid, 5000));
    give_with_state("lock again", lock(pid, 300));
    give("thread of a locked one", thread_of(pid));
    target.ask();
    sleep(2);
    give_with_state("checkpoint", keep(pid));
    give("checkpoint again", number(keep(pid)));
    give_with_state("unlock of a kept one", unlock(pid));
    give_with_state("lock of a kept one", lock(pid, 300));
    give_with_state("restore", restore(pid));
    give_with_state("restore again", restore(pid));
    give_with_state("unlock", unlock(pid));
    give("the call made while it was locked", target.answer());
    give_with_state("lock without arguments", call("cuCheckpointProcessLock", pid, nullptr));
    give("unlock again", number(unlock(pid)));
    give("null state", number(call("cuCheckpointProcessGetState", pid, nullptr)));
    give("null thread", number(call("cuCheckpointProcessGetRestoreThreadId", pid, nullptr)));
    target.end();
    give("state of a process that ended", state_of(pid));
    give("state of one without CUDA", state_of(plain.pid));
    give("thread of one without CUDA", thread_of(plain.pid));
    give("lock of one without CUDA", number(lock(plain.pid, 300)));
    give("state of itself", state_of(getpid()));
}

} // namespace

int main(int count, char** words) {
    Answers all(count, words);
    for (const bool initializes : {false, true})
        in_process(all, "a process", [&](const Told& told) { ask_all(told, initializes); });
    return all.finish();
}
