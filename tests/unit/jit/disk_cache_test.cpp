// SPDX-License-Identifier: Apache-2.0
// The folder of compiled kernels: limits, strangers' files, several processes at once.
#include "runtime/module/disk_cache.h"
#include "temporary_folder.h"

#include <catch2/catch.hpp>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utime.h>

#include <algorithm>
#include <fstream>

using namespace ptarmigan;
using runtime::DiskCache;

namespace {

std::vector<std::uint8_t> contents(std::size_t size, std::uint8_t value) {
    return std::vector<std::uint8_t>(size, value);
}

void set_age(const std::string& path, std::time_t seconds) {
    utimbuf times{};
    times.actime = times.modtime = std::time(nullptr) - seconds;
    REQUIRE(utime(path.c_str(), &times) == 0);
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

} // namespace

TEST_CASE("disk cache: stores, finds and replaces") {
    TemporaryFolder folder;
    const std::string directory = folder.path + "/a/b/cache"; // made when first needed
    DiskCache cache(directory, 1 << 20);
    CHECK_FALSE(cache.load("x"));
    CHECK_FALSE(exists(directory));
    cache.store("x", contents(100, 1));
    REQUIRE(cache.load("x"));
    CHECK(*cache.load("x") == contents(100, 1));
    cache.store("x", contents(50, 2));
    CHECK(*cache.load("x") == contents(50, 2));
    struct stat status;
    REQUIRE(::stat(directory.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0700);
    REQUIRE(::stat((directory + "/x.ptmk").c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0600);
}

TEST_CASE("disk cache: the least recently used go first, other files stay") {
    TemporaryFolder folder;
    std::ofstream(folder.path + "/notes.txt") << std::string(5000, 'n');
    std::ofstream(folder.path + "/.new-dead") << "half";
    std::ofstream(folder.path + "/.new-alive") << "half";
    set_age(folder.path + "/.new-dead", 100000);
    DiskCache cache(folder.path, 1000);
    for (int i = 0; i < 5; ++i) {
        const std::string name = "k" + std::to_string(i);
        cache.store(name, contents(190, 0));
        set_age(folder.path + "/" + name + ".ptmk", 1000 - i);
    }
    CHECK(cache.load("k1")); // used just now
    cache.store("k5", contents(190, 0));
    CHECK_FALSE(cache.load("k0"));
    CHECK(cache.load("k1"));
    CHECK_FALSE(cache.load("k2"));
    CHECK(cache.load("k4"));
    CHECK(cache.load("k5"));
    CHECK(exists(folder.path + "/notes.txt"));
    CHECK(exists(folder.path + "/.new-alive"));
    CHECK_FALSE(exists(folder.path + "/.new-dead"));
    cache.store("large", contents(2000, 0)); // never fits
    CHECK_FALSE(cache.load("large"));
}

TEST_CASE("disk cache: a process that stores little does not look at all files") {
    TemporaryFolder folder;
    const auto store = [&](const char* name, std::size_t bytes) {
        DiskCache(folder.path, 1 << 20).store(name, contents(bytes, 0)); // a process of its own, as it were
    };
    const std::string dead = folder.path + "/.new-dead";
    const auto was_looked_at = [&] {
        const bool looked = !exists(dead);
        std::ofstream(dead) << "x";
        set_age(dead, 100000);
        return looked;
    };
    was_looked_at();
    store("first", 100); // nobody has looked
    CHECK(was_looked_at());
    for (int i = 0; i < 10; ++i) store("next", 100);
    CHECK_FALSE(was_looked_at());
    for (int i = 0; i < 6; ++i) store("next", 10000); // more than a sixteenth of the limit
    CHECK(was_looked_at());
    store("next", 10000);
    CHECK_FALSE(was_looked_at());
}

TEST_CASE("disk cache: what others could have written is not read") {
    TemporaryFolder folder;
    DiskCache cache(folder.path, 1 << 20);
    cache.store("x", contents(10, 1));
    const std::string file = folder.path + "/x.ptmk";
    REQUIRE(cache.load("x"));
    ::chmod(file.c_str(), 0622);
    CHECK_FALSE(cache.load("x"));
    ::chmod(file.c_str(), 0600);
    CHECK(cache.load("x"));
    ::rename(file.c_str(), (folder.path + "/elsewhere").c_str());
    REQUIRE(::symlink("elsewhere", file.c_str()) == 0);
    CHECK_FALSE(cache.load("x"));
    ::chmod(folder.path.c_str(), 0777);
    cache.store("y", contents(10, 1));
    CHECK_FALSE(cache.load("y"));
    DiskCache late(folder.path, 1 << 20); // finds the folder open to all: keeps nothing there
    late.store("z", contents(10, 1));
    CHECK_FALSE(exists(folder.path + "/z.ptmk"));
}

TEST_CASE("disk cache: a folder that can't be is no error") {
    TemporaryFolder folder;
    std::ofstream(folder.path + "/file") << "x";
    DiskCache cache(folder.path + "/file/cache", 1 << 20);
    cache.store("x", contents(10, 1));
    CHECK_FALSE(cache.load("x"));
    cache.prune();
}

TEST_CASE("disk cache: readers never see half a file while processes write") {
    TemporaryFolder folder;
    constexpr int writers = 3, rounds = 300;
    std::vector<pid_t> children;
    for (int writer = 0; writer < writers; ++writer) {
        const pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            DiskCache cache(folder.path, 100000);
            for (int round = 0; round < rounds; ++round) {
                const auto value = static_cast<std::uint8_t>(writer * 16 + round % 16);
                cache.store("k" + std::to_string(round % 8), contents(20000 + value, value));
            }
            _exit(0);
        }
        children.push_back(child);
    }
    DiskCache cache(folder.path, 100000);
    unsigned found = 0, broken = 0;
    for (std::size_t running = children.size(); running != 0;) {
        for (int i = 0; i < 8; ++i) {
            const auto bytes = cache.load("k" + std::to_string(i));
            if (!bytes || bytes->empty()) continue;
            ++found;
            const std::uint8_t value = bytes->front();
            broken += bytes->size() != 20000u + value ||
                      std::count(bytes->begin(), bytes->end(), value) !=
                          static_cast<std::ptrdiff_t>(bytes->size());
        }
        int status = 0;
        if (waitpid(-1, &status, WNOHANG) > 0) {
            CHECK(status == 0);
            --running;
        }
    }
    CHECK(found > 0);
    CHECK(broken == 0);
}
