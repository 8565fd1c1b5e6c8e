// SPDX-License-Identifier: Apache-2.0
// How many clusters a driver says are active at a time (cuOccupancyMaxActiveClusters), and the largest size (cuOccupancyMaxPotentialClusterSize).
//
//     cluster_occupancy LIBCUDA [RECORDING]    prints a line per question, or compares them
#include "tests/recordings/driver.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>

using recordings::Driver;

namespace {

/// CUlaunchConfig with one attribute, as cuda.h lays them out.
struct alignas(8) Attribute {
    std::uint32_t id = 4; ///< CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    std::uint32_t padding = 0;
    std::uint32_t cluster[3]{};
    std::uint8_t rest[52]{};
};
static_assert(sizeof(Attribute) == 72);
struct Config {
    std::uint32_t grid[3], block[3], dynamic_shared;
    void* stream = nullptr;
    Attribute* attributes;
    std::uint32_t attribute_count = 1;
};
static_assert(sizeof(Config) == 56);

constexpr int max_dynamic_shared = 8, non_portable_cluster = 14; ///< CU_FUNC_ATTRIBUTE_*

std::string answer(Driver& driver, void* function, std::array<unsigned, 3> cluster, unsigned threads, unsigned bytes, bool non_portable) {
    driver.call<void*, int, int>("cuFuncSetAttribute", function, non_portable_cluster, non_portable);
    Attribute attribute;
    std::memcpy(attribute.cluster, cluster.data(), sizeof attribute.cluster);
    Config config{{cluster[0] * 4096, cluster[1], cluster[2]}, {threads, 1, 1}, bytes, nullptr, &attribute, 1};
    char text[160];
    const auto ask = [&](const char* entry, Config& question) -> std::string {
        int value = -1;
        try {
            driver.call<int*, void*, Config*>(entry, &value, function, &question);
        } catch (const std::runtime_error& error) {
            return std::strrchr(error.what(), ':') + 1; // " error N"
        }
        return " " + std::to_string(value);
    };
    const std::string clusters = ask("cuOccupancyMaxActiveClusters", config);
    Config none = config;
    none.attribute_count = 0;
    const std::string largest = ask("cuOccupancyMaxPotentialClusterSize", none);
    std::snprintf(text, sizeof text, "%ux%ux%u of %u threads, %u bytes%s:%s, largest%s", cluster[0], cluster[1], cluster[2], threads, bytes,
                  non_portable ? ", non-portable" : "", clusters.c_str(), largest.c_str());
    return text;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    std::ifstream recording;
    if (argc > 2) recording.open(argv[2]);
    Driver driver(argv[1]);
    void* module = driver.load(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\nret;\n}\n");
    void* function = nullptr;
    driver.call<void**, void*, const char*>("cuModuleGetFunction", &function, module, "k");
    driver.call<void*, int, int>("cuFuncSetAttribute", function, max_dynamic_shared, 232448);
    unsigned failed = 0;
    const auto show = [&](std::array<unsigned, 3> cluster, unsigned threads, unsigned bytes, bool non_portable) {
        const std::string now = answer(driver, function, cluster, threads, bytes, non_portable);
        std::string line;
        if (argc == 2) {
            std::puts(now.c_str());
        } else if (!std::getline(recording, line) || line != now) {
            ++failed;
            std::printf("recorded %s\n     now %s\n", line.c_str(), now.c_str());
        }
    };
    for (const std::array<unsigned, 3> cluster : {std::array{1u, 1u, 1u}, {2, 1, 1}, {3, 1, 1}, {4, 1, 1}, {5, 1, 1}, {6, 1, 1}, {7, 1, 1}, {8, 1, 1}, {2, 2, 1}, {2, 2, 2}, {1, 4, 2},
                                                  {9, 1, 1}, {10, 1, 1}, {12, 1, 1}, {16, 1, 1}, {4, 4, 1}, {17, 1, 1}, {32, 1, 1}})
        for (const unsigned threads : {32, 256, 512, 1024})
            for (const unsigned bytes : {0, 40000, 100000, 116224, 200000, 232448}) {
                const bool large = cluster[0] * cluster[1] * cluster[2] > 8, both = threads == 256 && bytes == 0;
                if (both || !large) show(cluster, threads, bytes, false);
                if (both || large) show(cluster, threads, bytes, true);
            }
    return failed != 0;
}
