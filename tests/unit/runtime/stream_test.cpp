// SPDX-License-Identifier: Apache-2.0
// Order of operations within and between streams, events, callbacks.
#include "fixture.h"

#include <atomic>
#include <chrono>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace ptarmigan::runtime;
using namespace ptarmigan::runtime::test;

namespace {

void spin_until(const std::atomic<bool> &flag) {
    while (!flag.load())
        std::this_thread::yield();
}

/// Fails the test instead of hanging it.
bool becomes_true(const std::atomic<bool> &flag) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!flag.load()) {
        if (std::chrono::steady_clock::now() > end)
            return false;
        std::this_thread::yield();
    }
    return true;
}

} // namespace

TEST_CASE("stream: operations run in order, also without anybody waiting") {
    Fixture fixture;
    std::shared_ptr<Stream> stream;
    REQUIRE(ok(Stream::create(fixture.context(), 1, 0, stream)));
    std::vector<int> order;
    std::atomic<bool> done{false};
    for (int i = 0; i < 100; ++i)
        stream->submit([&order, i] { order.push_back(i); }, Stream::Start::elsewhere);
    stream->submit([&] { done.store(true); }, Stream::Start::elsewhere);
    REQUIRE(becomes_true(done));
    REQUIRE(order.size() == 100);
    for (int i = 0; i < 100; ++i)
        CHECK(order[static_cast<std::size_t>(i)] == i);
    CHECK(ok(stream->synchronize()));
}

TEST_CASE("stream: kernels of two streams run at once") {
    Fixture fixture;
    std::shared_ptr<Stream> first, second;
    REQUIRE(ok(Stream::create(fixture.context(), 1, 0, first)));
    REQUIRE(ok(Stream::create(fixture.context(), 1, 0, second)));
    std::atomic<bool> started{false}, release{false};
    first->submit(
        [&] {
            started.store(true);
            spin_until(release);
        },
        Stream::Start::elsewhere);
    REQUIRE(becomes_true(started));
    CHECK(first->query() == Status::not_ready);
    second->submit([&] { release.store(true); }, Stream::Start::elsewhere);
    CHECK(ok(first->synchronize()));
    CHECK(ok(second->synchronize()));
}

TEST_CASE("stream: the legacy stream waits for blocking streams and holds them up") {
    Fixture fixture;
    std::shared_ptr<Stream> blocking, independent;
    REQUIRE(ok(Stream::create(fixture.context(), 0, 0, blocking)));
    REQUIRE(ok(Stream::create(fixture.context(), 1, 0, independent)));
    std::atomic<bool> release{false}, legacy_ran{false}, later_ran{false}, other_ran{false};
    blocking->submit([&] { spin_until(release); }, Stream::Start::elsewhere);
    fixture.stream().submit([&] { legacy_ran.store(true); }, Stream::Start::inline_if_idle);
    blocking->submit([&] { later_ran.store(legacy_ran.load()); }, Stream::Start::inline_if_idle);
    independent->submit([&] { other_ran.store(true); }, Stream::Start::elsewhere);
    CHECK(becomes_true(other_ran));
    CHECK(!legacy_ran.load());
    release.store(true);
    CHECK(ok(blocking->synchronize()));
    CHECK(legacy_ran.load());
    CHECK(later_ran.load());
}

TEST_CASE("event: waits, queries and times") {
    Fixture fixture;
    std::shared_ptr<Stream> first, second;
    REQUIRE(ok(Stream::create(fixture.context(), 1, 0, first)));
    REQUIRE(ok(Stream::create(fixture.context(), 1, 0, second)));
    std::shared_ptr<Event> start, end, untimed;
    REQUIRE(ok(Event::create(fixture.context(), 0, start)));
    REQUIRE(ok(Event::create(fixture.context(), 0, end)));
    REQUIRE(ok(Event::create(fixture.context(), 2, untimed)));
    float milliseconds = 0;
    CHECK(ok(start->query()));
    CHECK(Event::elapsed(*start, *end, milliseconds) == Status::invalid_handle);
    std::atomic<bool> release{false}, ran{false};
    REQUIRE(ok(start->record(*first)));
    first->submit([&] { spin_until(release); }, Stream::Start::elsewhere);
    REQUIRE(ok(end->record(*first)));
    CHECK(end->query() == Status::not_ready);
    CHECK(Event::elapsed(*start, *end, milliseconds) == Status::not_ready);
    REQUIRE(ok(end->make_wait(*second, 0)));
    second->submit([&] { ran.store(true); }, Stream::Start::inline_if_idle);
    CHECK(!ran.load());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    release.store(true);
    CHECK(ok(second->synchronize()));
    CHECK(ran.load());
    REQUIRE(ok(Event::elapsed(*start, *end, milliseconds)));
    CHECK(milliseconds >= 4.0f);
    REQUIRE(ok(untimed->record(*first)));
    CHECK(Event::elapsed(*start, *untimed, milliseconds) == Status::invalid_handle);
}

