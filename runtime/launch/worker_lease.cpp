// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/worker.h"

#include <atomic>
#include <mutex>
#include <vector>

namespace ptarmigan::runtime {

namespace {

struct WorkerPool {
    std::atomic<Worker*> last{nullptr}; ///< the last one that came back, without the mutex; owned
    std::mutex mutex;
    std::vector<std::unique_ptr<Worker>> idle; ///< the others
    static WorkerPool& get() {
        static auto* pool = new WorkerPool; // never destroyed: workers may outlive static destructors
        return *pool;
    }
};

} // namespace

WorkerLease::WorkerLease() {
    WorkerPool& pool = WorkerPool::get();
    worker_.reset(pool.last.exchange(nullptr, std::memory_order_acquire));
    if (worker_) return;
    std::lock_guard lock(pool.mutex);
    if (pool.idle.empty()) {
        worker_ = std::make_unique<Worker>();
    } else {
        worker_ = std::move(pool.idle.back()); // last in, first out: its memory is warm
        pool.idle.pop_back();
    }
}

WorkerLease::~WorkerLease() {
    WorkerPool& pool = WorkerPool::get();
    Worker* none = nullptr;
    if (pool.last.compare_exchange_strong(none, worker_.get(), std::memory_order_release, std::memory_order_relaxed)) {
        static_cast<void>(worker_.release());
        return;
    }
    std::lock_guard lock(pool.mutex);
    pool.idle.push_back(std::move(worker_));
}

} // namespace ptarmigan::runtime
