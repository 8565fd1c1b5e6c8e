// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/build/call_frames.h"

#include <catch2/catch.hpp>

using namespace ptarmigan::translator;

namespace {

using Frames = std::map<ptarmigan::ptx::FunctionId, CallFrame>;

} // namespace

TEST_CASE("the deepest chain of calls is the sum of its frames, not of all") {
    const Frames frames{{0, {16, 16, {1, 2}}}, {1, {100, 0, {3}}}, {2, {400, 0, {3, 4}}}, {3, {1000, 0, {}}}, {4, {900, 0, {}}}};
    const FrameDepth depth = frame_depth(frames, 0);
    CHECK(depth.bytes == 1416);
    CHECK_FALSE(depth.recursive);
    CHECK(depth.scale == 1);
    CHECK(frame_depth(frames, 1).bytes == 1100);
}

TEST_CASE("a circle of calls is entered once, and what it calls comes on top") {
    // 1 -> 2 -> 3 -> 1, 3 -> 4; 2 is reached from 0 too, after 4 has been seen
    const Frames frames{{0, {16, 16, {4, 1, 2}}}, {1, {96, 48, {2}}}, {2, {64, 64, {3}}}, {3, {320, 0, {1, 4}}}, {4, {1000, 8, {}}}};
    const FrameDepth depth = frame_depth(frames, 0);
    CHECK(depth.bytes == 16 + 320 + 1000);
    CHECK(depth.recursive);
    CHECK(depth.scale == 20); // 320 / 16: of 3, which has nothing but a return address
}

TEST_CASE("a function that calls itself is a circle, one called twice is none") {
    CHECK(frame_depth({{0, {0, 0, {1}}}, {1, {48, 32, {1}}}}, 0).recursive);
    CHECK(frame_depth({{0, {0, 0, {1}}}, {1, {48, 32, {1}}}}, 0).scale == 2);
    CHECK_FALSE(frame_depth({{0, {0, 0, {1, 2}}}, {1, {48, 32, {2}}}, {2, {16, 0, {}}}}, 0).recursive);
}
