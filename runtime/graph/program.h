// SPDX-License-Identifier: Apache-2.0
// An instantiated graph as it runs: a prepared list of steps, and who waits for whom.
#pragma once

#include "runtime/base/status.h"
#include "runtime/graph/node_work.h"
#include "runtime/stream/stream.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace ptarmigan::runtime {

class Step;
struct Operation;

class GraphExec;

/// One launch of a graph. Constant while it runs, but for what kernels of it launch.
struct GraphLaunch {
    std::shared_ptr<GraphExec> exec; ///< whose launch it is
    const Stream* stream = nullptr;  ///< compared only
    Context* context = nullptr;
    std::optional<int> priority; ///< of its kernels; empty: each node's own
    /// What is known when it is launched: the marks that its steps record, and those that they wait for.
    std::map<const Step*, Event::Mark> marks;

    mutable std::mutex mutex;                              ///< guards what follows
    mutable std::vector<std::shared_ptr<GraphExec>> tails; ///< graphs that kernels want to run when this one has ended
};

/// What one node does at each launch. A step runs on one thread at a time; launches of one instance follow each other.
class Step {
public:
    virtual ~Step() = default;
    virtual void run(const GraphLaunch& launch) = 0;
    /// run() from `start` on, which is now or zero; when it ended, or zero where nobody looked.
    virtual std::chrono::steady_clock::time_point run_from(const GraphLaunch& launch,
                                                           std::chrono::steady_clock::time_point) {
        run(launch);
        return {};
    }
    /// On the launching thread, in the order of the list.
    virtual void prepare(GraphLaunch&, const Stream&) {}
    /// It did not run, because the launch ended with a fault.
    virtual void skip(const GraphLaunch&) {}
};

/// Who waits for whom, by index; a step comes behind those that it waits for.
struct Topology {
    std::vector<std::uint32_t> first_follower; ///< into followers; one more than there are steps
    std::vector<std::uint32_t> followers;
    std::vector<std::uint32_t> waits; ///< how many each waits for
    bool is_chain = true;             ///< each waits for the one before it, so no two run at the same time
};

struct Program {
    std::shared_ptr<const Topology> topology;
    std::vector<std::shared_ptr<Step>> steps; ///< null: nothing to do
    /// Of its conditional nodes and those in their bodies.
    std::vector<std::shared_ptr<ConditionalValue>> conditional_values;
};

/// Runs all steps, on this thread and, where steps wait for none of each other, on dispatcher threads that come to
/// help. Ends early, skipping steps, when the context has a fault.
void run_program(const std::shared_ptr<const Program>& program, const GraphLaunch& launch);

/// The step for a node's work. Errors are those that a launch of the work would have. Child graphs are no step.
/// `bodies`: the programs of a conditional node.
Status make_step(const NodeWork& work, const std::vector<std::shared_ptr<const Program>>& bodies,
                 std::shared_ptr<Step>& step);

/// What a node's work would be refused for when it is added or changed.
Status check_kernel(const KernelWork& work);

} // namespace ptarmigan::runtime
