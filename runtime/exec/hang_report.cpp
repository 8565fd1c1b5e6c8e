// SPDX-License-Identifier: Apache-2.0
#include "runtime/exec/hang_report.h"

#include "runtime/code/image_loader.h"

#include <algorithm>
#include <cstdio>

namespace ptarmigan::runtime {
namespace {

std::string hexadecimal(std::uint64_t number) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(number));
    return text;
}

std::string thread_name(std::uint64_t thread, const std::uint32_t (&ntid)[3]) {
    const std::uint64_t rest = thread / ntid[0];
    return "(" + std::to_string(thread % ntid[0]) + "," + std::to_string(rest % ntid[1]) + "," +
           std::to_string(rest / ntid[1]) + ")";
}

bool same(const Wait& a, const Wait& b) {
    return a.kind == b.kind && a.number == b.number && a.address == b.address && a.lanes == b.lanes && a.pc == b.pc &&
           a.line == b.line;
}

/// ", of each 16 those that 0xfffe counts," for steps of `width` lanes with `threads` threads together; empty if all
/// wait.
std::string which_lanes(const Wait& wait, std::uint64_t width, std::uint64_t threads) {
    if (width == 1) return "";
    if (wait.lanes == 0) return wait.kind == Wait::Kind::memory ? ", or some of them," : "";
    const std::uint64_t in_step = std::min(width, threads), all = (std::uint64_t{1} << in_step) - 1;
    if ((wait.lanes & all) == all) return "";
    return (threads <= width ? ", those that " : ", of each " + std::to_string(width) + " those that ") +
           hexadecimal(wait.lanes & all) + " counts,";
}

} // namespace

std::string describe_wait(const Wait& wait) {
    switch (wait.kind) {
    case Wait::Kind::nothing: return "run";
    case Wait::Kind::barrier:
        if (wait.number >= FiberCta::barrier_count)
            return "wait at wgmma.commit_group for the others of their warpgroup";
        return "wait at barrier " + std::to_string(wait.number);
    case Wait::Kind::collective: return "wait for the lanes " + hexadecimal(wait.number) + " of their warp";
    case Wait::Kind::memory: return "wait for memory to change";
    case Wait::Kind::mbarrier: return "wait for the mbarrier at " + hexadecimal(wait.address);
    case Wait::Kind::cluster_barrier: return "wait at the cluster's barrier";
    case Wait::Kind::copies: return "wait for asynchronous copies";
    case Wait::Kind::others: return wait.line ? "have exited or wait at their block's barrier" : "have exited";
    case Wait::Kind::reconvergence: return "wait for other lanes of their warp to come as far";
    case Wait::Kind::passed: return "have passed barrier " + std::to_string(wait.number) + " and can go on";
    case Wait::Kind::turn: return "can go on";
    }
    return "";
}

std::string describe_waits(FiberCta& cta, const std::function<std::string(std::uint32_t)>& place_of, std::size_t most) {
    std::string text;
    const abi::CtaContext& context = cta.context();
    const std::uint64_t threads = std::uint64_t{context.ntid[0]} * context.ntid[1] * context.ntid[2];
    const std::uint64_t width = cta.lane_width();
    const auto wait_of = [&](std::uint32_t step) { return cta.wait_of(step); };
    for (std::uint32_t step = 0; step < cta.step_count() && most != 0; --most) {
        std::uint32_t end = step + 1;
        const bool exited = cta.has_exited(step);
        const Wait wait = wait_of(step);
        while (end < cta.step_count() && cta.has_exited(end) == exited && (exited || same(wait, wait_of(end)))) ++end;
        const std::uint64_t first = step * width, last = std::min<std::uint64_t>(end * width, threads) - 1;
        text += "\n  block (" + std::to_string(context.ctaid[0]) + "," + std::to_string(context.ctaid[1]) + "," +
                std::to_string(context.ctaid[2]) + "): threads " + thread_name(first, context.ntid) + " to " +
                thread_name(last, context.ntid);
        text += exited ? "" : which_lanes(wait, width, last + 1 - first);
        text += exited ? std::string(" have exited") : " " + describe_wait(wait);
        CodeLocation location;
        if (!exited && wait.line != 0)
            text += ", " + place_of(wait.line);
        else if (!exited && wait.pc != 0 && find_code(wait.pc - 1, location) && location.line != 0)
            text += ", " + place_of(location.line);
        step = end;
    }
    return text;
}

} // namespace ptarmigan::runtime
