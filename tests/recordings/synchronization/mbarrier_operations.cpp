// SPDX-License-Identifier: Apache-2.0
// What each operation on an mbarrier object returns: sequences of operations, run by a kernel of one warp that reads them from
// memory. Recorded on an H200 (2026-11-22): mbarrier_operations LIBCUDA --record > mbarrier_operations_h200.txt
#include "tests/recordings/random.h"
#include "tests/recordings/synchronization/cases.h"

#include <array>
#include <cstdlib>
#include <iterator>

using namespace recordings;

namespace {

/// In the order of `statements`.
enum Code : std::uint32_t {
    init, inval, expect, complete, arrive, arrive_count, arrive_no_complete, arrive_expect, drop, drop_count,
    drop_no_complete, drop_expect, test, test_parity, try_state, try_parity, pending, copy_arrive, copy_arrive_noinc,
    store_low, store_high, arrive_at, init_at, test_at, arrive_global, init_global, test_global, arrive_far, test_other,
};

/// Object in [%r10], argument in %r2, the last state in %rd3, result in %rd4, a global address in %rd1.
const std::array<const char*, 29> statements = {
    "mbarrier.init.shared.b64 [%r10], %r2;",
    "mbarrier.inval.shared.b64 [%r10];",
    "mbarrier.expect_tx.relaxed.cta.shared.b64 [%r10], %r2;",
    "mbarrier.complete_tx.relaxed.cta.shared.b64 [%r10], %r2;",
    "mbarrier.arrive.shared.b64 %rd3,[%r10]; shr.u64 %rd4,%rd3,32;",
    "mbarrier.arrive.release.cluster.shared::cta.b64 %rd3,[%r10],%r2; shr.u64 %rd4,%rd3,32;",
    "mbarrier.arrive.noComplete.shared.b64 %rd3,[%r10],%r2; shr.u64 %rd4,%rd3,32;",
    "mbarrier.arrive.expect_tx.shared.b64 %rd3,[%r10],%r2; shr.u64 %rd4,%rd3,32;",
    "mbarrier.arrive_drop.shared.b64 %rd3,[%r10]; shr.u64 %rd4,%rd3,32;",
    "mbarrier.arrive_drop.shared.b64 %rd3,[%r10],%r2; shr.u64 %rd4,%rd3,32;",
    "mbarrier.arrive_drop.noComplete.shared.b64 %rd3,[%r10],%r2; shr.u64 %rd4,%rd3,32;",
    "mbarrier.arrive_drop.expect_tx.shared.b64 %rd3,[%r10],%r2; shr.u64 %rd4,%rd3,32;",
    "mbarrier.test_wait.shared.b64 %p1,[%r10],%rd3; selp.u64 %rd4,1,0,%p1;",
    "mbarrier.test_wait.parity.shared.b64 %p1,[%r10],%r2; selp.u64 %rd4,1,0,%p1;",
    "mbarrier.try_wait.shared.b64 %p1,[%r10],%rd3,100; selp.u64 %rd4,1,0,%p1;",
    "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1,[%r10],%r2,100; selp.u64 %rd4,1,0,%p1;",
    "mbarrier.pending_count.b64 %r5,%rd3; cvt.u64.u32 %rd4,%r5;",
    "cp.async.ca.shared.global [buf],[%rd1],4; cp.async.mbarrier.arrive.shared.b64 [%r10]; cp.async.wait_all;",
    "cp.async.ca.shared.global [buf],[%rd1],4; cp.async.mbarrier.arrive.noinc.shared.b64 [%r10]; cp.async.wait_all;",
    "st.shared.u32 [%r10], %r2;",
    "st.shared.u32 [%r10+4], %r2;",
    "add.u32 %r11,%r10,%r2; mbarrier.arrive.shared.b64 %rd3,[%r11];",
    "add.u32 %r11,%r10,%r2; mbarrier.init.shared.b64 [%r11],1;",
    "add.u32 %r11,%r10,%r2; mbarrier.test_wait.parity.shared.b64 %p1,[%r11],0; selp.u64 %rd4,1,0,%p1;",
    "mbarrier.arrive.b64 %rd3,[%rd1];",
    "mbarrier.init.b64 [%rd1],1;",
    "mbarrier.test_wait.parity.b64 %p1,[%rd1],0; selp.u64 %rd4,1,0,%p1;",
    "add.u32 %r11,%r10,0x100000; mbarrier.arrive.shared.b64 %rd3,[%r11];",
    // state with the argument's bits flipped in its upper half
    "cvt.u64.u32 %rd5,%r2; shl.b64 %rd5,%rd5,32; xor.b64 %rd5,%rd5,%rd3; mbarrier.test_wait.shared.b64 %p1,[%r10],%rd5; selp.u64 %rd4,1,0,%p1;",
};

std::string kernel() {
    std::string targets, bodies;
    for (std::size_t i = 0; i < statements.size(); ++i) {
        targets += (i ? ", L" : "L") + std::to_string(i);
        bodies += "L" + std::to_string(i) + ":\n    " + statements[i] + "\n    bra NEXT;\n";
    }
    return R"(.version 8.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 script, .param .u32 count, .param .u64 out)
{
    .shared .align 16 .b8 object[64];
    .shared .align 16 .b8 buf[64];
    .reg .b64 %rd<40>; .reg .b32 %r<40>; .reg .pred %p<10>;
    ld.param.u64 %rd10,[script]; ld.param.u32 %r20,[count]; ld.param.u64 %rd11,[out];
    mov.u64 %rd1,%rd10; mov.u32 %r10, object; mov.u32 %r21,%laneid; mov.u64 %rd3,0; mov.u32 %r22,0;
    st.shared.u32 [object],0; st.shared.u32 [object+4],0;
LOOP:
    setp.ge.u32 %p5,%r22,%r20; @%p5 bra DONE;
    ld.global.v4.u32 {%r1,%r2,%r3,%r4},[%rd10];
    mov.u64 %rd4,0;
    bar.warp.sync 0xffffffff;
    shr.u32 %r6,%r3,%r21; and.b32 %r6,%r6,1; setp.eq.u32 %p6,%r6,0;
    @%p6 bra NEXT;
    TARGETS: .branchtargets )" + targets + ";\n    brx.idx %r1, TARGETS;\n" + bodies + R"(NEXT:
    bar.warp.sync 0xffffffff;
    mul.wide.u32 %rd8,%r21,8; add.u64 %rd8,%rd8,%rd11;
    st.global.u64 [%rd8],%rd4;
    add.u64 %rd11,%rd11,256; add.u64 %rd10,%rd10,16; add.u32 %r22,%r22,1;
    bar.warp.sync 0xffffffff;
    bra LOOP;
DONE: ret;
}
)";
}

