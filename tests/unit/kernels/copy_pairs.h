// SPDX-License-Identifier: Apache-2.0
// A right program and one that forgets something: under PTARMIGAN_ASYNC=late the wrong one gives wrong results, the right one never does,
// whenever copies are done.
#pragma once

#include <catch2/catch.hpp>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace ptarmigan::test {

/// PTARMIGAN_ASYNC for a while.
class Schedule {
public:
    explicit Schedule(const std::string& value) { setenv("PTARMIGAN_ASYNC", value.c_str(), 1); }
    ~Schedule() { unsetenv("PTARMIGAN_ASYNC"); }
};

struct Pair {
    std::string name, right, wrong;
    bool lucky = true; ///< the wrong one gives the right result when copies are eager; otherwise it may hang
    bool ordered = false; ///< in other orders of the threads than the default one the wrong one may be right by luck
};

/// `run(body, schedule)` gives the words that a program writes.
template <class Run> void check_pair(const Pair& pair, Run run, unsigned seeds = 10) {
    INFO(pair.name);
    const std::vector<std::uint32_t> expected = run(pair.right, "eager");
    REQUIRE(expected != std::vector<std::uint32_t>(expected.size()));
    CHECK((run(pair.right, "late") == expected));
    for (unsigned seed = 0; seed < seeds; ++seed) CHECK((run(pair.right, "random:" + std::to_string(seed)) == expected));
    if (pair.lucky) CHECK((run(pair.wrong, "eager") == expected));
    const char* order = std::getenv("PTARMIGAN_SCHEDULE");
    if (pair.ordered && order && std::string_view(order).starts_with("random")) return;
    CHECK((run(pair.wrong, "late") != expected));
}

} // namespace ptarmigan::test
