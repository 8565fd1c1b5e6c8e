// SPDX-License-Identifier: Apache-2.0
#include "frontend/sass/loop_entries.h"

#include <algorithm>
#include <limits>

namespace ptarmigan::sass {
namespace {

constexpr unsigned unseen = std::numeric_limits<unsigned>::max();
/// Blocks looked at, over all depths of loops: what is deeper stays as it is.
constexpr std::size_t work_limit = 4'000'000;

class Finder {
public:
    explicit Finder(const std::vector<std::vector<unsigned>>& successors)
        : successors_(successors), predecessors_(successors.size()), part_(successors.size(), 0),
          order_(successors.size()), lowest_(successors.size()), on_stack_(successors.size()) {
        found_.loop_of.assign(successors.size(), -1);
    }

    LoopEntries find() {
        std::vector<unsigned> reached{0};
        std::vector<bool> is_reached(successors_.size());
        if (successors_.empty()) return std::move(found_);
        is_reached[0] = true;
        for (std::size_t i = 0; i < reached.size(); ++i)
            for (const unsigned next : successors_[reached[i]]) {
                predecessors_[next].push_back(reached[i]);
                if (!is_reached[next]) reached.push_back(next);
                is_reached[next] = true;
            }
        std::vector<std::vector<unsigned>> work{std::move(reached)};
        while (!work.empty()) {
            const std::vector<unsigned> blocks = std::move(work.back());
            work.pop_back();
            looked_at_ += blocks.size();
            if (looked_at_ > work_limit) break;
            const unsigned part = ++parts_;
            for (const unsigned block : blocks) part_[block] = part;
            for (std::vector<unsigned>& loop : loops_of(blocks, part)) {
                std::vector<unsigned> inside = note_entries(loop);
                if (!inside.empty()) work.push_back(std::move(inside));
            }
        }
        return std::move(found_);
    }

private:
    /// Strongly connected parts, of edges between blocks of the part; without single blocks, but for loops of one.
    std::vector<std::vector<unsigned>> loops_of(const std::vector<unsigned>& blocks, unsigned part) {
        std::vector<std::vector<unsigned>> loops;
        for (const unsigned block : blocks) order_[block] = unseen;
        unsigned count = 0;
        std::vector<unsigned> stack;
        struct Visit {
            unsigned block;
            std::size_t next;
        };
        std::vector<Visit> visits;
        const auto begin = [&](unsigned block) {
            order_[block] = lowest_[block] = count++;
            on_stack_[block] = true;
            stack.push_back(block);
            visits.push_back({block, 0});
        };
        for (const unsigned first : blocks) {
            if (order_[first] != unseen) continue;
            begin(first);
            while (!visits.empty()) {
                const unsigned block = visits.back().block;
                if (visits.back().next < successors_[block].size()) {
                    const unsigned next = successors_[block][visits.back().next++];
                    if (part_[next] != part) continue;
                    if (order_[next] == unseen)
                        begin(next);
                    else if (on_stack_[next])
                        lowest_[block] = std::min(lowest_[block], order_[next]);
                    continue;
                }
                visits.pop_back();
                if (!visits.empty())
                    lowest_[visits.back().block] = std::min(lowest_[visits.back().block], lowest_[block]);
                if (lowest_[block] != order_[block]) continue;
                const auto from = std::find(stack.rbegin(), stack.rend(), block).base() - 1;
                std::vector<unsigned> loop(from, stack.end());
                stack.erase(from, stack.end());
                for (const unsigned inside : loop) on_stack_[inside] = false;
                const std::vector<unsigned>& own = successors_[block];
                if (loop.size() > 1 || std::find(own.begin(), own.end(), block) != own.end())
                    loops.push_back(std::move(loop));
            }
        }
        return loops;
    }

    /// The loop without its entries.
    std::vector<unsigned> note_entries(std::vector<unsigned>& loop) {
        const unsigned part = ++parts_;
        for (const unsigned block : loop) part_[block] = part;
        std::sort(loop.begin(), loop.end());
        std::vector<unsigned> heads, inside;
        for (const unsigned block : loop) {
            const bool is_entry = block == 0 || std::any_of(predecessors_[block].begin(), predecessors_[block].end(),
                                                            [&](unsigned from) { return part_[from] != part; });
            (is_entry ? heads : inside).push_back(block);
        }
        if (heads.size() > 1) {
            for (const unsigned head : heads) {
                found_.loop_of[head] = int(found_.loops.size());
                for (const unsigned from : predecessors_[head])
                    if (part_[from] == part) found_.back_edges.emplace(from, head);
            }
            found_.loops.push_back(std::move(heads));
        }
        return inside;
    }

    const std::vector<std::vector<unsigned>>& successors_;
    std::vector<std::vector<unsigned>> predecessors_; ///< that are reached
    std::vector<unsigned> part_;                      ///< of each block: in which blocks it is looked at
    LoopEntries found_;
    std::vector<unsigned> order_, lowest_;
    std::vector<bool> on_stack_;
    unsigned parts_ = 0;
    std::size_t looked_at_ = 0;
};

} // namespace

LoopEntries find_loop_entries(const std::vector<std::vector<unsigned>>& successors) {
    return Finder(successors).find();
}

} // namespace ptarmigan::sass
