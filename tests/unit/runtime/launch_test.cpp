// SPDX-License-Identifier: Apache-2.0
// Launches of C++ kernels: coordinates, parameters, shared memory, checks, faults.
#include "fixture.h"
#include "runtime/code/fault.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <numeric>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace ptarmigan::runtime::test {

namespace {

void mark_cta(abi::CtaContext *cta) {
    const std::uint64_t linear =
        cta->ctaid[0] +
        cta->nctaid[0] * (cta->ctaid[1] + std::uint64_t{cta->nctaid[1]} * cta->ctaid[2]);
    if (linear == cta->linear_ctaid)
        pointer_parameter(cta)[linear] += value_parameter(cta);
}

void use_shared(abi::CtaContext *cta) {
    for (std::uint32_t i = 0; i < cta->shared_size; ++i)
        cta->shared[i] = 1;
    pointer_parameter(cta)[cta->ctaid[0]] =
        static_cast<std::uint32_t>(std::accumulate(cta->shared, cta->shared + cta->shared_size, 0));
}

// Writes to the address that it is given, null as well: the fault is what the test is about.
[[gnu::no_sanitize("undefined")]] void touch(abi::CtaContext *cta) {
    *reinterpret_cast<volatile std::uint32_t *>(pointer_parameter(cta)) = 1;
}

void beyond_shared(abi::CtaContext *cta) {
    *static_cast<volatile std::uint8_t *>(cta->shared + 65536 + 100) = 1;
}

void trapping(abi::CtaContext *cta) {
    cta->services->trap(cta, 0, 4, static_cast<std::uint32_t>(abi::Fault::trap), 12);
}

void empty(abi::CtaContext *) {}

} // namespace

TEST_CASE("launch: every CTA runs once, with its coordinates") {
    Fixture fixture;
    fixture.set_kernel(mark_cta);
    const auto shape =
        GENERATE(std::array<std::uint32_t, 3>{1, 1, 1}, std::array<std::uint32_t, 3>{1000, 1, 1},
                 std::array<std::uint32_t, 3>{7, 11, 13}, std::array<std::uint32_t, 3>{1, 300, 2});
    const std::size_t count = std::size_t{shape[0]} * shape[1] * shape[2];
    const DevicePointer device = fixture.allocate(count * 4);
    REQUIRE(ok(fixture.launch_kernel(shape, {32, 1, 1}, device, 5)));
    REQUIRE(ok(fixture.launch_kernel(shape, {32, 1, 1}, device, 2)));
    REQUIRE(ok(fixture.stream().synchronize()));
    const auto *values = reinterpret_cast<const std::uint32_t *>(device);
    CHECK(std::all_of(values, values + count, [](std::uint32_t value) { return value == 7; }));
}

TEST_CASE("launch: dynamic shared memory is there and follows each launch") {
    Fixture fixture;
    fixture.set_kernel(use_shared);
    const DevicePointer device = fixture.allocate(64);
    for (const std::uint32_t bytes : {100u, 49152u, 4096u, 0u}) {
        REQUIRE(ok(fixture.launch_kernel({4, 1, 1}, {32, 1, 1}, device, 0, bytes)));
        REQUIRE(ok(fixture.stream().synchronize()));
        CHECK(reinterpret_cast<const std::uint32_t *>(device)[3] == bytes);
    }
}

