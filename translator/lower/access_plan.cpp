// SPDX-License-Identifier: Apache-2.0
// Planning of chunked warp accesses, see access_plan.h.
#include "translator/lower/access_plan.h"

#include <algorithm>
#include <bit>
#include <map>

namespace ptarmigan::translator::lower {
namespace {

/// Largest distance, in elements, between neighbours that still share a load: strides up to 4.
constexpr std::int64_t load_reach = 4;
/// A chunk and its share of permutes must replace at least this many single accesses.
constexpr unsigned accesses_per_chunk = 4;

/// All elements that lanes with one value of `step` touch.
struct StepGroup {
    std::int64_t step = 0;
    std::int64_t origin = 0;            ///< byte offset of element index 0
    std::vector<std::int64_t> elements; ///< sorted distinct indices
};

std::int64_t step_of(const AccessPattern& pattern, unsigned lane) {
    return pattern.steps ? (*pattern.steps)[lane] : 0;
}

/// Groups lanes by run-time step; false if an offset is no multiple of the element size from its group's first.
bool collect_groups(const AccessPattern& pattern, std::map<std::int64_t, StepGroup>& groups) {
    for (unsigned lane = 0; lane < pattern.offsets->size(); ++lane) {
        std::int64_t step = step_of(pattern, lane), offset = (*pattern.offsets)[lane];
        auto [place, fresh] = groups.try_emplace(step);
        StepGroup& group = place->second;
        if (fresh) {
            group.step = step;
            group.origin = offset;
        }
        if ((offset - group.origin) % std::int64_t(pattern.element_bytes) != 0) return false;
        std::int64_t first = (offset - group.origin) / std::int64_t(pattern.element_bytes);
        for (unsigned component = 0; component < pattern.count; ++component)
            group.elements.push_back(first + component);
    }
    for (auto& [step, group] : groups) {
        std::sort(group.elements.begin(), group.elements.end());
        group.elements.erase(std::unique(group.elements.begin(), group.elements.end()), group.elements.end());
    }
    return true;
}

/// Cuts elements [first, first + length) into register-sized chunks; the last one overlaps its neighbour rather
/// than reach beyond the end.
void add_chunks(AccessPlan& plan, const StepGroup& group, const AccessPattern& pattern, std::int64_t first,
                std::int64_t length) {
    std::int64_t native = std::max(1u, pattern.native_bytes / pattern.element_bytes);
    std::int64_t size = std::min<std::int64_t>(native, std::bit_floor(std::uint64_t(length)));
    auto add = [&](std::int64_t start) {
        bool used = std::any_of(group.elements.begin(), group.elements.end(), [&](std::int64_t element) {
            return element >= first + start && element < first + start + size;
        });
        if (used)
            plan.chunks.push_back(
                {group.origin + (first + start) * std::int64_t(pattern.element_bytes), group.step, unsigned(size)});
    };
    std::int64_t start = 0;
    for (; start + size <= length; start += size) add(start);
    if (start < length) add(length - size);
}

void add_group(AccessPlan& plan, const StepGroup& group, const AccessPattern& pattern, std::int64_t reach) {
    const auto& elements = group.elements;
    for (std::size_t begin = 0; begin < elements.size();) {
        std::size_t end = begin + 1;
        while (end < elements.size() && elements[end] - elements[end - 1] <= reach) ++end;
        add_chunks(plan, group, pattern, elements[begin], elements[end - 1] - elements[begin] + 1);
        begin = end;
    }
}

/// Fills places and owners from the chunks.
void locate(AccessPlan& plan, const AccessPattern& pattern) {
    for (const AccessPlan::Chunk& chunk : plan.chunks) plan.owners.emplace_back(chunk.length, AccessPlan::no_lane);
    for (unsigned lane = 0; lane < pattern.offsets->size(); ++lane) {
        for (unsigned component = 0; component < pattern.count; ++component) {
            std::int64_t address =
                (*pattern.offsets)[lane] + std::int64_t(component) * std::int64_t(pattern.element_bytes);
            bool placed = false;
            for (unsigned c = 0; c < plan.chunks.size(); ++c) {
                const AccessPlan::Chunk& chunk = plan.chunks[c];
                std::int64_t element = (address - chunk.offset) / std::int64_t(pattern.element_bytes);
                if (chunk.step != step_of(pattern, lane) || address < chunk.offset || element >= chunk.length) continue;
                if (!placed) plan.places.push_back({c, unsigned(element)});
                placed = true;
                unsigned& owner = plan.owners[c][std::size_t(element)];
                if (owner != AccessPlan::no_lane) plan.exclusive = false;
                owner = lane * pattern.count + component;
            }
        }
    }
    for (const auto& chunk : plan.owners)
        for (unsigned owner : chunk) plan.gapless &= owner != AccessPlan::no_lane;
}

std::optional<AccessPlan> plan_access(const AccessPattern& pattern, std::int64_t reach) {
    std::map<std::int64_t, StepGroup> groups;
    if (!collect_groups(pattern, groups)) return std::nullopt;
    unsigned lanes = unsigned(pattern.offsets->size());
    unsigned limit = std::max(lanes > 1 ? 2u : 1u, lanes * pattern.count / accesses_per_chunk);
    limit = std::max(limit, std::min(lanes, 1u) * pattern.count);
    AccessPlan plan;
    for (const auto& [step, group] : groups) {
        add_group(plan, group, pattern, reach);
        if (plan.chunks.size() > limit) return std::nullopt;
    }
    locate(plan, pattern);
    return plan;
}

} // namespace

std::optional<AccessPlan> plan_load(const AccessPattern& pattern) {
    return plan_access(pattern, load_reach);
}

std::optional<AccessPlan> plan_store(const AccessPattern& pattern) {
    std::optional<AccessPlan> plan = plan_access(pattern, 1);
    if ((plan && plan->gapless) || !pattern.masks_gaps) return plan;
    return plan_access(pattern, load_reach);
}

} // namespace ptarmigan::translator::lower