namespace {

/// Blocks that have ended, of the grid whose parameter is 0 (priority: least) and of the one whose it is 1; and how many
/// of the first when the second began.
std::atomic<unsigned> ended_blocks[2], ended_before;

void block_of_a_millisecond(ptarmigan::abi::CtaContext *cta) {
    const std::uint32_t which = value_parameter(cta);
    if (which == 1 && cta->linear_ctaid == 0)
        ended_before.store(ended_blocks[0].load());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ended_blocks[which].fetch_add(1);
}

} // namespace

TEST_CASE("stream: blocks of the greater priority begin first") {
    Fixture fixture;
    fixture.set_kernel(block_of_a_millisecond);
    std::shared_ptr<Stream> least, greatest;
    REQUIRE(ok(Stream::create(fixture.context(), 1, 0, least)));
    REQUIRE(ok(Stream::create(fixture.context(), 1, -5, greatest)));
    for (std::atomic<unsigned> &blocks : ended_blocks) blocks.store(0);
    constexpr unsigned most = 128, some = 32;
    const auto launch_on = [&](Stream &stream, unsigned blocks, std::uint32_t which) {
        LaunchConfig config;
        config.grid = {blocks, 1, 1};
        config.block = {1024, 1, 1};
        DevicePointer unused = 0;
        void *parameters[] = {&unused, &which};
        return launch(*fixture.function, config, stream, parameters, nullptr);
    };
    REQUIRE(ok(launch_on(*least, most, 0)));
    while (ended_blocks[0].load() == 0) std::this_thread::yield();
    REQUIRE(ok(launch_on(*greatest, some, 1)));
    REQUIRE(ok(greatest->synchronize()));
    CHECK(ended_blocks[1].load() == some);
    // A few had begun, and it does not wait for ever.
    CHECK(ended_blocks[0].load() - ended_before.load() < some * 3 / 4);
    REQUIRE(ok(least->synchronize()));
    CHECK(ended_blocks[0].load() == most);
}

TEST_CASE("stream: handles") {
    Fixture fixture;
    std::shared_ptr<Stream> stream, found;
    CHECK(Stream::create(fixture.context(), 99, 0, stream) == Status::invalid_value);
    REQUIRE(ok(Stream::create(fixture.context(), 1, 100, stream)));
    CHECK(stream->priority() == 0);
    CHECK(ok(resolve_stream(fixture.context(), stream.get(), false, found)));
    CHECK(found == stream);
    CHECK(ok(resolve_stream(fixture.context(), nullptr, false, found)));
    CHECK(found->kind() == StreamKind::legacy);
    CHECK(ok(resolve_stream(fixture.context(), nullptr, true, found)));
    CHECK(found->kind() == StreamKind::per_thread);
    CHECK(resolve_stream(fixture.context(), &fixture, false, found) == Status::invalid_handle);
    CHECK(ok(Stream::destroy(stream.get())));
    CHECK(Stream::destroy(stream.get()) == Status::invalid_handle);
}

TEST_CASE("stream: a destroyed stream still finishes its work") {
    Fixture fixture;
    std::atomic<bool> release{false}, ran{false};
    {
        std::shared_ptr<Stream> stream;
        REQUIRE(ok(Stream::create(fixture.context(), 0, 0, stream)));
        stream->submit(
            [&] {
                spin_until(release);
                ran.store(true);
            },
            Stream::Start::elsewhere);
        REQUIRE(ok(Stream::destroy(stream.get())));
    }
    release.store(true);
    CHECK(ok(fixture.context().synchronize()));
    CHECK(ran.load());
}