struct Operation {
    Code code;
    std::uint32_t argument = 0;
    std::uint32_t lanes = 1;
};
using Script = std::vector<Operation>;

/// Lanes per step if it is fewer than a warp has. The lanes of one arrival are one act on an H200: every lane's state shows the
/// same count, that of all of them together. Single arrivals, which are all that the memory model promises, show one each, and steps of fewer lanes can't act as one without waiting for lanes that may never come. So
/// the counts in these states are compared at 32 lanes only, everything else at all widths.
bool is_narrow() {
    const char* lanes = std::getenv("PTARMIGAN_LANES");
    return lanes && std::atoi(lanes) < 32;
}
bool shows_order(Code code) {
    return (code >= arrive && code <= drop_expect) || code == pending;
}

/// Each operation's results, those of more than one lane as the first, the last and a hash of all.
std::string run_script(Driver& driver, const Script& script) {
    static void* module = driver.load(kernel());
    std::vector<std::uint32_t> words;
    for (const Operation& operation : script)
        words.insert(words.end(), {operation.code, operation.argument, operation.lanes, 0});
    std::vector<std::uint64_t> results(script.size() * 32);
    Address in = driver.allocate(words.size() * 4), out = driver.allocate(results.size() * 8);
    driver.upload(in, words.data(), words.size() * 4);
    auto count = static_cast<std::uint32_t>(script.size());
    void* parameters[] = {&in, &count, &out};
    driver.launch(module, "k", 1, 32, 1, parameters);
    driver.call("cuCtxSynchronize");
    driver.download(results.data(), out, results.size() * 8);
    driver.call<Address>("cuMemFree_v2", in);
    driver.call<Address>("cuMemFree_v2", out);
    std::string text;
    for (std::size_t i = 0; i < script.size(); ++i) {
        std::vector<std::uint64_t> lanes;
        for (unsigned lane = 0; lane < 32; ++lane)
            if (script[i].lanes >> lane & 1) lanes.push_back(results[i * 32 + lane]);
        if (lanes.size() > 1 && is_narrow() && shows_order(script[i].code)) {
            text += (i ? " *" : "*");
            continue;
        }
        text += (i ? " " : "") + hex(lanes.front());
        if (lanes.size() > 1) text += ".." + hex(lanes.back()) + "#" + hex(hash_bytes(lanes.data(), lanes.size() * 8) >> 40);
    }
    return text;
}

