// SPDX-License-Identifier: Apache-2.0
// What the nodes of each type do at a launch.
#include "runtime/base/log.h"
#include "runtime/context/context.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/graph_memory.h"
#include "runtime/graph/program.h"
#include "runtime/launch/grid.h"
#include "runtime/launch/launch.h"
#include "runtime/module/module.h"
#include "runtime/stream/dispatcher.h"
#include "runtime/stream/host_function.h"

#include <utility>

namespace ptarmigan::runtime {
namespace {

Status make_grid_of(const KernelWork& work, std::shared_ptr<Grid>& grid) {
    std::size_t bytes = work.parameters.size();
    void* extra[] = {reinterpret_cast<void*>(1), const_cast<std::uint8_t*>(work.parameters.data()),
                     reinterpret_cast<void*>(2), &bytes, nullptr};
    const Status status = make_grid(*work.function, work.config, work.context(), nullptr, extra, grid);
    if (status != Status::success) return status;
    work.function->mark_used();
    return work.module->bind_references();
}

class KernelStep : public Step {
public:
    KernelStep(KernelWork work, std::shared_ptr<Grid> grid) : work_(std::move(work)), grid_(std::move(grid)) {
        constexpr unsigned priority_id = 8; // CU_LAUNCH_ATTRIBUTE_PRIORITY
        if (const auto given = work_.attributes.find(priority_id); given != work_.attributes.end())
            priority_ = static_cast<std::int32_t>(given->second[0]);
    }
    void run(const GraphLaunch& launch) override { run_from(launch, {}); }
    std::chrono::steady_clock::time_point run_from(const GraphLaunch& launch,
                                                   std::chrono::steady_clock::time_point start) override {
        if (!is_fresh_ && !renew_grid(grid_)) {
            std::shared_ptr<Grid> grid;
            if (const Status status = make_grid_of(work_, grid); status != Status::success) {
                log(LogLevel::error, "a kernel of a graph can't be launched: " + work_.function->kernel().name());
                launch.context->set_fault(status);
                return {};
            }
            grid_ = std::move(grid);
        }
        is_fresh_ = false;
        grid_->graph_launch = &launch;
        grid_->priority = launch.priority.value_or(priority_);
        return run_grid(grid_, start);
    }

private:
    const KernelWork work_;
    std::shared_ptr<Grid> grid_;
    int priority_ = 0;     ///< the node's
    bool is_fresh_ = true; ///< made and not run yet
};

/// Memory may have gone since the node was made: what is no memory any more ends the context as on a GPU.
void report_bad_memory(const GraphLaunch& launch, const char* what) {
    log(LogLevel::error, std::string("a ") + what + " of a graph leaves the device's memory");
    launch.context->set_fault(Status::illegal_address);
}

class CopyStep : public Step {
public:
    explicit CopyStep(CopyWork work) : work_(std::move(work)) {}
    void run(const GraphLaunch& launch) override {
        RowCopy copy;
        if (RowCopy::lay_out(work_.box, copy) == Status::success)
            copy.run();
        else
            report_bad_memory(launch, "copy");
    }

private:
    const CopyWork work_;
};

class FillStep : public Step {
public:
    explicit FillStep(const FillWork& work) : work_(work) {}
    static Status lay_out(const FillWork& work, RowFill& fill) {
        return RowFill::lay_out(work.to, work.pitch, work.element_size, work.value, work.width, work.height, fill);
    }
    void run(const GraphLaunch& launch) override {
        RowFill fill;
        if (lay_out(work_, fill) == Status::success)
            fill.run();
        else
            report_bad_memory(launch, "fill");
    }

private:
    const FillWork work_;
};

class HostStep : public Step {
public:
    explicit HostStep(const HostWork& work) : work_(work) {}
    void run(const GraphLaunch& launch) override {
        const HostFunctionScope scope(*launch.stream);
        work_.function(work_.data);
    }

private:
    const HostWork work_;
};

class EventRecordStep : public Step {
public:
    explicit EventRecordStep(EventRecordWork work) : work_(std::move(work)) {}
    void prepare(GraphLaunch& launch, const Stream& stream) override {
        const Event::Mark mark{Dispatcher::get().promise(stream), std::make_shared<Event::Clock::time_point>(), 0};
        launch.marks[this] = mark;
        work_.event->set_mark(mark);
    }
    void run(const GraphLaunch& launch) override { skip(launch); }
    void skip(const GraphLaunch& launch) override {
        const Event::Mark& mark = launch.marks.at(this);
        *mark.time = Event::Clock::now();
        Dispatcher::get().keep(mark.operation);
    }

private:
    const EventRecordWork work_;
};

class EventWaitStep : public Step {
public:
    explicit EventWaitStep(EventWaitWork work) : work_(std::move(work)) {}
    void prepare(GraphLaunch& launch, const Stream&) override { launch.marks[this] = work_.event->mark(); }
    void run(const GraphLaunch& launch) override { Dispatcher::get().wait(launch.marks.at(this).operation); }

private:
    const EventWaitWork work_;
};

class MemoryOperationsStep : public Step {
public:
    explicit MemoryOperationsStep(MemoryOperationsWork work) : work_(std::move(work)) {}
    void run(const GraphLaunch& launch) override {
        for (const ValueStep& step : work_.steps)
            if (check_place(step) != Status::success) return report_bad_memory(launch, "memory operation");
        make_steps(work_.steps, *launch.context);
    }

private:
    const MemoryOperationsWork work_;
};

class SemaphoreSignalStep : public Step {
public:
    explicit SemaphoreSignalStep(SemaphoreSignalWork work) : work_(std::move(work)) {}
    void run(const GraphLaunch&) override {
        for (const auto& [semaphore, value] : work_.semaphores) semaphore->signal_now(value);
    }

private:
    const SemaphoreSignalWork work_;
};

class SemaphoreWaitStep : public Step {
public:
    explicit SemaphoreWaitStep(SemaphoreWaitWork work) : work_(std::move(work)) {}
    void run(const GraphLaunch& launch) override {
        for (const auto& [semaphore, value] : work_.semaphores) semaphore->wait_now(value, *launch.context);
    }

private:
    const SemaphoreWaitWork work_;
};

class ConditionalStep : public Step {
public:
    ConditionalStep(ConditionalWork work, std::vector<std::shared_ptr<const Program>> bodies)
        : work_(std::move(work)), bodies_(std::move(bodies)) {}
    void prepare(GraphLaunch& launch, const Stream& stream) override {
        for (const auto& body : bodies_)
            for (const auto& step : body->steps)
                if (step) step->prepare(launch, stream);
    }
    void run(const GraphLaunch& launch) override {
        switch (work_.kind) {
        case ConditionalWork::Kind::if_nonzero:
            if (work_.value->get() != 0)
                run_program(bodies_[0], launch);
            else if (bodies_.size() > 1)
                run_program(bodies_[1], launch);
            break;
        case ConditionalWork::Kind::while_nonzero:
            while (work_.value->get() != 0 && launch.context->status() == Status::success)
                run_program(bodies_[0], launch);
            break;
        case ConditionalWork::Kind::select:
            if (work_.value->get() < bodies_.size()) run_program(bodies_[work_.value->get()], launch);
            break;
        }
        skip(launch);
    }
    /// Nobody waits for ever for an event that a graph which did not run records.
    void skip(const GraphLaunch& launch) override {
        for (const auto& body : bodies_)
            for (const auto& step : body->steps)
                if (step) step->skip(launch);
    }

private:
    const ConditionalWork work_;
    const std::vector<std::shared_ptr<const Program>> bodies_;
};

struct MakeStep {
    const std::vector<std::shared_ptr<const Program>>& bodies;
    std::shared_ptr<Step>& step;

