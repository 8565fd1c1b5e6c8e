// SPDX-License-Identifier: Apache-2.0
// What a driver answers where there are two devices. Answers: ../answers/device_answers_h200x2.txt.
// PROGRAM LIBCUDA - GROUP prints the answers of one group of questions.
#include "two_devices.h"

int main(int count, char** words) {
    answers::Answers all(count, words);
    const bool compares = count == 3;
    const std::pair<const char*, std::function<void()>> groups[] = {
        {"visible", [&] { devices::ask_visible(all); }},
        {"devices", [&] { devices::ask_devices(all); }},
        {"contexts", [&] { devices::ask_contexts(all); }},
        {"objects", [&] { devices::ask_objects(all); }},
        {"memory", [&] { devices::ask_memory(all); }},
        {"peers", [&] { devices::ask_peers(all); }},
        {"pools", [&] { devices::ask_pools(all); }},
        {"mapped", [&] { devices::ask_virtual_memory(all); }},
        {"sharing", [&] { devices::ask_sharing(all); }},
        {"faults", [&] { devices::ask_faults(all, !compares); }},
    };
    for (const auto& [name, ask] : groups)
        if (count < 4 || std::string(name) == words[3]) ask();
    // Kernels' accesses are not checked against whose memory it is (runtime/memory/README, 58).
    if (compares) all.forget("refused, ");
    return all.finish();
}