/// Operations that keep to the rules.
Script random_script(Random& random) {
    constexpr std::uint32_t counts[] = {1, 2, 3, 5, 8, 40, 1000, 0xfffff};
    constexpr Code codes[] = {expect, complete, arrive, arrive, arrive_count, arrive_no_complete, arrive_expect, drop, drop_count,
                              drop_no_complete, drop_expect, test, test_parity, try_state, try_parity, pending};
    std::uint32_t expected = counts[random.below(8)], open = expected;
    std::int64_t transactions = 0;
    Script script{{init, expected}};
    while (script.size() < 32) {
        const Code code = codes[random.below(std::size(codes))];
        const bool drops = code >= drop && code <= drop_expect, arrives = code >= arrive && code <= drop_expect;
        std::uint32_t argument = 0, arrivals = arrives ? 1 : 0;
        if (drops && expected <= 1) continue;
        if (code == arrive_count || code == drop_count || code == arrive_no_complete || code == drop_no_complete) {
            const bool completes = code == arrive_count || code == drop_count;
            const std::uint32_t most = std::min(completes ? open : open - 1, drops ? expected - 1 : expected);
            if (most == 0) continue;
            arrivals = argument = 1 + random.below(most);
        }
        if (arrivals > open) continue;
        if (code == expect || code == arrive_expect || code == drop_expect) {
            argument = 1 + random.below(4096);
            transactions += argument;
        } else if (code == complete) {
            const bool all = transactions > 0 && random.below(4) != 0;
            argument = all ? static_cast<std::uint32_t>(transactions) : 1 + random.below(500);
            transactions -= argument;
        } else if (code == test_parity || code == try_parity) {
            argument = random.below(2);
        }
        open -= arrivals;
        if (drops) expected -= arrivals;
        script.push_back({code, argument});
        if (open != 0) continue;
        if (transactions > 0) script.push_back({complete, static_cast<std::uint32_t>(transactions)});
        if (transactions < 0) script.push_back({expect, static_cast<std::uint32_t>(-transactions)});
        transactions = 0;
        open = expected;
    }
    return script;
}

constexpr std::uint32_t all = ~0u;

struct Named {
    const char* name;
    Script script;
};