TEST_CASE("launch: limits give the driver's codes, and nothing sticks") {
    Fixture fixture;
    fixture.set_kernel(empty);
    const auto code = [&](std::array<std::uint32_t, 3> grid, std::array<std::uint32_t, 3> block,
                          std::uint32_t shared = 0) {
        return fixture.launch_kernel(grid, block, 16, 0, shared);
    };
    CHECK(code({1, 1, 1}, {1025, 1, 1}) == Status::invalid_value);
    CHECK(code({1, 1, 1}, {0, 1, 1}) == Status::invalid_value);
    CHECK(code({0, 1, 1}, {1, 1, 1}) == Status::invalid_value);
    CHECK(code({1, 65536, 1}, {1, 1, 1}) == Status::invalid_value);
    CHECK(code({1, 1, 65536}, {1, 1, 1}) == Status::invalid_value);
    CHECK(code({1u << 31, 1, 1}, {1, 1, 1}) == Status::invalid_value);
    CHECK(code({1, 1, 1}, {1, 1, 65}) == Status::invalid_value);
    CHECK(code({1, 1, 1}, {64, 64, 1}) == Status::invalid_value);
    CHECK(code({1, 1, 1}, {32, 1, 1}, 49152) == Status::success);
    CHECK(code({1, 1, 1}, {32, 1, 1}, 49153) == Status::invalid_value);
    CHECK(fixture.function->kernel().set_attribute(8, 232449) == Status::invalid_value);
    CHECK(fixture.function->kernel().set_attribute(8, 232448) == Status::success);
    CHECK(code({1, 1, 1}, {32, 1, 1}, 232448) == Status::success);
    LaunchConfig config;
    CHECK(launch(*fixture.function, config, fixture.stream(), nullptr, nullptr) ==
          Status::invalid_value);
    config.has_cluster = true;
    config.grid = {8, 1, 1};
    config.cluster = {3, 1, 1};
    DevicePointer pointer = 16;
    std::uint32_t value = 0;
    void *parameters[] = {&pointer, &value};
    CHECK(launch(*fixture.function, config, fixture.stream(), parameters, nullptr) ==
          Status::invalid_cluster_size);
    std::uint8_t buffer[16]{};
    std::size_t size = sizeof buffer;
    void *extra[] = {reinterpret_cast<void *>(1), buffer, reinterpret_cast<void *>(2), &size,
                     nullptr};
    config.has_cluster = false;
    CHECK(launch(*fixture.function, config, fixture.stream(), nullptr, extra) == Status::success);
    CHECK(launch(*fixture.function, config, fixture.stream(), parameters, extra) ==
          Status::invalid_value);
    CHECK(ok(fixture.stream().synchronize()));
}

TEST_CASE("launch: a grid that waits for the host runs while the host goes on") {
    Fixture fixture;
    fixture.set_kernel([](abi::CtaContext *cta) {
        auto *flag = reinterpret_cast<std::atomic<std::uint32_t> *>(pointer_parameter(cta));
        while (flag->load() == 0)
            cta->services->yield(cta, 0, 0, 0);
        flag[1].store(flag->load());
    });
    const DevicePointer device = fixture.allocate(64);
    REQUIRE(ok(fixture.launch_kernel({1, 1, 1}, {32, 1, 1}, device)));
    CHECK(fixture.stream().query() == Status::not_ready);
    reinterpret_cast<std::atomic<std::uint32_t> *>(device)->store(9);
    CHECK(ok(fixture.stream().synchronize()));
    CHECK(reinterpret_cast<std::uint32_t *>(device)[1] == 9);
}

// Faults poison the process, as with the driver: each runs in a child process.
namespace {

struct Outcome {
    int code = -1;
    std::string report;
};

Outcome fault_of(const std::function<void(Fixture &)> &set_kernel, DevicePointer argument,
                 std::uint32_t shared = 0) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0) {
        setenv("PTARMIGAN_LOG", "off", 1);
        Fixture fixture;
        set_kernel(fixture);
        int code =
            static_cast<int>(fixture.launch_kernel({20, 3, 1}, {64, 1, 1}, argument, 0, shared));
        if (code == 0)
            code = static_cast<int>(fixture.stream().synchronize());
        // It sticks, to this context and to new ones.
        DevicePointer pointer = 0;
        if (static_cast<int>(fixture.context().status()) != code)
            code = -2;
        std::shared_ptr<Context> other;
        if (static_cast<int>(Context::create(0, 0, other)) != code)
            code = -3;
        const std::string report = std::to_string(code) + " " + last_fault_report();
        const ssize_t written = write(ends[1], report.data(), report.size());
        _exit(written > 0 && pointer == 0 ? 0 : 1);
    }
    close(ends[1]);
    Outcome outcome;
    std::string text;
    char buffer[512];
    for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
        text.append(buffer, static_cast<std::size_t>(got));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    if (!text.empty())
        outcome.code = std::stoi(text);
    outcome.report = text;
    return outcome;
}