    Status operator()(const KernelWork& work) const {
        std::shared_ptr<Grid> grid;
        const Status status = make_grid_of(work, grid);
        if (status == Status::success) step = std::make_shared<KernelStep>(work, std::move(grid));
        return status;
    }
    Status operator()(const CopyWork& work) const { return made<CopyStep>(work); }
    Status operator()(const FillWork& work) const {
        RowFill fill; // capture records fills of any address
        const Status status = FillStep::lay_out(work, fill);
        return status == Status::success ? made<FillStep>(work) : status;
    }
    Status operator()(const HostWork& work) const { return made<HostStep>(work); }
    Status operator()(const EventRecordWork& work) const { return made<EventRecordStep>(work); }
    Status operator()(const EventWaitWork& work) const { return made<EventWaitStep>(work); }
    Status operator()(const ConditionalWork& work) const {
        step = std::make_shared<ConditionalStep>(work, bodies);
        return Status::success;
    }
    /// Memory is lent and taken back at the launch (GraphExec::launch): it is there before anybody uses it.
    Status operator()(const AllocateWork&) const { return Status::success; }
    Status operator()(const FreeWork&) const { return Status::success; }
    Status operator()(const std::monostate&) const { return Status::success; }
    Status operator()(const ChildWorkOfGraph&) const { return Status::success; }
    Status operator()(const MemoryOperationsWork& work) const { return made<MemoryOperationsStep>(work); }
    Status operator()(const SemaphoreSignalWork& work) const { return made<SemaphoreSignalStep>(work); }
    Status operator()(const SemaphoreWaitWork& work) const { return made<SemaphoreWaitStep>(work); }

    template <class S, class W> Status made(const W& work) const {
        step = std::make_shared<S>(work);
        return Status::success;
    }
};

} // namespace

Status make_step(const NodeWork& work, const std::vector<std::shared_ptr<const Program>>& bodies,
                 std::shared_ptr<Step>& step) {
    step = nullptr;
    return std::visit(MakeStep{bodies, step}, work);
}

Status check_kernel(const KernelWork& work) {
    return check_launch(work.function->kernel(), work.config);
}

} // namespace ptarmigan::runtime