const Named scripts[] = {
    {"phases", {{init, 2}, {arrive}, {test}, {test_parity, 0}, {test_parity, 1}, {arrive}, {test}, {test_parity, 0}, {test_parity, 1}, {arrive}, {arrive}, {test}, {test_parity, 0}, {test_parity, 1}}},
    {"inval and init", {{init, 1}, {inval}, {init, 3}, {arrive}, {arrive}, {arrive}, {test}}},
    {"pending count", {{init, 10}, {arrive_no_complete, 3}, {pending}, {arrive_no_complete, 2}, {pending}, {drop_no_complete, 2}, {pending}, {arrive}, {pending}, {arrive}, {test_parity, 0}, {arrive}, {test_parity, 0}}},
    {"transactions", {{init, 1}, {expect, 16}, {complete, 4}, {arrive}, {test_parity, 0}, {complete, 12}, {test_parity, 0}, {expect, 1}, {expect, 0xffff}, {complete, 0x10000}, {arrive_expect, 0x100}, {complete, 0x100}, {test_parity, 1}}},
    {"transactions done first", {{init, 1}, {complete, 16}, {test_parity, 0}, {arrive}, {test_parity, 0}, {expect, 16}, {test_parity, 0}, {complete, 1}, {arrive_expect, 1}, {test_parity, 1}}},
    {"most transactions", {{init, 2}, {expect, 0xfffff}, {arrive}, {complete, 0xfffff}, {arrive}, {test_parity, 0}}},
    {"least transactions", {{init, 2}, {complete, 0xfffff}, {arrive}, {expect, 0xfffff}, {arrive}, {test_parity, 0}}},
    {"one transaction too many", {{init, 2}, {expect, 0xfffff}, {expect, 1}}},
    {"two transactions too many", {{init, 2}, {expect, 0xfffff}, {expect, 2}}},
    {"one transaction too many at once", {{init, 2}, {expect, 0x100000}}},
    {"two transactions too many at once", {{init, 2}, {expect, 0x100001}}},
    {"2^21 transactions", {{init, 2}, {expect, 0x200000}, {arrive}}},
    {"2^21 + 16 transactions", {{init, 2}, {expect, 0x200010}, {arrive}}},
    {"2^32 - 1 transactions", {{init, 2}, {expect, 0xffffffff}, {arrive}}},
    {"one transaction too few", {{init, 2}, {complete, 0xfffff}, {complete, 1}}},
    {"two transactions too few", {{init, 2}, {complete, 0xfffff}, {complete, 2}}},
    {"2^20 completed at once", {{init, 2}, {complete, 0x100000}}},
    {"2^20 + 1 completed at once", {{init, 2}, {complete, 0x100001}}},
    {"2^32 - 1 completed at once", {{init, 2}, {complete, 0xffffffff}, {arrive}}},
    {"2^20 expected on arrival", {{init, 2}, {arrive_expect, 0x100000}}},
    {"2^21 + 16 expected on arrival", {{init, 2}, {arrive_expect, 0x200010}, {arrive}}},
    {"too many transactions of lanes", {{init, 2}, {expect, 0x10000, all}}},
    {"transactions of lanes", {{init, 2}, {expect, 0x4000, all}, {arrive}, {complete, 0x4000, all}, {arrive}, {test_parity}}},
    {"too many arrivals", {{init, 3}, {arrive_count, 2}, {arrive_count, 2}}},
    {"twice too many arrivals", {{init, 3}, {arrive_count, 7}}},
    {"too many arrivals of lanes", {{init, 3}, {arrive, 0, all}}},
    {"arrivals of lanes", {{init, 32}, {arrive, 0, all}, {test_parity, 0}, {test, 0, all}, {arrive, 0, 0xffff}, {arrive, 0, 0xffff0000}, {test_parity, 0}}},
    {"arrivals of lanes, half", {{init, 64}, {arrive, 0, all}, {test, 0, all}, {pending, 0, all}, {arrive, 0, all}, {test, 0, all}, {pending, 0, all}}},
    {"counted arrivals of lanes", {{init, 192}, {arrive_count, 3, all}, {pending, 0, all}, {arrive_count, 3, all}, {pending, 0, all}, {test, 0, all}}},
    {"noComplete of lanes", {{init, 100}, {arrive_no_complete, 2, 0x0f0f0f0f}, {pending, 0, 0x0f0f0f0f}, {drop_no_complete, 1, 0xff}, {pending, 0, 0xff}, {arrive}, {arrive}}},
    {"noComplete that completes", {{init, 2}, {arrive_no_complete, 2}, {test_parity, 0}, {pending}, {arrive}, {arrive}}},
    {"noComplete, too many", {{init, 2}, {arrive_no_complete, 5}}},
    {"drop to nothing", {{init, 1}, {drop}, {test_parity, 0}, {test_parity, 1}}},
    {"drop to nothing and arrive", {{init, 1}, {drop}, {arrive}}},
    {"drop to nothing and expect", {{init, 1}, {drop}, {test_parity, 0}, {expect, 4}, {complete, 4}, {test_parity, 0}, {test_parity, 1}}},
    {"drops", {{init, 3}, {drop}, {arrive}, {arrive}, {test_parity, 0}, {arrive}, {arrive}, {test_parity, 1}, {drop}, {arrive}, {test_parity, 0}, {arrive}, {test_parity, 1}}},
    {"counted drops", {{init, 9}, {drop_count, 4}, {arrive}, {arrive_count, 4}, {test_parity, 0}, {arrive_count, 5}, {test_parity, 1}, {drop_count, 5}}},
    {"too many drops", {{init, 3}, {drop_count, 5}}},
    {"more drops than pending", {{init, 9}, {arrive}, {arrive}, {drop_count, 8}}},
    {"more drops than expected", {{init, 9}, {drop_count, 5}, {arrive_count, 4}, {drop_count, 4}, {drop_count, 1}}},
    {"drops that expect", {{init, 3}, {drop_expect, 16}, {complete, 16}, {arrive}, {arrive}, {test_parity, 0}, {arrive}, {drop_expect, 4}, {test_parity, 1}, {complete, 4}, {test_parity, 1}}},
    {"drops of lanes", {{init, 40}, {drop, 0, 0xffff}, {arrive_count, 24}, {test_parity, 0}, {arrive_count, 24}, {test_parity, 1}}},
    {"arrivals of none", {{init, 3}, {arrive_count, 0}, {arrive}, {arrive_no_complete, 0}, {arrive}, {arrive}}},
    {"2^20 arrivals", {{init, 3}, {arrive_count, 0x100000}}},
    {"2^20 - 1 arrivals", {{init, 0xfffff}, {arrive_count, 0xffffe}, {arrive}, {test_parity, 0}, {arrive_count, 0xfffff}, {test_parity, 1}}},
    {"2^32 - 1 arrivals", {{init, 3}, {arrive_count, 0xffffffff}}},
    {"2^20 + 1 arrivals", {{init, 3}, {arrive_count, 0x100001}}},
    {"init of 0", {{init, 0}, {test_parity, 0}, {arrive}}},
    {"init of 2^20", {{init, 0x100000}, {test_parity, 0}, {arrive}}},
    {"init of 2^20 + 2", {{init, 0x100002}, {test_parity, 0}, {arrive}}},
    {"init of 2^32 - 1", {{init, 0xffffffff}, {test_parity, 0}, {arrive}}},
    {"arrive at zeros", {{arrive}}},
    {"arrive at ones", {{store_low, all}, {store_high, all}, {arrive}}},
    {"test ones", {{store_low, all}, {store_high, all}, {test_parity, 0}}},
    {"test zeros", {{test_parity, 0}, {test_parity, 1}, {test}}},
    {"try zeros", {{try_parity, 0}, {try_parity, 1}}},
    {"expect at zeros", {{expect, 16}, {complete, 16}}},
    {"inval of zeros", {{inval}}},
    {"parities", {{init, 1}, {test_parity, 2}, {test_parity, 3}, {test_parity, 0xffffffff}, {test_parity, 0xfffffffe}, {arrive}, {test_parity, 2}, {test_parity, 3}, {test_parity, 0xffffffff}, {test_parity, 0xfffffffe}}},
    {"init again", {{init, 3}, {arrive}, {init, 5}, {arrive}, {test_parity, 0}}},
    {"cp.async", {{init, 2}, {copy_arrive}, {arrive}, {test_parity, 0}, {arrive}, {test_parity, 0}, {copy_arrive_noinc}, {test_parity, 1}, {copy_arrive_noinc}, {test_parity, 1}}},
    {"cp.async of lanes", {{init, 2}, {copy_arrive, 0, 0xff}, {arrive}, {arrive}, {test_parity, 0}, {init, 8}, {copy_arrive_noinc, 0, 0xff}, {test_parity, 0}}},
    {"misaligned by 4, arrive", {{init, 1}, {arrive_at, 4}}},
    {"misaligned by 1, arrive", {{init, 1}, {arrive_at, 1}}},
    {"misaligned by 4, init", {{init_at, 4}}},
    {"misaligned by 4, test", {{test_at, 4}}},
    {"global memory, arrive", {{arrive_global}}},
    {"global memory, init", {{init_global}}},
    {"global memory, test", {{test_global}}},
    {"outside of the block's memory", {{arrive_far}}},
};

} // namespace

