// SPDX-License-Identifier: Apache-2.0
// In which order steps and CTAs run: PTARMIGAN_SCHEDULE.
#pragma once

#include <cstdint>

namespace ptarmigan::runtime {

/// A source of reproducible choices (splitmix64); 0 choices of nothing cost nothing.
class Choices {
public:
    explicit Choices(std::uint64_t seed = 0) : state_(seed) {}
    std::uint64_t bits() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    /// 0 to count - 1, for small counts.
    std::uint64_t below(std::uint64_t count) { return bits() % count; }

private:
    std::uint64_t state_;
};

/// The process's schedule, read from the environment once. With `random` every grid runs on one worker, several CTAs at
/// a time as steps that can be suspended, and `seed` decides who runs next: the same program and seed, the same run.
struct Schedule {
    bool random = false;
    std::uint64_t seed = 0;
    static const Schedule& of_process();
};

/// CTAs of a grid that are alive at once under a random schedule.
inline constexpr std::uint64_t random_schedule_ctas = 4;

} // namespace ptarmigan::runtime
