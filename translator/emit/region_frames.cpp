// SPDX-License-Identifier: Apache-2.0
#include "translator/emit/region_frames.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace ptarmigan::translator {
namespace {

/// What a value takes in the step frame.
struct Footprint {
    std::uint32_t bytes = 0;
    bool has_stride = false; ///< affine with a run-time stride, which takes as many bytes again
    auto operator<=>(const Footprint&) const = default;
};

std::uint32_t lane_bytes(const SsaValue& value) {
    return std::max(1u, ptx::byte_size(value.type));
}

Footprint footprint(const SsaValue& info, unsigned width) {
    if (info.shape.is_uniform() || info.shape.is_affine())
        return {lane_bytes(info), info.shape.is_affine() && bool(info.shape.steps)};
    // Predicates are packed into a 64-bit mask.
    return {info.type == ptx::ScalarType::pred ? 8 : lane_bytes(info) * width, false};
}

/// Values of the step frame in sets that share one place. A region reads its live-in values before it writes any, so
/// two values can share unless some region needs both. Phis are put into one set with what comes in, for then a value
/// that only passes a region needs no copy; what is left is packed first fit.
class SharedPlaces {
public:
    /// `needed`: sets of values that are needed together.
    SharedPlaces(const FunctionGraph& graph, const std::vector<std::vector<ValueId>>& needed,
                 const std::set<ValueId>& values, unsigned width)
        : values_(values.begin(), values.end()) {
        std::map<ValueId, std::size_t> number;
        for (std::size_t i = 0; i < values_.size(); ++i) {
            number[values_[i]] = i;
            footprints_.push_back(footprint(graph.values[values_[i]], width));
        }
        leader_.resize(values_.size());
        std::iota(leader_.begin(), leader_.end(), 0);
        needed_in_.assign(values_.size(), std::vector<bool>(needed.size()));
        for (std::size_t region = 0; region < needed.size(); ++region)
            for (ValueId value : needed[region])
                if (auto found = number.find(value); found != number.end()) needed_in_[found->second][region] = true;
        for (const Block& block : graph.blocks)
            for (const Phi& phi : block.phis) {
                auto result = number.find(phi.result);
                if (result == number.end()) continue;
                for (ValueId incoming : phi.incoming)
                    if (auto found = number.find(incoming); found != number.end()) share(result->second, found->second);
            }
        pack();
    }

    /// Calls visit(first value of the set, its footprint, all values of it), big places first.
    template <typename Visit> void for_each_place(Visit visit) const {
        std::map<std::size_t, std::vector<ValueId>> sets;
        for (std::size_t i = 0; i < values_.size(); ++i) sets[leader(i)].push_back(values_[i]);
        std::vector<std::size_t> order;
        for (const auto& [first, members] : sets) order.push_back(first);
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return footprints_[a] > footprints_[b]; });
        for (std::size_t first : order) visit(footprints_[first], sets[first]);
    }

private:
    std::size_t leader(std::size_t value) const {
        while (leader_[value] != value) value = leader_[value];
        return value;
    }

    /// Joins the sets of two values if no region needs values of both.
    bool share(std::size_t a, std::size_t b) {
        a = leader(a), b = leader(b);
        if (a == b || footprints_[a] != footprints_[b]) return false;
        std::vector<bool>&into = needed_in_[std::min(a, b)], &from = needed_in_[std::max(a, b)];
        for (std::size_t region = 0; region < into.size(); ++region)
            if (into[region] && from[region]) return false;
        for (std::size_t region = 0; region < into.size(); ++region)
            if (from[region]) into[region] = true;
        leader_[std::max(a, b)] = std::min(a, b);
        return true;
    }

    void pack() {
        std::vector<std::size_t> places;
        for (std::size_t i = 0; i < values_.size(); ++i) {
            if (leader(i) != i) continue;
            bool found = std::any_of(places.begin(), places.end(), [&](std::size_t place) { return share(place, i); });
            if (!found) places.push_back(i);
        }
    }

    std::vector<ValueId> values_;
    std::vector<Footprint> footprints_;
    std::vector<std::size_t> leader_;
    std::vector<std::vector<bool>> needed_in_; ///< by leader: regions
};

} // namespace

RegionFrames layout_frames(const FunctionGraph& graph, const BarrierPlan& barriers, const std::vector<TurnPoint>& turns,
                           unsigned width, bool saves_mask, const std::function<bool(ValueId)>& is_known) {
    RegionFrames frames;
    frames.saves_mask = saves_mask;
    std::set<ValueId> in_steps, guards, in_turns;
    std::vector<std::vector<ValueId>> needed = barriers.live_in;
    for (const TurnPoint& point : turns) {
        needed.push_back(point.live);
        in_turns.insert(point.live.begin(), point.live.end());
    }
    for (const auto& values : needed)
        for (ValueId value : values) {
            const SsaValue& info = graph.values[value];
            if (info.is_constant || info.is_undefined || is_known(value)) continue;
            if (info.shape.guard != no_value) guards.insert(info.shape.guard);
            // The CTA frame changes at barriers only.
            if (info.shape.level != Shape::Level::cta_uniform || lane_bytes(info) > 8 || in_turns.contains(value))
                in_steps.insert(value);
            else if (auto [place, is_new] = frames.values.try_emplace(value); is_new) {
                place->second.in_cta_frame = true;
                place->second.offset = frames.cta_slots++;
            }
        }
    std::uint32_t offset = 0;
    auto place = [&](std::uint32_t bytes) {
        std::uint32_t alignment = std::min(64u, std::bit_floor(bytes));
        offset = (offset + alignment - 1) / alignment * alignment;
        std::uint32_t start = offset;
        offset += bytes;
        return start;
    };
    for (ValueId guard : guards) frames.guards[guard].correction = place(8 * width);
    SharedPlaces(graph, needed, in_steps, width)
        .for_each_place([&](Footprint size, const std::vector<ValueId>& values) {
            RegionFrames::Place where;
            where.offset = place(size.bytes);
            if (size.has_stride) where.stride_offset = place(size.bytes);
            for (ValueId value : values) frames.values[value] = where;
        });
    if (saves_mask) frames.mask_offset = place(8);
    if (!turns.empty()) {
        std::size_t masks = 0;
        for (const TurnPoint& point : turns)
            masks = std::max(masks, point.edge_masks.size() + point.block_masks.size());
        frames.turn_offset = place(4);
        for (std::size_t i = 0; i < masks; ++i) {
            const std::uint32_t offset = place(8);
            if (i == 0) frames.turn_masks_offset = offset;
        }
    }
    for (auto& [guard, where] : frames.guards) where.holds = place(1);
    frames.step_size = (offset + 63) / 64 * 64;
    return frames;
}

} // namespace ptarmigan::translator