namespace {

/// Makes the dispatcher expect that the next operation is waited for at once.
void wait_promptly(Stream &stream) {
    for (int i = 0; i < 40; ++i) {
        stream.submit([] {}, Stream::Start::elsewhere);
        REQUIRE(ok(stream.synchronize()));
    }
}

} // namespace

TEST_CASE("stream: the context waits for what destroyed streams have left") {
    Fixture fixture;
    for (unsigned flags : {0u, 1u}) {
        std::atomic<bool> started{false}, finished{false};
        std::shared_ptr<Stream> stream;
        REQUIRE(ok(Stream::create(fixture.context(), flags, 0, stream)));
        stream->submit(
            [&] {
                started.store(true);
                std::this_thread::sleep_for(std::chrono::milliseconds(30));
            },
            Stream::Start::elsewhere);
        stream->submit([&] { finished.store(true); }, Stream::Start::elsewhere);
        CHECK(becomes_true(started));
        CHECK(ok(Stream::destroy(stream.get())));
        stream.reset();
        CHECK(ok(fixture.context().synchronize()));
        CHECK(finished.load());
        REQUIRE(becomes_true(finished)); // nothing may outlive the flags
    }
}

TEST_CASE("stream: work that is expected to be waited for runs although nobody waits") {
    Fixture fixture;
    std::shared_ptr<Stream> stream;
    REQUIRE(ok(Stream::create(fixture.context(), 1, 0, stream)));
    for (int round = 0; round < 5; ++round) {
        wait_promptly(*stream);
        std::atomic<bool> ran{false};
        stream->submit([&] { ran.store(true); }, Stream::Start::elsewhere);
        REQUIRE(becomes_true(ran));
        REQUIRE(ok(stream->synchronize()));
    }
}

TEST_CASE("stream: expected waits do not keep other streams' work from a waiting thread") {
    Fixture fixture;
    std::shared_ptr<Stream> first, second;
    REQUIRE(ok(Stream::create(fixture.context(), 1, 0, first)));
    REQUIRE(ok(Stream::create(fixture.context(), 1, 0, second)));
    for (int round = 0; round < 5; ++round) {
        wait_promptly(*first);
        std::atomic<bool> release{false};
        first->submit([&] { spin_until(release); }, Stream::Start::elsewhere);
        second->submit([&] { release.store(true); }, Stream::Start::elsewhere);
        REQUIRE(ok(first->synchronize()));
        REQUIRE(ok(second->synchronize()));
    }
}

TEST_CASE("stream: asking until work is done gets it done") {
    Fixture fixture;
    std::shared_ptr<Stream> stream;
    REQUIRE(ok(Stream::create(fixture.context(), 1, 0, stream)));
    wait_promptly(*stream);
    stream->submit([] {}, Stream::Start::elsewhere);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (stream->query() == Status::not_ready)
        REQUIRE(std::chrono::steady_clock::now() < end);
    CHECK(ok(stream->query()));
}

TEST_CASE("stream: order holds when several threads submit to and wait for one stream") {
    Fixture fixture;
    std::shared_ptr<Stream> stream;
    REQUIRE(ok(Stream::create(fixture.context(), 1, 0, stream)));
    int unguarded = 0;
    const auto work = [&] {
        for (int i = 0; i < 2000; ++i) {
            stream->submit([&] { ++unguarded; }, Stream::Start::elsewhere);
            if (i % 7 == 0)
                static_cast<void>(stream->synchronize());
        }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
        threads.emplace_back(work);
    for (std::thread &thread : threads)
        thread.join();
    REQUIRE(ok(stream->synchronize()));
    CHECK(unguarded == 6000);
}

#if !defined(__SANITIZE_THREAD__) // which allows no threads in a forked child
TEST_CASE("stream: a forked child has working streams of its own") {
    Fixture fixture;
    wait_promptly(fixture.stream());
    const pid_t child = fork();
    if (child == 0) {
        alarm(20); // a hang is a failure too
        int ran = 0;
        for (int i = 0; i < 100; ++i)
            fixture.stream().submit([&] { ++ran; }, Stream::Start::elsewhere);
        const bool good = ok(fixture.stream().synchronize()) && ran == 100;
        std::atomic<bool> alone{false};
        fixture.stream().submit([&] { alone.store(true); }, Stream::Start::elsewhere);
        _exit(good && becomes_true(alone) ? 0 : 1);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
}
#endif
