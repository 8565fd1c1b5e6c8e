// SPDX-License-Identifier: Apache-2.0
// When a launch's wait for compilations is worth a line, and what the line counts.
#include "runtime/module/compile_waits.h"

#include <catch2/catch.hpp>

using namespace std::chrono_literals;
using ptarmigan::runtime::CompileWaits;

namespace {

const CompileWaits::Time start = CompileWaits::Time() + 1h;

} // namespace

TEST_CASE("compile waits: one long compilation") {
    CompileWaits waits;
    CHECK(!waits.line(start, 100ms));
    waits.begin("k", start);
    CHECK(!waits.line(start + 1900ms, 100ms));
    CHECK(waits.line(start + 2100ms, 100ms) == "compiling (0 kernels so far, 2.1 s): k");
    CHECK(!waits.line(start + 2150ms, 100ms));
    CHECK(waits.line(start + 2300ms, 100ms) == "compiling (0 kernels so far, 2.3 s): k");
    waits.forget_last_line();
    CHECK(waits.line(start + 2310ms, 100ms) == "compiling (0 kernels so far, 2.3 s): k");
    CHECK(waits.end("k", start + 3s));
    CHECK(!waits.line(start + 4s, 100ms));
}

TEST_CASE("compile waits: many short ones in a row count together, later ones by themselves") {
    CompileWaits waits;
    auto now = start;
    for (int i = 0; i < 19; ++i) {
        waits.begin("k" + std::to_string(i), now);
        now += 100ms;
        CHECK(!waits.line(now, 100ms));
        CHECK(waits.end("k" + std::to_string(i), now));
        now += 500ms; // the program's own
    }
    waits.begin("last", now);
    CHECK(waits.line(now + 200ms, 100ms) == "compiling (19 kernels so far, 2.1 s): last");
    CHECK(waits.end("last", now + 200ms));
    now += 1min;
    waits.begin("later", now);
    CHECK(!waits.line(now + 1s, 100ms));
    CHECK(waits.line(now + 2s, 100ms) == "compiling (0 kernels so far, 2.0 s): later");
}

TEST_CASE("compile waits: threads that wait at one time") {
    CompileWaits waits;
    waits.begin("a", start);
    waits.begin("b", start + 1s);
    CHECK(!waits.end("a", start + 1500ms));
    CHECK(waits.line(start + 3s, 100ms) == "compiling (1 kernels so far, 3.0 s): b");
    CHECK(waits.end("b", start + 4s));
}
