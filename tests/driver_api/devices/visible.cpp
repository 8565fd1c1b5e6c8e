// SPDX-License-Identifier: Apache-2.0
// Which devices CUDA_VISIBLE_DEVICES shows, and in what order.
#include "two_devices.h"

#include <array>
#include <cstdlib>

namespace devices {
namespace {

using Uuid = std::array<unsigned char, 16>;

std::string text_of(const Uuid& uuid) {
    std::string all;
    char digits[3];
    for (std::size_t i = 0; i < uuid.size(); ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) all += '-';
        std::snprintf(digits, sizeof digits, "%02x", uuid[i]);
        all += digits;
    }
    return all;
}

/// Of the devices that there are, whatever the variable says.
std::vector<Uuid> all_devices() {
    int ends[2];
    if (pipe(ends) != 0) std::_Exit(2);
    const pid_t child = fork();
    if (child == 0) {
        unsetenv("CUDA_VISIBLE_DEVICES");
        must("cuInit", 0u);
        int count = 0;
        must("cuDeviceGetCount", &count);
        for (int i = 0; i < count; ++i) {
            Uuid uuid{};
            must("cuDeviceGetUuid_v2", uuid.data(), i);
            if (write(ends[1], uuid.data(), uuid.size()) < 0) std::_Exit(3);
        }
        std::_Exit(0);
    }
    close(ends[1]);
    std::vector<Uuid> all;
    for (Uuid uuid{}; read(ends[0], uuid.data(), uuid.size()) == static_cast<ssize_t>(uuid.size());) all.push_back(uuid);
    close(ends[0]);
    waitpid(child, nullptr, 0);
    return all;
}

} // namespace

void ask_visible(Answers& answers) {
    const std::vector<Uuid> all = all_devices();
    if (all.size() != 2) answers.give("devices", static_cast<long long>(all.size()));
    if (all.size() < 2) return;
    // U0 and U1 stand for the UUIDs, A0 and A1 for their beginnings, V1 for capital letters.
    const auto expand = [&](std::string list) {
        const std::string u0 = text_of(all[0]), u1 = text_of(all[1]);
        std::string capitals = u1;
        for (char& c : capitals) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
        const std::pair<std::string, std::string> words[] = {{"U0", u0}, {"U1", u1}, {"A0", u0.substr(0, 9)}, {"A1", u1.substr(0, 9)}, {"B1", u1.substr(0, 4)}, {"V1", capitals}};
        for (const auto& [name, value] : words)
            for (std::size_t at; (at = list.find(name)) != std::string::npos;) list.replace(at, 2, value);
        return list;
    };
    const char* const lists[] = {"0", "1", "0,1", "1,0", "0,0", "1,1", "0,1,0", "0,1,1", "0,1,2", "0,1,-1", "0,1,x", "", " ", ",", "-1", "0,-1,1", "1,-1", "-1,0", "7", "0,7,1", "7,0", "1,7,0",
        "1,7,1", "1,x,1", "GPU-U0", "GPU-U1", "GPU-U1,GPU-U0", "GPU-U0,GPU-U0", "GPU-U1,GPU-U1", "GPU-U0,0", "GPU-U1,0", "GPU-U0,1", "0,GPU-U0", "0,GPU-U1", "1,GPU-U0", "1,GPU-U1", "GPU-A1", "GPU-A0,GPU-A1",
        "GPU-A1,GPU-A0", "GPU-B1", "GPU-", "GPU-V1", "gpu-U1", "U1", "GPU-U1x", "GPU-U1 ", " GPU-U1", "GPU-U1,x", "GPU-U1,GPU-x", "GPU-x", "GPU-x,1", "GPU-U1,GPU-x,GPU-U0", "0 1", "1 0", "0;1", "1;0", " 1", "1 ", " 1 , 0 ", "1, 0",
        "1 ,0", "1,,0", ",1", "1,", "0x1", "1x", "1x,0", "01", "00", "+1", "+1,+0", "1a", "1a,0", "a1", "1.5", "1.5,0", "1\t,0", "\t1", "\n1", "MIG-U1", "MIG-A1", "MIG-U1,MIG-U0", "MIG-U1,GPU-U0", "GPU-U1,MIG-U0", "MIG-", "GPU-A1x", "GPU-U1xyz,GPU-U0", "MIG-GPU-U0/0/0", "1,MIG-U0", "0,MIG-GPU-U0/0/0,1", "NoDevFiles", "none", "all", "void",
        "4294967296", "4294967297", "18446744073709551617", "2147483648,1", "\"1\"", "1-0", "0-1", "0:1", "1/0", "- 1", "--1", "-0", "-1x", "1,-0"};
    for (const char* list : lists) {
        in_process(answers, std::string("visible ") + list, [&](const Told& told) {
            setenv("CUDA_VISIBLE_DEVICES", expand(list).c_str(), 1);
            const int first = call("cuInit", 0u);
            std::string answer = number(first);
            int count = -1;
            const int counted = call("cuDeviceGetCount", &count);
            answer += " " + number(counted) + " " + number(count);
            for (int i = 0; i < count; ++i) {
                Uuid uuid{};
                if (const int result = call("cuDeviceGetUuid_v2", uuid.data(), i)) answer += " !" + number(result);
                else answer += uuid == all[0] ? " d0" : uuid == all[1] ? " d1" : " another";
            }
            std::string shown = list;
            for (char& c : shown) if (c == '\t' || c == '\n') c = c == '\t' ? 'T' : 'N';
            told.give("visible \"" + shown + "\"", answer);
        });
    }
    for (const char* order : {"PCI_BUS_ID", "FASTEST_FIRST", "pci_bus_id", "junk", ""})
        in_process(answers, std::string("order ") + order, [&](const Told& told) {
            setenv("CUDA_VISIBLE_DEVICES", "1,0", 1);
            setenv("CUDA_DEVICE_ORDER", order, 1);
            const int first = call("cuInit", 0u);
            Uuid uuid{};
            const int asked = call("cuDeviceGetUuid_v2", uuid.data(), 0);
            told.give(std::string("order ") + order, list({number(first), number(asked), uuid == all[0] ? "d0" : uuid == all[1] ? "d1" : "another"}));
        });
    in_process(answers, "visible, set later", [&](const Told& told) {
        must("cuInit", 0u);
        setenv("CUDA_VISIBLE_DEVICES", "1", 1);
        int count = 0;
        const int again = call("cuInit", 0u);
        const int counted = call("cuDeviceGetCount", &count);
        told.give("visible, set later", number(again) + " " + number(counted) + " " + number(count));
    });
}

} // namespace devices
