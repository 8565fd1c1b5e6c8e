// SPDX-License-Identifier: Apache-2.0
#include "runtime/shim/jit_options.h"

#include "runtime/shim/cuda_types.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <cstring>

using namespace ptarmigan::shim;
using ptarmigan::runtime::Status;

TEST_CASE("jit options: logs are cut to their buffers and sizes are the bytes used") {
    char info[64] = "old", error[16] = "old";
    unsigned options[] = {jit_info_log_buffer, jit_info_log_buffer_size, jit_error_log_buffer,
                          jit_error_log_buffer_size};
    void* values[] = {info, reinterpret_cast<void*>(64), error, reinterpret_cast<void*>(16)};
    JitOptions jit(4, options, values);
    CHECK(jit.status() == Status::success);
    CHECK(jit.wants_logs());
    jit.finish("", "a text of more than sixteen bytes");
    CHECK(std::strcmp(info, "") == 0);
    CHECK(reinterpret_cast<std::uintptr_t>(values[1]) == 0);
    CHECK(std::strcmp(error, "a text of more ") == 0);
    CHECK(reinterpret_cast<std::uintptr_t>(values[3]) == 16);
}

TEST_CASE("jit options: unknown options and missing arrays are refused") {
    unsigned unknown[] = {999};
    void* values[] = {nullptr};
    CHECK(JitOptions(1, unknown, values).status() == Status::invalid_value);
    CHECK(JitOptions(1, nullptr, values).status() == Status::invalid_value);
    CHECK(JitOptions(1, unknown, nullptr).status() == Status::invalid_value);
    unsigned level[] = {jit_optimization_level};
    CHECK(JitOptions(1, level, values).status() == Status::success);
    CHECK(JitOptions(0, nullptr, nullptr).status() == Status::success);
}

TEST_CASE("jit options: wall time is stored as a float") {
    unsigned options[] = {jit_wall_time};
    void* values[] = {reinterpret_cast<void*>(-1)};
    JitOptions jit(1, options, values);
    jit.finish("", "");
    float time = -1;
    std::memcpy(&time, values, sizeof time);
    CHECK(time >= 0);
    CHECK(time < 10000);
}
