// SPDX-License-Identifier: Apache-2.0
// What calls answer to a thread whose current context is not that of the objects they name: none is current, or
// another one. Answers: current_context_h100.txt (an H100's driver).
// Each call is made on a thread of its own; "own" is the thread's context before and after where it is the objects'.
#include "answers.h"
#include "current_context_calls.h"

#include <thread>
#include <unistd.h>

using namespace answers;

int main(int count, char** words) {
    Answers all(count, words);
    const std::size_t from = count > 3 ? std::strtoul(words[3], nullptr, 10) : 0; // behind a crash
    alarm(100);
    Objects objects;
    objects.prepare();
    void* other = nullptr;
    must("cuCtxCreate_v2", &other, 0u, 0);
    must("cuCtxPopCurrent_v2", static_cast<void**>(nullptr));
    std::size_t number = 0;
    for (const char* mode : {"none", "other"}) {
        Objects mine;
        must("cuCtxSetCurrent", objects.context);
        mine.prepare();
        for (const Call& asked : context_calls(mine)) {
            if (number++ < from) continue;
            std::string answer;
            std::thread([&] {
                if (*mode == 'o') must("cuCtxSetCurrent", other);
                answer = std::to_string(asked.make());
                void* now = nullptr;
                must("cuCtxGetCurrent", &now);
                if (now != (*mode == 'o' ? other : nullptr)) answer += now == mine.context ? " own" : now ? " changed" : " none";
            }).join();
            all.give(std::string(mode) + " " + asked.question, answer);
        }
    }
    return all.finish();
}
