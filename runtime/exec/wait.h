// SPDX-License-Identifier: Apache-2.0
// Why a step does not go on: noted by whoever suspends it, read by the report of a hang.
#pragma once

#include <cstdint>
#include <string>

namespace ptarmigan::runtime {

/// What a suspended step waits for, and where in the code. Plain data.
struct Wait {
    enum class Kind : std::uint8_t {
        nothing,         ///< it can go on
        barrier,         ///< `number`: of the CTA's barrier
        collective,      ///< `number`: the member mask
        memory,          ///< a loop that reads memory again and again, or nanosleep
        mbarrier,        ///< `address`: of the mbarrier
        cluster_barrier, ///< the barrier of the cluster
        copies,          ///< asynchronous copies
        others,          ///< it has come to the barrier at `line` between regions, or has exited, and others of its CTA
                         ///< have not; no line: it has exited
        reconvergence,   ///< other lanes of its warp, which come to the same place
        passed,          ///< nothing but its turn: the CTA's barrier `number` is complete
        turn, ///< nothing but its turn: another step was chosen to run first; with a pc: it asks who is active at line
              ///< `number`
    };
    Kind kind = Kind::nothing;
    std::uint32_t number = 0;
    std::uint64_t address = 0;
    std::uint64_t lanes = 0; ///< of the step, that wait; 0: not known. The others may be elsewhere or have exited
    std::uintptr_t pc = 0;   ///< where the service returns to in generated code; 0: unknown
    std::uint32_t line = 0;  ///< of the PTX text, where that is not what pc says
};

/// "wait at barrier 3", in the plural.
std::string describe_wait(const Wait& wait);

} // namespace ptarmigan::runtime
