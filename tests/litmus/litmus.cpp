// SPDX-License-Identifier: Apache-2.0
// Runs every shape with every ordering, scope and placement, and counts the outcomes that the memory model forbids.
//   litmus LIBCUDA [INSTANCES [PART PARTS]]     prints a line per shape and placement; exit status 1 if something forbidden was seen.
// PART of PARTS: every PARTS-th shape from number PART on.
#include "tests/litmus/shapes.h"
#include "tests/recordings/driver.h"

#include <algorithm>
#include <cstdio>

namespace {

using namespace litmus;

class Runner {
public:
    Runner(const char* library, unsigned instances) : driver_(library), instances_(instances) {
        memory_ = driver_.allocate(std::size_t{4} * instances * most_locations);
        results_ = driver_.allocate(std::size_t{4} * instances * most_results);
        counters_ = driver_.allocate(instances / 1024 * 4);
    }

    /// How often the shape's outcome came up.
    unsigned run(const Shape& shape, Ordering ordering, Placement placement, const std::string& scope) {
        std::vector<std::uint32_t> memory(std::size_t{instances_} * most_locations), results(std::size_t{instances_} * most_results);
        driver_.upload(memory_, memory.data(), memory.size() * 4);
        driver_.upload(results_, results.data(), results.size() * 4);
        driver_.upload(counters_, memory.data(), instances_ / 1024 * 4);
        void* module = driver_.load(text_of(shape, ordering, placement, scope));
        void* parameters[] = {&memory_, &results_, &instances_, &counters_};
        const Extent extent = extent_of(shape, placement);
        driver_.launch(module, "k", extent.grid, extent.block, 1, parameters);
        driver_.download(memory.data(), memory_, memory.size() * 4);
        driver_.download(results.data(), results_, results.size() * 4);
        driver_.unload(module);
        unsigned seen = 0;
        for (std::size_t n = 0; n < instances_; ++n) {
            bool is_outcome = true;
            for (unsigned i = 0; i < most_results; ++i)
                is_outcome = is_outcome && (shape.outcome.results[i] == Outcome::any_value || shape.outcome.results[i] == results[i * instances_ + n]);
            for (unsigned i = 0; i < most_locations; ++i)
                is_outcome = is_outcome && (shape.outcome.locations[i] == Outcome::any_value || shape.outcome.locations[i] == memory[i * instances_ + n]);
            seen += is_outcome;
        }
        return seen;
    }

private:
    recordings::Driver driver_;
    unsigned instances_;
    recordings::Address memory_ = 0, results_ = 0, counters_ = 0;
};

} // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: %s LIBCUDA [INSTANCES [PART PARTS]]\n", argv[0]);
        return 2;
    }
    try {
        const unsigned instances = argc > 2 ? unsigned(std::stoul(argv[2])) / 1024 * 1024 : 1u << 16;
        Runner runner(argv[1], instances);
        unsigned long long forbidden = 0, runs = 0;
        const std::size_t part = argc > 4 ? std::stoul(argv[3]) : 0, parts = argc > 4 ? std::stoul(argv[4]) : 1;
        for (std::size_t number = part; number < shapes().size(); number += parts)
            for (Placement placement : all_placements) {
                const Shape& shape = shapes()[number];
                std::printf("%s, %s:", shape.name.c_str(), name_of(placement));
                for (Ordering ordering : all_orderings) {
                    const bool is_forbidden = std::count(shape.forbidden_by.begin(), shape.forbidden_by.end(), ordering) != 0;
                    unsigned long long seen = 0;
                    for (const std::string scope : {"cta", "gpu", "sys"}) {
                        // A scope that does not hold both threads orders nothing; volatile and its fences know one scope that matters.
                        if (scope == "cta" && placement == Placement::ctas) continue;
                        if (!is_forbidden && scope != "gpu") continue;
                        seen += runner.run(shape, ordering, placement, scope);
                        ++runs;
                    }
                    if (is_forbidden) forbidden += seen;
                    if (is_forbidden ? seen != 0 : true) std::printf(" %s%s %llu;", name_of(ordering), is_forbidden ? " FORBIDDEN" : "", seen);
                }
                std::printf("\n");
                std::fflush(stdout);
            }
        std::printf("%llu runs of %u instances, %llu forbidden outcomes\n", runs, instances, forbidden);
        return forbidden != 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