Outcome fault_of(abi::RunCta kernel, DevicePointer argument, std::uint32_t shared = 0) {
    return fault_of([kernel](Fixture &fixture) { fixture.set_kernel(kernel); }, argument, shared);
}

bool contains(const std::string &text, const char *part) {
    return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("fault: bad addresses end the grid with 700 and are named") {
    Outcome outcome = fault_of(touch, 0);
    INFO(outcome.report);
    CHECK(outcome.code == 700);
    CHECK(contains(outcome.report, "kernel k: illegal address 0x0 (write)"));
    CHECK(contains(outcome.report, "block ("));
    CHECK(fault_of(touch, 0xdead000000000000).code == 700);
    CHECK(fault_of(beyond_shared, 0, 100).code == 700);
}

TEST_CASE("fault: a trap ends the grid with 719 and says where") {
    const Outcome outcome = fault_of(trapping, 0);
    INFO(outcome.report);
    CHECK(outcome.code == 719);
    CHECK(contains(outcome.report, "test.ptx PTX line 12"));
    CHECK(contains(outcome.report, "thread (2,0,0)"));
}

TEST_CASE("fault: free() of a pointer that malloc() did not give ends with 716") {
    const Outcome outcome = fault_of(
        [](abi::CtaContext *cta) {
            void *memory = cta->services->device_malloc(cta, 100);
            cta->services->device_free(cta, static_cast<char *>(memory) + 8, 0, 0, 3);
        },
        0);
    CHECK(outcome.code == 716);
}

TEST_CASE("fault: a step that waits alone is a deadlock, not a hang") {
    const auto set = [](Fixture &fixture) {
        fixture.set_fiber_kernel(
            [](abi::CtaContext *cta, std::uint32_t step) {
                if (step == 1)
                    cta->services->barrier(cta, step, 1, 64, 0, 0xffffffff, 0);
            },
            2, 32);
    };
    const Outcome outcome = fault_of(set, 0);
    INFO(outcome.report);
    CHECK(outcome.code == 719);
    CHECK(contains(outcome.report, "deadlock"));
}

TEST_CASE("fault: inside a fiber the step is known") {
    const auto set = [](Fixture &fixture) {
        fixture.set_fiber_kernel(
            [](abi::CtaContext *cta, std::uint32_t step) {
                cta->services->barrier(cta, step, 0, 0, 0, 0xffffffff, 0);
                if (step == 1)
                    *reinterpret_cast<volatile int *>(pointer_parameter(cta)) = 1;
            },
            2, 32);
    };
    const Outcome outcome = fault_of(set, 64);
    INFO(outcome.report);
    CHECK(outcome.code == 700);
    CHECK(contains(outcome.report, "0x40 (write)"));
    CHECK(contains(outcome.report, "threads (32,0,0) to (63,0,0)"));
}

TEST_CASE("fault: a failed assertion gives 710") {
    const Outcome outcome = fault_of(
        [](abi::CtaContext *cta) {
            if (cta->linear_ctaid != 7)
                return;
            for (const unsigned lane : {5u, 9u})
                cta->services->assert_fail(cta, 0, lane, "x < 3", "file.cu", 12, "void f()", 1);
            cta->services->trap(cta, 0, 0x220, static_cast<std::uint32_t>(abi::Fault::assertion), 4);
        },
        0);
    INFO(outcome.report);
    CHECK(outcome.code == 710);
    CHECK(contains(outcome.report, "thread (5,0,0)"));
    CHECK(contains(outcome.report, "and 1 more of its step"));
}

TEST_CASE("fault: a misaligned address gives 716 and names address, line and thread") {
    const Outcome outcome = fault_of(
        [](abi::CtaContext *cta) {
            cta->services->misaligned(cta, 1, 0x18, 0x1003, 0, 21);
        },
        0);
    INFO(outcome.report);
    CHECK(outcome.code == 716);
    CHECK(contains(outcome.report, "misaligned address 0x1003 (read), test.ptx PTX line 21"));
    CHECK(contains(outcome.report, "thread (35,0,0)"));
}

} // namespace ptarmigan::runtime::test