int main(int count, char** arguments) {
    std::vector<Case> cases;
    auto add = [&](const std::string& name, const Script& script) {
        cases.push_back({name, [script](Driver& driver) { return run_script(driver, script); }});
    };
    for (const Named& named : scripts) {
        // One act of 32 arrivals where 3 are left is an error; 32 acts complete ten phases.
        if (is_narrow() && std::string(named.name) == "too many arrivals of lanes") continue;
        add(named.name, named.script);
    }
    Script bits{{init, 2}, {arrive}};
    for (unsigned bit = 0; bit < 32; ++bit) bits.push_back({test_other, 1u << bit});
    add("which bits of a state count", bits);
    // Objects that nobody made, like one of five arrivals but for a bit.
    for (const Code code : {arrive, test_parity})
        for (unsigned bit = 0; bit < 64; ++bit) {
            const std::uint64_t word = 0x7fffd800001ffff6 ^ std::uint64_t{1} << bit;
            add((code == arrive ? "arrive at a made-up word, bit " : "test a made-up word, bit ") + std::to_string(bit),
                {{store_low, std::uint32_t(word)}, {store_high, std::uint32_t(word >> 32)}, {code}});
        }
    for (unsigned seed = 0; seed < 200; ++seed) {
        Random random(seed);
        add("random " + std::to_string(seed), random_script(random));
    }
    return run_cases(count, arguments, cases);
}
