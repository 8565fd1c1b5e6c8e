// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/fuzz/reference/block.h"

#include <algorithm>
#include <bit>
#include <set>

namespace fuzz::reference {

using namespace ptarmigan::ptx;
using F = FormId;
using M = Modifier;

namespace {

bool is_barrier(const Instruction& inst) { return any(form_info(inst.form).effects, Effects::barrier); }
bool arrives_only(const Instruction& inst) { return inst.form == F::bar_arrive || inst.form == F::barrier_arrive; }

} // namespace

bool Block::meet() {
    bool any_met = meet_at_barrier();
    for (unsigned warp = 0; warp * 32 < threads_.size(); ++warp) any_met |= meet_in_warp(warp);
    return any_met;
}

/// A warp has come when all of its threads that have not exited have; it counts 32.
bool Block::meet_at_barrier() {
    struct Barrier {
        std::vector<Thread*> threads;
        std::uint64_t wanted = 0;
    };
    std::map<std::uint64_t, Barrier> barriers;
    std::map<std::uint64_t, std::map<unsigned, unsigned>> come; // barrier -> warp -> threads
    std::map<unsigned, unsigned> live;
    for (auto& thread : threads_) {
        if (thread->is_done()) continue;
        ++live[thread->number / 32];
        if (!thread->waits_at || !is_barrier(*thread->waits_at)) continue;
        const Instruction& inst = *thread->waits_at;
        const bool of_cluster = inst.form == F::barrier_cluster_wait;
        const std::uint64_t id = of_cluster ? 1000 : std::uint64_t(read(*thread, inst[Role::a]));
        barriers[id].threads.push_back(thread.get());
        if (!of_cluster && inst[Role::b].kind != Operand::Kind::none) barriers[id].wanted = std::uint64_t(read(*thread, inst[Role::b]));
        ++come[id][thread->number / 32];
    }
    bool any_met = false;
    for (auto& [id, barrier] : barriers) {
        std::uint64_t counted = 0;
        for (const auto& [warp, count] : come[id])
            if (count == live[warp]) counted += 32;
        if (counted < (barrier.wanted ? barrier.wanted : 32 * live.size())) continue;
        unsigned votes = 0, reducing = 0;
        for (Thread* thread : barrier.threads) {
            const Instruction& inst = *thread->waits_at;
            if (inst[Role::c].kind == Operand::Kind::none) continue;
            ++reducing;
            votes += bool(read(*thread, inst[Role::c]));
        }
        for (Thread* thread : barrier.threads) {
            const Instruction& inst = *thread->waits_at;
            thread->waits_at = nullptr;
            if (arrives_only(inst) || inst[Role::c].kind == Operand::Kind::none) continue;
            write(*thread, inst[Role::d], votes);
            write(*thread, inst[Role::p], inst.has(M::and_) ? votes == reducing : votes != 0);
        }
        any_met = true;
    }
    return any_met;
}

/// Lanes that the member mask names and that have not exited meet at one statement.
bool Block::meet_in_warp(unsigned warp) {
    bool any_met = false;
    std::vector<Thread*> lanes;
    for (auto& thread : threads_)
        if (thread->number / 32 == warp) lanes.push_back(thread.get());
    for (Thread* first : lanes) {
        if (!first->waits_at || is_barrier(*first->waits_at)) continue;
        const std::uint32_t mask = std::uint32_t(read(*first, (*first->waits_at)[Role::membermask]));
        std::vector<Thread*> members;
        bool all_here = true;
        for (Thread* lane : lanes) {
            if (!(mask >> lane->number % 32 & 1) || lane->is_done()) continue;
            all_here = all_here && lane->waits_at == first->waits_at;
            members.push_back(lane);
        }
        if (!all_here) continue;
        collective(members);
        for (Thread* lane : members) lane->waits_at = nullptr;
        any_met = true;
    }
    return any_met;
}

void Block::collective(const std::vector<Thread*>& lanes) {
    const Instruction& inst = *lanes.front()->waits_at;
    std::map<unsigned, Bits> values;
    std::uint32_t here = 0, votes = 0;
    for (Thread* lane : lanes) {
        const Bits value = read(*lane, inst[Role::a]);
        values[lane->number % 32] = value;
        here |= 1u << lane->number % 32;
        if (value) votes |= 1u << lane->number % 32;
    }
    const auto lanes_with = [&](Bits wanted) {
        std::uint32_t mask = 0;
        for (const auto& [lane, value] : values) mask |= std::uint32_t(value == wanted) << lane;
        return mask;
    };
    // Operands of all before results of any.
    struct Result {
        Bits d = 0;
        bool p = false;
    };
    std::map<Thread*, Result> results;
    for (Thread* lane : lanes) {
        const unsigned number = lane->number % 32;
        Result& result = results[lane];
        switch (inst.form) {
        case F::vote_sync: result.p = inst.has(M::all) ? votes == here : inst.has(M::any) ? votes != 0 : votes == 0 || votes == here; break;
        case F::vote_sync_ballot: result.d = votes; break;
        case F::match_any: result.d = lanes_with(values[number]); break;
        case F::match_all: result.p = lanes_with(values[number]) == here, result.d = result.p ? here : 0; break;
        case F::elect_sync: result.d = unsigned(std::countr_zero(here)), result.p = number == result.d; break;
        case F::redux_int:
        case F::redux_bits: {
            const ScalarType type = inst.types[0];
            __int128 all = __int128(extended(values.begin()->second, type));
            for (auto other = std::next(values.begin()); other != values.end(); ++other) {
                const __int128 value = __int128(extended(other->second, type));
                all = inst.has(M::add) ? all + value : inst.has(M::min) ? std::min(all, value) : inst.has(M::max) ? std::max(all, value) : inst.has(M::and_) ? all & value : inst.has(M::or_) ? all | value : all ^ value;
            }
            result.d = Bits(all);
            break;
        }
        case F::shfl_sync: {
            const unsigned b = unsigned(read(*lane, inst[Role::b]) & 31), c = unsigned(read(*lane, inst[Role::c]));
            const unsigned bound = c & 31, segment = c >> 8 & 31;
            const unsigned highest = (number & segment) | (bound & ~segment), lowest = number & segment;
            int from = 0;
            bool in_range = false;
            if (inst.has(M::up)) from = int(number) - int(b), in_range = from >= int(highest);
            else if (inst.has(M::down)) from = int(number + b), in_range = from <= int(highest);
            else if (inst.has(M::bfly)) from = int(number ^ b), in_range = from <= int(highest);
            else from = int(lowest | (b & ~segment)), in_range = from <= int(highest);
            if (!in_range) from = int(number);
            const auto found = values.find(unsigned(from));
            result.d = found == values.end() ? 0 : found->second;
            result.p = in_range;
            break;
        }
        default: break; // bar.warp.sync
        }
    }
    for (auto& [lane, result] : results) {
        write(*lane, inst[Role::d], result.d);
        write(*lane, inst[Role::p], result.p);
    }
}

bool knows(FormId form) {
    static const std::set<F> others{
        F::mov_vector, F::mov_pack, F::mov_unpack, F::ld, F::ld_volatile, F::ld_relaxed, F::ld_acquire, F::ld_mmio, F::ld_global_nc, F::ldu, F::st, F::st_volatile, F::st_relaxed, F::st_release, F::st_mmio,
        F::prefetch, F::prefetch_evict, F::prefetchu, F::applypriority, F::createpolicy_fractional, F::isspacep, F::cvta, F::cvta_to, F::mapa, F::mapa_generic, F::getctarank, F::getctarank_generic,
        F::cp_async_ca, F::cp_async_ca_hint, F::cp_async_cg, F::cp_async_cg_hint, F::cp_async_commit_group, F::cp_async_wait_group, F::cp_async_wait_all, F::bra, F::brx_idx, F::call, F::ret, F::exit,
        F::barrier_sync, F::barrier_arrive, F::barrier_red_popc, F::barrier_red_pred, F::bar_sync, F::bar_arrive, F::bar_red_popc, F::bar_red_pred, F::bar_warp_sync, F::barrier_cluster_arrive,
        F::barrier_cluster_wait, F::membar, F::fence, F::fence_acquire_restrict, F::fence_release_restrict, F::fence_mbarrier_init, F::fence_proxy_alias, F::fence_proxy_async,
        F::fence_proxy_tensormap_release, F::fence_proxy_async_acquire, F::fence_proxy_async_release, F::membar_proxy_alias, F::shfl_sync, F::vote_sync, F::vote_sync_ballot, F::match_any, F::match_all,
        F::redux_int, F::redux_bits, F::griddepcontrol, F::elect_sync, F::atom_bits, F::atom_add, F::atom_inc_dec, F::atom_min_max, F::atom_exch, F::atom_exch_b128, F::atom_cas, F::atom_cas_b16,
        F::atom_cas_b128, F::red_bits, F::red_add, F::red_inc_dec, F::red_min_max, F::nanosleep, F::pmevent, F::pmevent_mask, F::stacksave, F::stackrestore, F::alloca};
    return computes(form) || others.contains(form);
}

} // namespace fuzz::reference
